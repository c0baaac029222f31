"""Who touched each cell of a tensor's memory last: the numbers of accesses, beside the memory itself."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.interpret.arguments import Backing

Cells = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]

SPARSE_CELLS = 1 << 22  # from this size on, memory that costs nothing until it is touched
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class Shadow:
    """The last accesses of the cells of one backing.

    A cell is as wide as the narrowest access so far. Accesses are numbered from 1 on over a whole watch, so that one
    look tells what belongs to this launch and to this program.

    Args:
        backing: The memory; held, so that its address is not given to another tensor meanwhile.
        width: Bytes of a cell.
        valueless: Nothing is stored there yet but poison.

    Attributes:
        last: Number of the last access of each kind to any cell, to skip a look at all of them.
    """

    def __init__(self, backing: Backing, width: int, valueless: bool) -> None:
        self.backing = backing
        self.valueless = valueless
        self.last = {"read": 0, "write": 0, "atomic": 0}
        self._width = width
        self._numbers: dict[str, Numbers] = {}
        self._before: Backing | None = None

    @property
    def sparse(self) -> bool:
        """Too large to be made finer."""
        return self.backing.size // self._width > SPARSE_CELLS

    def cells(self, index: Cells, width: int) -> Cells | None:
        """Cells of accesses.

        Args:
            index: Position of each access in units of its own width, from the start of the backing; shape (n,).
            width: Bytes of each access.

        Returns:
            Shape (n,), or (n, k) where an access is k cells wide. None: the cells would have to be too many.
        """
        if width == self._width:
            return index
        if width % self._width:
            finer = int(np.gcd(width, self._width))
            if self.sparse:
                return None
            factor = self._width // finer
            self._numbers = {kind: np.repeat(numbers, factor) for kind, numbers in self._numbers.items()}
            self._width = finer
        wide = width // self._width
        return index if wide == 1 else index[:, None] * wide + np.arange(wide)

    def remember(self) -> None:
        """Keep what is in memory now, unless it is too much."""
        if not self.sparse:
            copy = np.array(self.backing.flat(np.dtype(np.uint8)))
            self._before = Backing(copy.ctypes.data, copy.nbytes, copy)

    def remembered(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """The memory as it was kept, or as it is."""
        return (self._before or self.backing).flat(dtype)

    def of(self, access: str) -> Numbers:
        """Numbers of the last accesses of a kind; 0 for none."""
        numbers = self._numbers.get(access)
        if numbers is None:
            numbers = self._numbers[access] = _zeros(-(-self.backing.size // self._width))
        return numbers


def _zeros(count: int) -> npt.NDArray[Any]:
    if count <= SPARSE_CELLS:
        return np.zeros(count, np.uint32)
    memory = mmap.mmap(-1, count * 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    return np.frombuffer(memory, np.uint32)
