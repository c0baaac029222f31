"""What lanes of a load hold that are masked off and get no ``other``: Triton leaves it undefined."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.base import Conditions, Watch
from kcheck.worker.backends.interpret import frames


class Hidden:
    """Chooses the values, and notes the lines.

    Args:
        watch: Where lines are noted.
        conditions: What to choose.
    """

    def __init__(self, watch: Watch, conditions: Conditions) -> None:
        self._watch = watch
        self._wild = conditions.undefined == "wild"
        self._only = conditions.undefined_at
        self._seen: set[tuple[str, int]] = set()
        self._values: dict[tuple[np.dtype[Any], torch.dtype | None], npt.NDArray[Any]] = {}

    def value(self, dtype: np.dtype[Any], kind: torch.dtype | None) -> npt.NDArray[Any] | None:
        """The value of such lanes, None for zero.

        Args:
            dtype: Of the result; bfloat16 and the 8-bit floats are raw bits.
            kind: Element type of the argument that the pointer came from, if known.
        """
        if not self._wild:
            return None
        site = frames.access_site()
        if site not in self._seen:
            self._seen.add(site)
            chain, _ = frames.kernel_chain()
            self._watch.undefined += chain[-1:]
        if self._only is not None and self._only != site:
            return None
        value = self._values.get((dtype, kind))
        if value is None:
            value = self._values[dtype, kind] = _wild(dtype, kind)
        return value


def _wild(dtype: np.dtype[Any], kind: torch.dtype | None) -> npt.NDArray[Any]:
    """NaN, or an integer far out of range."""
    if dtype.kind == "f":
        return np.array(np.nan, dtype)
    if dtype.kind == "b":
        return np.array(True)
    if kind is not None and kind.is_floating_point and kind.itemsize == dtype.itemsize:
        bits = torch.tensor(float("nan")).to(kind).view(torch.int16 if dtype.itemsize == 2 else torch.int8)
        return bits.numpy().view(dtype)
    return np.array(np.iinfo(dtype).max // 2, dtype)
