"""Which programs touched which cells of a backing in one launch: whether any two of them meet.

Programs that never meet give the same results in every order, so running them together is running them one after the
other. Where two may meet the launch goes to the sequential engine, which says what that means.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.batched.values import NotBatched
from kcheck.worker.backends.interpret.arguments import Backing

Numbers = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]

# At atomics programs take turns; they would, if fewer ran together; or they do not.
Turns = Literal["taken", "wanted", "never"]

MAX_CELLS = 1 << 26  # of a backing whose cells are looked at one by one
_MANY = -1  # several programs


class OrderMatters(NotBatched):
    """Programs that run together mix their atomics on the same elements in another order than one after the other."""

    def __init__(self) -> None:
        super().__init__("atomics of several programs on the same elements, whose order matters")


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of neighbouring cells that one access touched.

    Attributes:
        access: What it did.
        programs: Numbers of the programs; shape (n,). None: every program touched all of the runs.
        starts: First cells; shape (n, runs), or (1, runs) without programs.
        length: Cells of each run.
    """

    access: Literal["read", "write"]
    programs: Numbers | None
    starts: Positions
    length: int


class Footprint:
    """The accesses of one launch to one backing.

    Args:
        backing: The memory.
        width: Bytes of a cell: of every access.
        turns: Whether the order of atomics may be another one.
    """

    def __init__(self, backing: Backing, width: int, turns: Turns = "never") -> None:
        self.width = width
        self._cells = backing.size // width
        self._runs: list[Runs] = []
        self._painted: dict[str, Numbers] = {}
        self._order = AtomicOrder(turns == "taken")

    # -- taking down ------------------------------------------------------------------------------------------------

    def note(self, runs: Runs) -> None:
        """An access touched runs of cells; what it means is found out at the end."""
        self._runs.append(runs)

    def lanes(self, access: Literal["read", "write"], programs: Numbers, cells: Positions) -> None:
        """An access touched single cells.

        Args:
            access: What it did.
            programs: Numbers of the programs; shape (n,).
            cells: Which; shape (n,).
        """
        paper = self._paper(access)
        old = paper[cells]
        paper[cells] = programs
        met = ((old != 0) & (old != programs)) | (paper[cells] != programs)
        if not met.any():
            return
        if access == "write":
            raise NotBatched
        paper[cells[met]] = _MANY

    def atomics(self, programs: Numbers, cells: Positions, kind: int, first_of_chunk: int) -> None:
        """An atomic touched single cells; see `AtomicOrder`."""
        self._order.note(self._paper("atomic"), self._paper("call"), programs, cells, kind, first_of_chunk)

    @property
    def calls(self) -> int:
        """How many atomics were called."""
        return self._order.calls

    def _paper(self, access: str) -> Numbers:
        """The number of the program that touched each cell; 0 for none."""
        paper = self._painted.get(access)
        if paper is None:
            if self._cells > MAX_CELLS:
                raise NotBatched(f"single elements of a tensor of more than {MAX_CELLS:,}")
            paper = self._painted[access] = np.zeros(self._cells, np.int32)
        return paper

    # -- looking ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Look whether programs met.

        Raises:
            NotBatched: Two programs met, or may have.
        """
        if not self._changed():
            return
        if not self._painted and _apart(self._runs):
            return
        self._paint_runs()
        papers = [paper for access, paper in self._painted.items() if access != "call"]
        for one, other in combinations(papers, 2):
            if ((one != 0) & (other != 0) & ((one != other) | (one == _MANY))).any():
                raise NotBatched

    def _changed(self) -> bool:
        """Whether anything was written."""
        return bool({"write", "atomic"} & self._painted.keys()) or any(runs.access == "write" for runs in self._runs)

    def written(self, cells: Positions) -> npt.NDArray[np.bool_]:
        """Which cells were written so far."""
        self._paint_runs()
        done = np.zeros(cells.shape, bool)
        for access in ("write", "atomic"):
            if access in self._painted:
                done |= self._painted[access][cells] != 0
        return done

    def all_written(self) -> Positions:
        """Every cell that was written."""
        self._paint_runs()
        done = [self._painted[access] != 0 for access in ("write", "atomic") if access in self._painted]
        return np.flatnonzero(np.logical_or.reduce(done)) if done else np.empty(0, np.int64)

    def _paint_runs(self) -> None:
        for runs in self._runs:
            cells = runs.starts[..., None] + np.arange(runs.length) if runs.length > 1 else runs.starts[..., None]
            flat = cells.reshape(-1)
            if runs.programs is None:
                if runs.access == "write":
                    raise NotBatched
                self._paper("read")[flat] = _MANY
            else:
                self.lanes(runs.access, np.repeat(runs.programs, cells[0].size), flat)
        self._runs.clear()


def _apart(noted: list[Runs]) -> bool:
    """Whether runs of different programs surely do not overlap.

    In the order of their starts, a run overlaps an earlier one if it begins before the end that lies furthest. If
    there are overlaps between programs, one of them is with the run that has that end.
    """
    starts = np.concatenate([runs.starts.reshape(-1) for runs in noted])
    lengths = np.concatenate([np.full(runs.starts.size, runs.length) for runs in noted])
    owners = np.concatenate([_owners(runs) for runs in noted])
    order = np.argsort(starts, kind="stable")
    starts, ends, owners = starts[order], (starts + lengths)[order], owners[order]
    furthest = np.maximum.accumulate(ends)
    position = np.maximum.accumulate(np.where(ends == furthest, np.arange(len(ends)), 0))
    overlaps = starts[1:] < furthest[:-1]
    return not (overlaps & (owners[1:] != owners[position[:-1]])).any()


def _owners(runs: Runs) -> Numbers:
    """The program of each run, flat."""
    if runs.programs is None:
        return np.full(runs.starts.size, _MANY, np.int32)
    return np.repeat(runs.programs, runs.starts.shape[1])


class AtomicOrder:
    """Whether atomics that run together have the effect that they have one program after the other.

    A call handles its lanes in the order of programs, which is right by itself. Two calls of one chunk mix the
    programs: that is right on cells that each touches for one program alone, and where the order does not matter.

    Args:
        turns: Any effect will do that some order has.
    """

    def __init__(self, turns: bool) -> None:
        self._turns = turns
        self._kinds = [0]

    def note(self, owners: Numbers, calls: Numbers, programs: Numbers, cells: Positions, kind: int, first: int) -> None:
        """A call of an atomic.

        Args:
            owners: Program that touched each cell.
            calls: Call that did.
            programs: Of the lanes; shape (n,).
            cells: Of the lanes; shape (n,).
            kind: Number of an operation whose order does not matter; 0 if it does.
            first: Number of the first call of this chunk, what `calls` was before.

        Raises:
            OrderMatters: The effect might be another one.
        """
        before, old = calls[cells], owners[cells]
        recent = before > first
        if not self._turns and recent.any():
            other = np.array(self._kinds)[before]
            if (recent & (old != programs) & ((other != kind) | (kind == 0))).any():
                raise OrderMatters
        self._kinds.append(kind)
        owners[cells] = programs
        calls[cells] = len(self._kinds) - 1
        shared = (owners[cells] != programs) | ((old != 0) & (old != programs))
        if shared.any():
            owners[cells[shared]] = _MANY

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return len(self._kinds) - 1


def numbers_of(programs: Numbers, shape: tuple[int, ...]) -> Any:
    """The number of its program for each lane of an array with the program axis first."""
    return np.broadcast_to(programs.reshape(-1, *(1,) * (len(shape) - 1)), shape)
