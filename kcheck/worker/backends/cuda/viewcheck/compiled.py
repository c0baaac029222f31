"""Compiles kernels with checks, apart from those without, and has the memory that they read and write."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from kcheck.worker.backends.base import Unsupported
from kcheck.worker.backends.cuda import triton_seams
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.device import DeviceWords
from kcheck.worker.backends.cuda.viewcheck.instrument import Manner, instrument
from kcheck.worker.backends.cuda.viewcheck.table import Shadows, Words
from kcheck.worker.backends.cuda.viewcheck.ttir import UnknownText

VERSION = "1"  # of the checks in compiled kernels that are kept on disk


class CheckedKernels:
    """Kernels with checks. One lives as long as a worker; its memory is made when the first kernel comes.

    Args:
        state: Look for races and for reads of what nobody wrote, too.

    Attributes:
        shadows: Of views with gaps.
        launched: How often a kernel was launched, by kernel.
    """

    def __init__(self, *, state: bool = False) -> None:
        self.state = state
        self._words: DeviceWords | None = None
        self._caches: dict[Any, Any] = {}
        self._told = np.zeros(0, np.int64)
        self.shadows = Shadows()
        self.launched: Counter[Any] = Counter()

    @property
    def words(self) -> DeviceWords:
        """The table and the log."""
        if self._words is None:
            self._words = DeviceWords(layout.WORDS)
        return self._words

    @contextmanager
    def compiling(self, kernel: Any, manner: Manner) -> Iterator[None]:
        """Launch a kernel with checks; others that launch it get the one without.

        Args:
            kernel: A ``JITFunction``.
            manner: What to check.
        """
        plain = kernel.device_caches
        kernel.device_caches = self._caches.setdefault((kernel, manner), defaultdict(plain.default_factory))
        key = f"kcheck view check {VERSION}, {manner}, at {self.words.address:x}"
        try:
            with triton_seams.rewriting(partial(self._rewrite, manner=manner), key):
                yield
        finally:
            kernel.device_caches = plain

    def tell(self, words: Words) -> None:
        """Have kernels that are launched from now on read this table."""
        if not np.array_equal(words, self._told):
            if torch.cuda.is_current_stream_capturing():
                raise Unsupported("the view check cannot follow a launch that a CUDA graph captures")
            self.words.tensor[: len(words)].copy_(torch.from_numpy(words))
            self._told = words

    def _rewrite(self, text: str, *, manner: Manner) -> tuple[str, dict[str, Any]]:
        try:
            done = instrument(text, self.words.address, manner)
        except UnknownText as error:
            raise Unsupported(f"the view check does not understand the kernel's IR: {error}") from None
        return done.text, {
            "kcheck_sites": [site.plain() for site in done.sites],
            "kcheck_unchecked": list(done.unchecked),
            "kcheck_parameters": done.parameters,
            "kcheck_granule": done.granule,
            "kcheck_also_read": done.also_read,
        }
