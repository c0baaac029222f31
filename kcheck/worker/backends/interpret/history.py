"""Faults of accesses that are inside their views: races between programs, reads of what nobody wrote, lost stores.

Programs run one after the other, so an access can only meet those of programs that ran before. Every access to memory
that a kernel may write gets a number, which its cells remember.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.findings import Kind
from kcheck.worker.backends.base import AccessKind, Conditions
from kcheck.worker.backends.hazard import Side
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.arguments import Argument, Backing, Cells
from kcheck.worker.backends.interpret.faults import Program
from kcheck.worker.backends.interpret.hazards import HazardLog
from kcheck.worker.backends.interpret.membership import Bools
from kcheck.worker.backends.interpret.ordering import MAX_PRECISE, Ordering, Sync
from kcheck.worker.backends.interpret.shadow import Numbers, Shadow

Array = npt.NDArray[Any]

MAX_SCRATCH = 1 << 28  # bytes of tensors made by the target that are remembered
_MEETS: dict[AccessKind, tuple[AccessKind, ...]] = {
    "read": ("write", "atomic"),
    "write": ("write", "read", "atomic"),
    "atomic": ("write", "read"),
}


class AccessHistory:
    """Who touched what in one watch.

    Args:
        regions: The target's tensor arguments.
        log: Where hazards go.
        conditions: Poison of memory without a value; what reads that race yield.
    """

    def __init__(self, regions: Sequence[Cells], log: HazardLog, conditions: Conditions) -> None:
        self._log, self._poison = log, conditions.poison
        self._stale = conditions.stale
        self._written = {cells.backing.address for cells in regions if cells.region.writable}
        self._given = {cells.backing.address for cells in regions}
        self._valueless = {cells.backing.address for cells in regions if cells.region.valueless}
        self._shadows: dict[int, Shadow] = {}
        self._scratch_bytes = 0
        self._number = 0
        self._site_numbers: dict[tuple[int, int], int] = {}
        self._sites: list[tuple[CodeType, int]] = []
        self.begin_launch((), 0)

    # -- telling where the run is -----------------------------------------------------------------------------------

    def begin_launch(self, arguments: Sequence[Argument], programs: int) -> None:
        """Find the shadows of a launch's arguments; `programs` run."""
        self._launch = self._program = self._number + 1
        self._access_sites: list[int] = []
        self._starts: list[int] = []
        self._ids: list[Program] = []
        self._programs = programs
        self._log.launch = self._launch
        self._ordering = Ordering(programs)
        for argument in arguments:
            argument.shadow = self._shadow_of(argument.backing, argument.dtype.itemsize)
            if self._stale is not None and argument.shadow is not None:
                argument.shadow.remember()

    def begin_program(self, program: Program) -> None:
        """A program starts."""
        self._program = self._number + 1
        self._starts.append(self._program)
        self._ids.append(program)

    def _shadow_of(self, backing: Backing, width: int) -> Shadow | None:
        address = backing.address
        given = address in self._given
        if not backing.size or (given and address not in self._written):
            return None
        shadow = self._shadows.get(address)
        if shadow is None:
            if not given:
                self._make_room(backing.size)
            valueless = self._poison is not None and (not given or address in self._valueless)
            shadow = self._shadows[address] = Shadow(backing, width, valueless)
        return shadow

    def _make_room(self, nbytes: int) -> None:
        """Forget tensors made by the target, oldest first, so that its own memory is not held for ever."""
        self._scratch_bytes += nbytes
        for address in [a for a in self._shadows if a not in self._given]:
            if self._scratch_bytes <= MAX_SCRATCH:
                return
            self._scratch_bytes -= self._shadows.pop(address).backing.size

    # -- accesses, all of whose lanes are good ----------------------------------------------------------------------

    def read(self, argument: Argument, index: Array, values: Array) -> Array:
        """Lanes were read; gives the values that they yield.

        Args:
            argument: Where, with a shadow.
            index: Position of each lane in the backing, in units of the access; shape (n,).
            values: What was read; shape (n,).
        """
        shadow = argument.shadow
        cells = self._begin(shadow, index, values.itemsize)
        if shadow is None or cells is None:
            return values
        if shadow.valueless:
            self._check_values(argument, shadow, index, cells, values)
        if self._programs == 1:
            return values
        met = self._meet("read", argument, shadow, index, cells, values)
        if met is not None and self._stale == frames.access_site():
            values = np.where(met, shadow.remembered(values.dtype)[index], values)
        # The first reader of a launch is kept: whoever writes later, and is another program, meets it.
        readers = shadow.of("read")
        if shadow.last["read"] < self._launch:
            readers[cells] = self._number
        else:
            old = readers[cells] < self._launch
            if old.any():
                readers[cells[old]] = self._number
        shadow.last["read"] = self._number
        return values

    def write(self, argument: Argument, index: Array, values: Array) -> None:
        """Lanes are about to be written; `values` has their shape. See `read`."""
        shadow = argument.shadow
        cells = self._begin(shadow, index, values.itemsize)
        if shadow is None or cells is None:
            return
        self._meet("write", argument, shadow, index, cells, values)
        shadow.of("write")[cells] = self._number
        shadow.last["write"] = self._number

    def atomic(self, argument: Argument, index: Array, before: Array, *, acquires: bool, releases: bool) -> None:
        """Lanes were read, modified and written at once.

        Args:
            argument: Where.
            index: See `read`.
            before: What was there; shape (n,).
            acquires: It takes over what others released there.
            releases: It hands on what this program did.
        """
        shadow = argument.shadow
        cells = self._begin(shadow, index, before.itemsize)
        if shadow is None or cells is None:
            return
        if acquires or releases:
            few = index.size <= MAX_PRECISE
            addresses = tuple(int(one) * before.itemsize + shadow.backing.address for one in index) if few else ()
            home = shadow.backing.address
            self._ordering.note(Sync(len(self._ids) - 1, self._number, home, addresses, acquires, releases))
        if shadow.valueless:
            self._check_values(argument, shadow, index, cells, before)
        self._meet("atomic", argument, shadow, index, cells, before)
        shadow.of("atomic")[cells] = self._number
        shadow.last["atomic"] = self._number

    def volatile(self, argument: Argument) -> None:
        """Lanes were read by loads that may look at what other programs write: they order, and race with nothing."""
        self._number += 1
        self._access_sites.append(0)
        home = argument.backing.address
        self._ordering.note(Sync(len(self._ids) - 1, self._number, home, (), acquires=True, releases=False))

    def stored(self, argument: Argument, index: Array, values: Array) -> None:
        """Lanes were written: look whether all of them are there, or some went to the same place."""
        if argument.shadow is None or index.size < 2:
            return
        kept = argument.backing.flat(values.dtype)[index]
        lost = kept != values
        if lost.any() and (lost := lost & ((kept == kept) | (values == values))).any():
            offsets = _offsets(argument, index, values.itemsize, lost)
            self._log.record(Kind.SCATTER_CONFLICT, "write", argument, offsets, int(lost.sum()))

    # -- looking at cells -------------------------------------------------------------------------------------------

    def _begin(self, shadow: Shadow | None, index: Array, width: int) -> Array | None:
        """Number an access; its cells, None if there are none to remember."""
        if shadow is None or not index.size:
            return None
        self._number += 1
        frame = frames.access_frame()
        site = 0 if frame is None else self._site(frame.f_code, frame.f_lasti)
        self._access_sites.append(site)
        cells = shadow.cells(index, width)
        if cells is None:
            self._log.gap(
                f"kernel {self._log.kernel} accesses a tensor of {shadow.backing.size / 2**30:.1f} GiB in pieces of "
                "different sizes; races and uninitialized reads there were not looked for."
            )
        return cells

    def _site(self, code: CodeType, instruction: int) -> int:
        key = (id(code), instruction)
        number = self._site_numbers.get(key)
        if number is None:
            number = self._site_numbers[key] = len(self._sites)
            self._sites.append((code, instruction))
        return number

    def _meet(
        self, access: AccessKind, argument: Argument, shadow: Shadow, index: Array, cells: Array, values: Array
    ) -> Bools | None:
        """Find what earlier programs of this launch did to these cells; gives the lanes that race, if any do."""
        racing = None
        for other in _MEETS[access]:
            if shadow.last[other] < self._launch or self._program == self._launch:
                continue
            numbers = shadow.of(other)[cells]
            met = (numbers - np.uint32(self._launch)) < np.uint32(self._program - self._launch)
            if met.any():
                lanes = self._race(access, other, argument, index, values, numbers, met)
                racing = lanes if racing is None else racing | lanes
        return racing

    def _race(
        self, access: AccessKind, other: AccessKind, argument: Argument, index: Array, values: Array, numbers: Numbers,
        met: Bools,
    ) -> Bools:  # fmt: skip
        met[met] = self._ordering.unordered(len(self._ids) - 1, numbers[met], self._program_of)
        if not met.any():
            return np.zeros(len(met), bool)
        if met.ndim > 1:  # lanes that are several cells wide: the first cell that was met stands for them
            numbers = numbers[np.arange(len(met)), met.argmax(1)]
            met = np.asarray(met.any(1))
        changed = None
        if access == "write":
            there = argument.backing.flat(values.dtype)[index[met]]
            changed = there.tobytes() != np.ascontiguousarray(values[met]).tobytes()
        sites = np.array([self._access_sites[number] for number in (numbers[met] - self._launch).tolist()])
        for site in np.unique(sites):
            lanes = met.copy()
            lanes[met] = sites == site
            frame = frames.frame_at(*self._sites[site])
            occurrence = frames.line_occurrence(self._sites[site][0], frame.line)
            program = self._ids[int(self._program_of(numbers[lanes][:1])[0])]
            offsets = _offsets(argument, index, values.itemsize, lanes)
            hazard = self._log.record(
                Kind.RACE, access, argument, offsets, int(lanes.sum()), Side(other, frame, occurrence, program)
            )
            if changed is not None:
                hazard.changed = bool(hazard.changed) or changed
        return met

    def _program_of(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """Position of the programs of accesses of this launch."""
        return np.searchsorted(np.array(self._starts), numbers, side="right") - 1

    def _check_values(self, argument: Argument, shadow: Shadow, index: Array, cells: Array, values: Array) -> None:
        """Cells that nobody wrote and that hold poison yet."""
        new = shadow.of("write")[cells] == 0
        if shadow.last["atomic"]:
            new &= shadow.of("atomic")[cells] == 0
        new = new if new.ndim == 1 else new.all(1)
        if not new.any() or self._poison is None:
            return
        raw = np.ascontiguousarray(values[new]).view(np.uint8).reshape(-1, values.itemsize)
        wanted = self._poison & 1 if argument.dtype is torch.bool else self._poison
        new[new] = (raw == wanted).all(1)
        if new.any():
            offsets = _offsets(argument, index, values.itemsize, new)
            self._log.record(Kind.UNINITIALIZED_READ, "read", argument, offsets, int(new.sum()))


def _offsets(argument: Argument, index: Array, width: int, lanes: Bools) -> npt.NDArray[np.int64]:
    """Distances of lanes from the first element of the view, in bytes, sorted."""
    offsets: npt.NDArray[np.int64] = np.unique(index[lanes]) * width + (
        argument.backing.address - argument.shown.address
    )
    return offsets
