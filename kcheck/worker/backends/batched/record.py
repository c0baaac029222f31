"""What a launch did so far: who touched what, what was there before, whose turn it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kcheck.worker.backends.batched.footprint import Footprint, OrderMatters, Runs, Turns, numbers_of
from kcheck.worker.backends.batched.places import Positions
from kcheck.worker.backends.batched.programs import Programs
from kcheck.worker.backends.batched.values import Array, NotBatched
from kcheck.worker.backends.interpret.arguments import Argument

MAX_SAVED = 1 << 30  # bytes of old values that are kept


class Record:
    """The record of one launch.

    Args:
        programs: How many programs run in all.
        poison: Byte that memory without a value is filled with, if known.
        turns: Whether programs take turns at atomics.
    """

    def __init__(self, programs: int, poison: int | None, turns: Turns) -> None:
        self.turns = turns
        self._ordered = 0
        self._alone = programs == 1
        self._poison = poison
        self._footprints: dict[int, Footprint] = {}
        self._undo: list[tuple[Array, Any, Array]] = []
        self._saved = 0
        self._first_call: dict[int, int] = {}

    def begin_chunk(self) -> None:
        """Other programs begin, which come after all those before."""
        self._ordered = 0
        self._first_call = {home: one.calls for home, one in self._footprints.items()}

    def check(self) -> None:
        """Look at what can be known at the end only.

        Raises:
            NotBatched: Programs met.
        """
        if not self._alone:
            for footprint in self._footprints.values():
                footprint.check()

    def save(self, memory: Array, where: Any, old: Array) -> None:
        """Keep what is about to be overwritten, for `undo`."""
        self._undo.append((memory, where, old))
        self._saved += old.nbytes
        if self._saved > MAX_SAVED:
            raise NotBatched(f"more than {MAX_SAVED >> 20:,} MiB that are written")

    def first_call(self, argument: Argument) -> int:
        """How many atomics an argument's memory had seen when the chunk began."""
        return self._first_call.get(argument.backing.address, 0)

    def next_turn(self, ordered: bool) -> slice:
        """In which order the programs of a chunk do their next atomic: forwards, or, every other time, backwards.

        Args:
            ordered: Another order of the programs has another effect, even without rounding.

        Raises:
            OrderMatters: Fewer programs would take turns here.
        """
        self._ordered += ordered
        if self.turns == "wanted" and self._ordered > 1:
            raise OrderMatters
        backwards = self.turns == "taken" and self._ordered > 0 and self._ordered % 2 == 0
        return slice(None, None, -1 if backwards else 1)

    def undo(self) -> None:
        """Put back everything that was written."""
        while self._undo:
            memory, where, old = self._undo.pop()
            memory[where] = old

    def written(self, argument: Argument) -> tuple[Positions, Array] | None:
        """Positions and values of all elements of an argument's backing that were written."""
        footprint = self._footprints.get(argument.backing.address)
        if footprint is None:
            return None
        cells = footprint.all_written()
        return cells, argument.backing.flat(np.dtype(f"u{footprint.width}"))[cells]

    def footprint(self, argument: Argument, width: int) -> Footprint:
        """Who touched an argument's memory, by cells of `width` bytes."""
        home = argument.backing.address
        footprint = self._footprints.get(home)
        if footprint is None:
            footprint = self._footprints[home] = Footprint(argument.backing, width, self.turns)
        if footprint.width != width:
            raise NotBatched("accesses of different widths to one tensor")
        return footprint

    def note_lanes(
        self, access: Any, argument: Argument, width: int, index: Positions, lanes: Any, programs: Programs
    ) -> None:
        """An access touched lanes, one by one."""
        footprint = self.footprint(argument, width)
        if len(index) == 1 and len(programs) > 1:
            cells = index.reshape(-1) if lanes is None else index[lanes]
            footprint.note(Runs(access, None, cells[None], 1))
            return
        numbers = numbers_of(programs.numbers, index.shape)
        if lanes is None:
            footprint.lanes(access, numbers.reshape(-1), index.reshape(-1))
        else:
            footprint.lanes(access, numbers[lanes], index[lanes])

    def check_values(self, argument: Argument, starts: Positions, length: int, values: Array) -> None:
        """Look for poison in memory that nobody may have written."""
        shadow = argument.shadow
        if shadow is None or not shadow.valueless or self._poison is None:
            return
        wanted = self._poison & 1 if argument.dtype is torch.bool else self._poison
        width = values.itemsize
        pattern = np.frombuffer(bytes([wanted]) * width, f"u{width}")[0]
        flat = np.ascontiguousarray(values).view(f"u{width}").reshape(-1)
        suspects = np.flatnonzero(flat == pattern)
        if not suspects.size:
            return
        cells = (starts[..., None] + np.arange(length)).reshape(-1)[suspects]
        footprint = self.footprint(argument, width)
        cells = cells[~footprint.written(cells)]
        before = shadow.cells(cells, width)
        if before is None:
            raise NotBatched
        new = (shadow.of("write")[before] == 0) & (shadow.of("atomic")[before] == 0)
        if new.any():
            raise NotBatched
