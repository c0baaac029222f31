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
        ids: Their ``program_id``.
        first: Number of the first one in the launch, from 1.
    """

    def __init__(self, ids: Sequence[Program], first: int = 1) -> None:
        self._axes = np.array(ids, np.int32).reshape(len(ids), 3)
        self.numbers = np.arange(first, first + len(ids), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.numbers)

    def axis(self, axis: int) -> npt.NDArray[np.int32]:
        """``program_id`` along an axis; shape (programs,)."""
        return self._axes[:, axis]

    def some(self, rows: Rows) -> Programs:
        """Those at the given positions."""
        chosen = Programs.__new__(Programs)
        chosen._axes = self._axes[rows]
        chosen.numbers = self.numbers[rows]
        return chosen
