"""The slow path of the view check: names an invalid access and counts it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kcheck.worker.backends.base import AccessKind, Fault, Place, Watch
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK, Argument, Cells
from kcheck.worker.backends.interpret.membership import Addresses, Bools
from kcheck.worker.backends.interpret.triton_seams import builder

Program = tuple[int, int, int]
_Key = tuple[AccessKind, str, int, str, bool]

MAX_OFFSETS = 64  # of one fault


class FaultLog:
    """Distinct faults of one watch.

    Args:
        watch: Where faults and gaps go.
        regions: The target's tensor arguments.
    """

    def __init__(self, watch: Watch, regions: Sequence[Cells]) -> None:
        self._watch = watch
        self._regions = regions
        self._found: dict[_Key, Fault] = {}
        self._last_run: dict[_Key, tuple[int, Program]] = {}
        self._gaps: set[str] = set()
        self.kernel = ""
        self.launch = 0
        self.scratch: Sequence[Argument] = ()

    def gap(self, sentence: str) -> None:
        """Note once that something could not be checked."""
        if sentence not in self._gaps:
            self._gaps.add(sentence)
            self._watch.gaps.append(sentence)

    def unknown_pointer(self, access: AccessKind) -> None:
        """Note an access through a pointer from memory that leads to no tensor that is known."""
        file, line = frames.access_site()
        self.gap(
            f"{file}:{line}: kernel {self.kernel} makes a {access} through a pointer that it read from memory and that "
            "leads to no tensor known here; the access was skipped, not checked."
        )

    def stray(self, access: AccessKind, pointers: Addresses, bad: Bools, argument: Argument | None, width: int) -> None:
        """Record lanes that leave the view of `argument` (None: of everything, through a pointer from memory)."""
        strays = pointers[bad]
        known = self._count(access, argument, bad, read_only=False)
        if known is None:
            self._note_offsets(access, argument, strays)
            return
        pointer = strays.flat[0]
        address = int(pointer & ADDRESS_MASK)
        if argument is None:
            inside = address == pointer and any(cells.backing.holds(address, width) for cells in self._regions)
            self._add(known, bad, place=Place.GAP if inside else Place.OUTSIDE, argument=None)
            return
        byte = argument.first_bad_byte(address, width)
        place = Place.GAP if argument.backing.holds(address, width) else Place.OUTSIDE
        self._add(known, bad, place=place, argument=argument, byte=byte)
        self._note_offsets(access, argument, strays)

    def _note_offsets(self, access: AccessKind, argument: Argument | None, strays: Addresses) -> None:
        """Keep where the first bad lanes of a fault went, for the picture of the backing."""
        if argument is None:
            return
        fault = self._found[(access, *frames.access_site(), argument.name, False)]
        room = MAX_OFFSETS - len(fault.offsets)
        if room > 0:
            lanes = (strays.ravel()[:room] & ADDRESS_MASK).astype(np.int64) - argument.shown.address
            fault.offsets += [int(offset) for offset in lanes]

    def read_only(self, access: AccessKind, pointers: Addresses, bad: Bools, argument: Argument | None) -> None:
        """Record lanes that write cells of a view that must not be written."""
        known = self._count(access, argument, bad, read_only=True)
        if known is not None:
            byte = int(pointers[bad].flat[0] & ADDRESS_MASK)
            self._add(known, bad, place=Place.READ_ONLY, argument=argument, byte=byte)

    def _count(self, access: AccessKind, argument: Argument | None, bad: Bools, *, read_only: bool) -> _Key | None:
        """Add to the counts of a fault seen before; else the key to record it under."""
        file, line = frames.access_site()
        key = (access, file, line, argument.name if argument else "", read_only)
        fault = self._found.get(key)
        if fault is None:
            return key
        run = (self.launch, builder.grid_idx)
        fault.lanes += int(np.count_nonzero(bad))
        fault.programs += self._last_run[key] != run
        self._last_run[key] = run
        return None

    def _add(self, key: _Key, bad: Bools, *, place: Place, argument: Argument | None, byte: int = -1) -> None:
        chain, occurrence = frames.kernel_chain()
        index: tuple[int, ...] = ()
        between, offset = False, 0
        if argument is not None:
            index, between = argument.shown.locate(byte)
            offset = byte - argument.shown.address
        own_cells = place is Place.READ_ONLY and argument is not None
        landed, landed_index = ("", ()) if own_cells else self._owner(byte, argument)
        program: Program = builder.grid_idx
        fault = Fault(
            access=key[0], place=place, kernel=self.kernel, frame=chain[-1] if chain else frames.launch_frame(),
            occurrence=occurrence, argument=key[3], parameter=argument.parameter if argument else "", index=index,
            byte_offset=offset, between=between, landed=landed, landed_index=landed_index, program=program,
            lanes=int(np.count_nonzero(bad)), programs=1, chain=chain,
            scratch=any(argument is one for one in self.scratch),
        )  # fmt: skip
        self._found[key] = fault
        self._last_run[key] = (self.launch, program)
        self._watch.faults.append(fault)

    def _owner(self, byte: int, argument: Argument | None) -> tuple[str, tuple[int, ...]]:
        """Name of the other region, or scratch tensor of this launch, that owns a byte, and its index there."""
        own = () if argument is None else argument.views
        for cells in self._regions:
            if cells.view not in own and cells.view.owns(byte):
                return cells.region.name, cells.view.locate(byte)[0]
        for other in self.scratch:
            if other is not argument and any(view.owns(byte) for view in other.views):
                return other.name, other.shown.locate(byte)[0]
        return "", ()
