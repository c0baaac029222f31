"""Which accesses of other programs come before what this program does now: the order that atomics make.

A release hands on what its program did and knew; an acquire at the same address takes that over. Where two atomics
might meet, they count as met: order is rather assumed than missed, so that no race is reported that is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Clock = npt.NDArray[np.uint32]  # by program in the order of running: the number of its last access that is known of

MAX_PRECISE = 4  # lanes of one atomic whose addresses are told apart
MAX_ENTRIES = 1 << 23  # of the clocks of single addresses


@dataclass(frozen=True, slots=True)
class Sync:
    """One atomic that orders.

    Attributes:
        program: Position of its program in the order of running.
        number: Number of the access.
        home: Address of the backing.
        addresses: What it touches; empty where it touches many.
        acquires: It takes over.
        releases: It hands on.
    """

    program: int
    number: int
    home: int
    addresses: tuple[int, ...]
    acquires: bool
    releases: bool


class Ordering:
    """The order within one launch. Nothing is worked out before somebody asks.

    Args:
        programs: How many programs run.
    """

    def __init__(self, programs: int) -> None:
        self._programs = programs
        self._log: list[Sync] = []
        self._done = 0
        self._program = -1
        self._clock = self._new()
        self._single: dict[int, Clock] = {}
        self._wide: defaultdict[int, Clock] = defaultdict(self._new)
        self._total: defaultdict[int, Clock] = defaultdict(self._new)

    def _new(self) -> Clock:
        return np.zeros(self._programs, np.uint32)

    def note(self, sync: Sync) -> None:
        """An atomic was done."""
        self._log.append(sync)

    def unordered(
        self, program: int, numbers: Clock, program_of: Callable[[Clock], npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.bool_]:
        """Which accesses of programs that ran earlier in this launch are not ordered before this point, as a mask.

        Args:
            program: Position of the program that runs now.
            numbers: Of the accesses.
            program_of: The position of the program of each access.
        """
        if not self._log:
            return np.ones(numbers.shape, bool)
        while self._done < len(self._log):
            self._apply(self._log[self._done])
            self._done += 1
        if self._program != program:
            return np.ones(numbers.shape, bool)
        return self._clock[program_of(numbers)] < numbers

    def _apply(self, sync: Sync) -> None:
        if self._program != sync.program:
            self._program, self._clock = sync.program, self._new()
        clock, home = self._clock, sync.home
        if len(self._single) * self._programs > MAX_ENTRIES:  # from now on an atomic may have met any other of its home
            self._single.clear()
            self._wide = self._total
        addresses = () if self._wide is self._total else sync.addresses
        if sync.acquires:
            for other in [self._single.get(a) for a in addresses] if addresses else [self._total.get(home)]:
                if other is not None:
                    np.maximum(clock, other, out=clock)
            if home in self._wide:
                np.maximum(clock, self._wide[home], out=clock)
        if sync.releases:
            clock[sync.program] = sync.number
            targets = [self._single.setdefault(a, self._new()) for a in addresses] or [self._wide[home]]
            for target in (*targets, self._total[home]):
                np.maximum(target, clock, out=target)
