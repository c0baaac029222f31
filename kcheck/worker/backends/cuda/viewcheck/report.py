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

from kcheck.worker.backends.base import Fault, Frame, Launch, Place
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.instrument import Site
from kcheck.worker.backends.cuda.viewcheck.table import Slot
from kcheck.worker.backends.interpret.arguments import Argument, Cells

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
        records: Its records: int64 of shape (sites, RECORD).
        regions: The target's tensor arguments.
    """
    return [
        _fault(noted, site, record, regions)
        for site, record in zip(noted.sites, records, strict=True)
        if record[layout.LANES]
    ]


def _fault(noted: Noted, site: Site, record: npt.NDArray[np.int64], regions: Sequence[Cells]) -> Fault:
    chain, occurrence = frames(site)
    argument = noted.arguments[site.slots[0]][0] if len(site.slots) == 1 else None
    first = noted.slots[site.slots[0] if site.slots else layout.ELSEWHERE].first
    key = ~int(record[layout.LOWEST])
    program, offset = (key >> layout.KEY_BITS) & 0x3FFFFF, (key & (2 * layout.KEY_BIAS - 1)) - layout.KEY_BIAS
    fault = Fault(
        access=site.access, place=Place.GAP, kernel=noted.launch.kernel, frame=chain[-1], occurrence=occurrence,
        argument="", parameter="", index=(), byte_offset=0, between=False, landed="", landed_index=(),
        program=_program(program, noted.launch.grid), lanes=int(record[layout.LANES]), programs=_programs(record),
        chain=chain,
    )  # fmt: skip
    if argument is not None:
        count = min(int(record[layout.NOTED]), layout.MAX_OFFSETS)
        noted_offsets = record[layout.OFFSETS : layout.OFFSETS + count]
        fault.offsets = sorted(int(other) + first - argument.shown.address for other in noted_offsets)
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
