"""From records, as a GPU would leave them, to faults: where they landed is worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from kcheck.findings import Kind
from kcheck.worker.backends.base import Fault, Frame, Launch, Place, Region
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.instrument import Site
from kcheck.worker.backends.cuda.viewcheck.report import Noted, faults, hazards
from kcheck.worker.backends.cuda.viewcheck.table import Slot
from kcheck.worker.backends.interpret.arguments import Cells, data_ptr, match

SOURCE = """import triton


@triton.jit
def helper(x_ptr):
    return tl.load(
        x_ptr
    )


@triton.jit
def kernel(x_ptr):
    helper(x_ptr)
    helper(x_ptr)
"""
GRID = (4, 2, 1)


def record(*, lanes: int, program: int, offset: int, notes: list[tuple[int, int, int]]) -> npt.NDArray[np.int64]:
    words = np.zeros(layout.RECORD, np.int64)
    words[layout.LANES] = lanes
    words[layout.LOWEST] = ~((program << layout.KEY_BITS) | (offset + layout.KEY_BIAS))
    words[layout.NOTED] = len(notes)
    words[layout.NOTES : layout.NOTES + 3 * len(notes)] = np.array(notes).ravel()
    words[layout.PROGRAMS] = 1 << program | 1 << (program + 2)
    return words


def reported(
    tensor: torch.Tensor, path: Path, site: int, words: npt.NDArray[np.int64], access: str = "read"
) -> tuple[list[Fault], Noted, npt.NDArray[np.int64], list[Cells]]:
    """Faults of a launch whose only access has one record."""
    file = path / "source.py"
    file.write_text(SOURCE)
    regions = [Cells.of(Region("x", tensor, writable=False))]
    argument = match(tensor, "x_ptr", 1, regions)
    views = tuple(zip(argument.views, argument.may_write, strict=True))
    chain = ((str(file), 13), (str(file), 7))
    one = Site(access, chain, (0,), tensor.element_size())  # type: ignore[arg-type]
    noted = Noted(
        Launch("kernel", GRID, 8, Frame("", 0, "", "")),
        [one],
        {0: (argument, data_ptr(tensor))},
        {0: Slot(0, data_ptr(tensor), views)},
        "key",
    )
    records = np.zeros((layout.PER_SITE, layout.RECORD), np.int64)
    records[site] = words
    return faults(noted, records, regions), noted, records, regions


def test_a_stray_read_is_told_as_on_the_cpu(tmp_path: Path) -> None:
    tensor = torch.zeros(4, 16)[:, :3]
    words = record(lanes=9, program=5, offset=12, notes=[(64 + 16, 6, 0), (12, 5, 0)])
    (fault,) = reported(tensor, tmp_path, layout.STRAY, words)[0]
    assert (fault.access, fault.place, fault.kernel) == ("read", Place.GAP, "kernel")
    assert (fault.argument, fault.parameter, fault.index) == ("x", "x_ptr", (0, 3))
    assert (fault.lanes, fault.programs, fault.program) == (9, 2, (1, 1, 0))
    assert (fault.byte_offset, fault.offsets) == (12, [12, 80])
    assert [(f.line, f.function, f.source) for f in fault.chain] == [
        (13, "kernel", "helper(x_ptr)"),
        (6, "helper", "return tl.load("),  # the call's first line, not that of its last argument
    ]
    assert fault.frame is fault.chain[-1]
    assert not fault.scratch


def test_what_lies_in_front_of_the_memory_is_outside(tmp_path: Path) -> None:
    words = record(lanes=1, program=0, offset=-8, notes=[(-8, 0, 0)])
    (fault,) = reported(torch.zeros(4), tmp_path, layout.STRAY, words)[0]
    assert (fault.place, fault.byte_offset, fault.index) == (Place.OUTSIDE, -8, (-2,))


def test_a_write_to_an_element_that_must_not_be_written(tmp_path: Path) -> None:
    words = record(lanes=1, program=0, offset=8, notes=[(8, 0, 0)])
    (fault,) = reported(torch.zeros(4), tmp_path, layout.STRAY, words, access="write")[0]
    assert (fault.place, fault.index) == (Place.READ_ONLY, (2,))


def test_a_race_names_both_programs(tmp_path: Path) -> None:
    mark = (3 + 1) << layout.MARK_PROGRAM | 0 << layout.MARK_SITE
    words = record(lanes=2, program=1, offset=4, notes=[(4, 1, mark)])
    found, noted, records, regions = reported(torch.zeros(4), tmp_path, layout.RACE, words, access="write")
    assert not found
    (hazard,) = hazards(noted, records, regions)
    assert hazard.kind is Kind.RACE
    assert [side.program for side in hazard.sides] == [(3, 0, 0), (1, 0, 0)]
    assert (hazard.argument, hazard.index, hazard.offsets.tolist()) == ("x", (1,), [4])


def test_a_read_of_what_nobody_wrote(tmp_path: Path) -> None:
    words = record(lanes=7, program=2, offset=0, notes=[(8, 3, 0)])
    _, noted, records, regions = reported(torch.zeros(4), tmp_path, layout.UNWRITTEN, words)
    (hazard,) = hazards(noted, records, regions)
    assert hazard.kind is Kind.UNINITIALIZED_READ
    assert hazard.offsets.tolist() == [0, 8]
    assert len(hazard.sides) == 1


def test_a_store_with_two_values_is_a_conflict_unless_another_program_was_there(tmp_path: Path) -> None:
    words = record(lanes=1, program=1, offset=4, notes=[(4, 1, 0)])
    _, noted, records, regions = reported(torch.zeros(4), tmp_path, layout.CONFLICT, words, access="write")
    (hazard,) = hazards(noted, records, regions)
    assert (hazard.kind, hazard.index) == (Kind.SCATTER_CONFLICT, (1,))
    records[layout.RACE] = record(lanes=1, program=1, offset=4, notes=[(4, 1, 1 << layout.MARK_PROGRAM)])
    assert [hazard.kind for hazard in hazards(noted, records, regions)] == [Kind.RACE]


def test_what_another_access_raced_with_is_no_conflict(tmp_path: Path) -> None:
    words = record(lanes=1, program=1, offset=4, notes=[(4, 1, 0)])
    _, noted, records, regions = reported(torch.zeros(4), tmp_path, layout.CONFLICT, words, access="write")
    noted.sites = [*noted.sites, noted.sites[0]]
    raced_elsewhere = np.zeros_like(records)
    raced_elsewhere[layout.RACE] = record(lanes=1, program=2, offset=4, notes=[(4, 2, 2 << layout.MARK_PROGRAM)])
    found = hazards(noted, np.concatenate((records, raced_elsewhere)), regions)
    assert [hazard.kind for hazard in found] == [Kind.RACE]
