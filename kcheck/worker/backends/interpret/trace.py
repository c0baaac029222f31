"""The way a kernel took through a tensor: what one line touched in one program, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kcheck.worker.backends.base import Conditions, Watch
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK, TAG_SHIFT, Argument
from kcheck.worker.backends.interpret.membership import Addresses
from kcheck.worker.backends.interpret.triton_seams import builder

MAX_STEPS = 4096


class Trace:
    """Takes down the paths that are asked for.

    Args:
        watch: Where they go.
        conditions: Which.
    """

    def __init__(self, watch: Watch, conditions: Conditions) -> None:
        self._paths = watch.paths
        self._programs = {(file, line): program for file, line, program in conditions.traced}

    def note(self, pointers: Addresses, mask: Any, arguments: Mapping[int, Argument]) -> None:
        """An access begins."""
        site = frames.access_site()
        if self._programs.get(site) != builder.grid_idx or not pointers.size:
            return
        path = self._paths.setdefault(site, [])
        active = pointers.ravel() if mask is None else pointers[np.broadcast_to(mask, pointers.shape)]
        active = active[: MAX_STEPS - len(path)]
        argument = arguments.get(int(active[0]) >> TAG_SHIFT) if active.size else None
        if argument is not None:
            path += ((active & ADDRESS_MASK).astype(np.int64) - argument.shown.address).tolist()
