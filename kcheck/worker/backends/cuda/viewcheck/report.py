"""From the log of instrumented kernels to faults, in the same words as the CPU's."""

from __future__ import annotations

import ast
import linecache
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import triton

from kcheck.findings import Kind
from kcheck.worker.backends.base import Fault, Frame, Launch, Place
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.instrument import Site
from kcheck.worker.backends.cuda.viewcheck.table import Slot
from kcheck.worker.backends.hazard import Hazard, Side
from kcheck.worker.backends.interpret.arguments import Argument, Cells

_HAZARDS = {
    layout.UNWRITTEN: Kind.UNINITIALIZED_READ,
    layout.RACE: Kind.RACE,
    layout.CONFLICT: Kind.SCATTER_CONFLICT,
}
_ACCESS = re.compile(r"load.*|store.*|atomic_.*|gather|scatter")
_TRITON = os.path.dirname(os.path.abspath(triton.__file__)) + os.sep


@dataclass(slots=True)
class Noted:
    """A launch with records of its own.

    Attributes:
        launch: The launch.
        sites: Accesses of its kernel.
        arguments: What its parameters may touch, and their addresses, by their number in the kernel's IR.
        slots: The same as kernels are told.
        key: Of the compiled kernel.
        first: Number of its first record.
    """

    launch: Launch
    sites: Sequence[Site]
    arguments: Mapping[int, tuple[Argument, int]]
    slots: Mapping[int, Slot]
    key: str
    first: int = 0


def faults(noted: Noted, records: npt.NDArray[np.int64], regions: Sequence[Cells]) -> list[Fault]:
    """Faults of one launch.

    Args:
        noted: The launch.
        records: Its records: int64 of shape (sites × PER_SITE, RECORD).
        regions: The target's tensor arguments.
    """
    return [
        _fault(noted, site, record, regions)
        for site, record in zip(noted.sites, records[layout.STRAY :: layout.PER_SITE], strict=True)
        if record[layout.LANES]
    ]


def hazards(noted: Noted, records: npt.NDArray[np.int64], regions: Sequence[Cells]) -> list[Hazard]:
    """Races of one launch, its reads of what nobody wrote, and stores with two values for one address; see `faults`."""
    found = []
    raced = bool(records[layout.RACE :: layout.PER_SITE, layout.LANES].any())
    for number, site in enumerate(noted.sites):
        own = records[number * layout.PER_SITE : (number + 1) * layout.PER_SITE]
        for which, kind in _HAZARDS.items():
            if kind is Kind.SCATTER_CONFLICT and raced:
                continue  # another program may have overwritten what was stored, by whichever of its accesses
            if own[which, layout.LANES] and len(site.slots) == 1:
                found.append(_hazard(noted, site, own[which], kind, regions))
    return found


def _notes(record: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Offset, program and mark of what was noted first: int64 of shape (count, 3), the lowest offset first."""
    count = min(int(record[layout.NOTED]), layout.MAX_NOTES)
    notes = record[layout.NOTES : layout.NOTES + layout.NOTE * count].reshape(count, layout.NOTE)
    return notes[np.lexsort((notes[:, 1], notes[:, 0]))]


def _hazard(noted: Noted, site: Site, record: npt.NDArray[np.int64], kind: Kind, regions: Sequence[Cells]) -> Hazard:
    chain, occurrence = frames(site)
    argument, _ = noted.arguments[site.slots[0]]
    first = noted.slots[site.slots[0]].first
    notes = _notes(record)
    program, mark = (int(word) for word in notes[0, 1:])
    own = Side(site.access, chain[-1], occurrence, _program(program, noted.launch.grid))
    sides: tuple[Side, ...] = (own,)
    if kind is Kind.RACE:
        other = noted.sites[mark >> layout.MARK_SITE & (layout.MAX_SITES - 1)]
        other_chain, other_occurrence = frames(other)
        who = _program((mark >> layout.MARK_PROGRAM) - 1, noted.launch.grid)
        sides = (Side(other.access, other_chain[-1], other_occurrence, who), own)
    _, lowest = _lowest(record)
    offsets = np.append(notes[:, 0], lowest) if kind is Kind.UNINITIALIZED_READ else notes[:, 0]
    address = first + int(notes[0, 0])
    return Hazard(
        kind=kind, kernel=noted.launch.kernel, sides=sides, argument=argument.name, parameter=argument.parameter,
        scratch=not any(cells.view in argument.views for cells in regions), index=argument.shown.locate(address)[0],
        offsets=np.unique(offsets + first - argument.shown.address), lanes=int(record[layout.LANES]),
        programs=_programs(record), chain=chain, storage=argument.backing.address,
    )  # fmt: skip


def _lowest(record: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Program and offset of the least key."""
    key = ~int(record[layout.LOWEST])
    return (key >> layout.KEY_BITS) & 0x3FFFFF, (key & (2 * layout.KEY_BIAS - 1)) - layout.KEY_BIAS


def _fault(noted: Noted, site: Site, record: npt.NDArray[np.int64], regions: Sequence[Cells]) -> Fault:
    chain, occurrence = frames(site)
    argument = noted.arguments[site.slots[0]][0] if len(site.slots) == 1 else None
    first = noted.slots[site.slots[0] if site.slots else layout.ELSEWHERE].first
    program, offset = _lowest(record)
    fault = Fault(
        access=site.access, place=Place.GAP, kernel=noted.launch.kernel, frame=chain[-1], occurrence=occurrence,
        argument="", parameter="", index=(), byte_offset=0, between=False, landed="", landed_index=(),
        program=_program(program, noted.launch.grid), lanes=int(record[layout.LANES]), programs=_programs(record),
        chain=chain,
    )  # fmt: skip
    if argument is None:
        held = any(cells.backing.holds(first + offset, site.width) for cells in regions)
        fault.place = Place.GAP if held else Place.OUTSIDE
    else:
        fault.offsets = [int(note) + first - argument.shown.address for note in _notes(record)[:, 0]]
        _place(fault, argument, first + offset, site.width, noted, regions)
    return fault


def _place(fault: Fault, argument: Argument, address: int, width: int, noted: Noted, regions: Sequence[Cells]) -> None:
    """Say where an access landed."""
    fault.argument, fault.parameter = argument.name, argument.parameter
    fault.scratch = not any(cells.view in argument.views for cells in regions)
    if any(view.owns(address, width) for view in argument.views):
        byte, fault.place = address, Place.READ_ONLY
    else:
        byte = argument.first_bad_byte(address, width)
        fault.place = Place.GAP if argument.backing.holds(address, width) else Place.OUTSIDE
        others = [argument for argument, _ in noted.arguments.values()]
        fault.landed, fault.landed_index = _owner(byte, argument, regions, others)
    fault.index, fault.between = argument.shown.locate(byte)
    fault.byte_offset = byte - argument.shown.address


def _owner(
    byte: int, argument: Argument, regions: Sequence[Cells], arguments: Sequence[Argument]
) -> tuple[str, tuple[int, ...]]:
    """Name of the other tensor that owns a byte, and its index there."""
    for cells in regions:
        if cells.view not in argument.views and cells.view.owns(byte):
            return cells.region.name, cells.view.locate(byte)[0]
    for other in arguments:
        if other is not argument and any(view.owns(byte) for view in other.views):
            return other.name, other.shown.locate(byte)[0]
    return "", ()


def _programs(record: npt.NDArray[np.int64]) -> int:
    bits = record[layout.PROGRAMS :].view(np.uint64)
    return sum(int(word).bit_count() for word in bits[bits != 0])


def _program(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    rest, x = divmod(number, max(grid[0], 1))
    z, y = divmod(rest, max(grid[1], 1))
    return (x, y, z)


def frames(site: Site) -> tuple[tuple[Frame, ...], int]:
    """The user's lines from the kernel's own down to an access, and how often its text stood in the function before."""
    chain = [(file, line) for file, line in site.chain if not os.path.abspath(file).startswith(_TRITON)]
    found: list[Frame] = []
    called = _ACCESS
    for file, line in reversed(chain):
        frame = _frame(file, _call_line(file, line, called))
        called = re.compile(re.escape(frame.function))
        found.append(frame)
    if not found:
        return (Frame("", 0, "", ""),), 0
    return tuple(reversed(found)), _occurrence(found[0].file, found[0].line)


def _frame(file: str, line: int) -> Frame:
    function = _function(file, line)
    return Frame(file, line, function[0] if function else "", linecache.getline(file, line).strip())


def _call_line(file: str, line: int, called: re.Pattern[str]) -> int:
    """Where the call begins that a line is a part of: Triton may name the line of its last argument."""
    around = [
        call for call in _calls(file) if call[1] <= line <= call[2] and call[1] < call[2] and called.fullmatch(call[0])
    ]
    return max(around, key=lambda call: call[1])[1] if around else line


def _occurrence(file: str, line: int) -> int:
    function = _function(file, line)
    if function is None:
        return 0
    texts = [linecache.getline(file, number).strip() for number in range(function[1], line)]
    return texts.count(linecache.getline(file, line).strip())


@lru_cache(maxsize=4096)
def _function(file: str, line: int) -> tuple[str, int] | None:
    """Name and first line of the innermost function around a line."""
    around = [span for span in _functions(file) if span[1] <= line <= span[2]]
    return max(around, key=lambda span: span[1])[:2] if around else None


@lru_cache(maxsize=256)
def _tree(file: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@lru_cache(maxsize=256)
def _functions(file: str) -> list[tuple[str, int, int]]:
    """Name, first line (decorators included) and last line of every function of a file."""
    return [
        (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in ast.walk(_tree(file))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


@lru_cache(maxsize=256)
def _calls(file: str) -> list[tuple[str, int, int]]:
    """Name of what is called, first and last line of every call of a file."""
    return [
        (ast.unparse(node.func).rsplit(".", 1)[-1], node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Call)
    ]
