"""The programs that run together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Program = tuple[int, int, int]
Rows = npt.NDArray[np.int64]


class Programs:
    """Programs of a launch, in the order in which they would run one after the other.

    Args:
        places: Their positions in the grid, of which the first axis runs fastest.
        grid: Programs along each axis.
        first: Number of the first one in the launch, from 1.
    """

    def __init__(self, places: Sequence[int], grid: Program, first: int = 1) -> None:
        rest, x = np.divmod(np.array(places, np.int64), grid[0])
        z, y = np.divmod(rest, grid[1])
        self._axes = np.stack([x, y, z]).astype(np.int32)
        self.numbers = np.arange(first, first + len(places), dtype=np.int32)

    @staticmethod
    def unnamed(count: int) -> Programs:
        """As many programs, whose numbers nobody asks for."""
        made = Programs.__new__(Programs)
        made._axes = np.zeros((3, count), np.int32)
        made.numbers = np.zeros(count, np.int32)
        return made

    def __len__(self) -> int:
        return len(self.numbers)

    def axis(self, axis: int) -> npt.NDArray[np.int32]:
        """``program_id`` along an axis; shape (programs,)."""
        along: npt.NDArray[np.int32] = self._axes[axis]
        return along

    def some(self, rows: Rows) -> Programs:
        """Those at the given positions."""
        chosen = Programs.__new__(Programs)
        chosen._axes = self._axes[:, rows]
        chosen.numbers = self.numbers[rows]
        return chosen
