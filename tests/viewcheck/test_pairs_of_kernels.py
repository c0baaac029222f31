"""Kernels before and after a fix under the view check: what is wrong is named, what is right is silent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.events import CaseVerdict, RunDone, TargetResult
from kcheck.findings import Finding, Kind, Severity
from kcheck.store import Store

KERNELS = Path(__file__).parent.parent / "kernels"


def run(spec: str, checker: Client, tmp_path: Path, max_examples: int = 10) -> TargetResult:
    (loaded,) = loader.load(str(KERNELS / spec))
    settings = Settings(max_examples=max_examples, max_time=60.0, seed=1)
    campaign = Campaign([loaded], checker, Store(tmp_path).open(), settings, checker.backend)
    done = list(campaign.run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0]


@dataclass(frozen=True)
class Stated:
    """What must be found of a wrong kernel.

    Attributes:
        spec: The target.
        kind: Kind of the finding.
        argument: What the pointer came from.
        line: How the source line begins.
        index: First element.
        severity: Of the finding.
        also: Other kinds that the same bug rightly shows as.
    """

    spec: str
    kind: Kind
    argument: str
    line: str
    index: tuple[int, ...]
    severity: Severity = Severity.ERROR
    also: frozenset[Kind] = frozenset()


MADE = " (made by the target)"
UNINITIALIZED = Kind.UNINITIALIZED_READ
WRONG = [
    # Both halves of a row go to its first 16 columns; the others get nothing.
    Stated(
        "view_races.py::split_wrong",
        Kind.RACE,
        "out",
        "tl.store(out_ptr",
        (0, 0),
        also=frozenset({Kind.UNWRITTEN_OUTPUT}),
    ),
    # Tiles of 8: element 7 is the one that program 0 writes and program 1 reads.
    Stated("view_races.py::shift_wrong", Kind.RACE, "x", "tl.store(out_ptr", (7,)),
    Stated("view_races.py::total_wrong", Kind.RACE, "total_ptr" + MADE, "tl.store(total_ptr", (0,)),
    Stated("view_races.py::last_program_wrong", Kind.RACE, "parts_ptr" + MADE, "tl.store(parts_ptr", (0,)),
    Stated("view_races.py::flag_plain", Kind.RACE, "flag_ptr" + MADE, "tl.store(flag_ptr", (0,), Severity.WARNING),
    Stated("view_races.py::scatter_wrong", Kind.SCATTER_CONFLICT, "out", "tl.store(out_ptr + place", ()),
    # One element: the tail of the tile begins at 1.
    Stated(
        "view_values.py::padded_sum_wrong",
        UNINITIALIZED,
        "parts_ptr" + MADE,
        "parts = tl.load(parts_ptr + lanes)",
        (1,),
    ),
    Stated("view_values.py::zeroed_wrong", UNINITIALIZED, "parts_ptr" + MADE, "parts = tl.load(parts_ptr", (1,)),
    Stated(
        "view_values.py::zeroed_harmless", UNINITIALIZED, "parts_ptr" + MADE, "parts = tl.load(", (1,), Severity.WARNING
    ),
    Stated(
        "view_values.py::row_max_wrong",
        UNINITIALIZED,
        "return",
        "values = tl.load(x_ptr",
        (0,),
        Severity.WARNING,
        # Where all values are below zero, the zero that such a lane holds here is the largest.
        also=frozenset({Kind.VALUE_MISMATCH}),
    ),
    Stated("view_values.py::rows_wrong", Kind.OFFSET_OVERFLOW, "x", "values = tl.load(x_ptr", ()),
    Stated("view_values.py::pick_wrong", Kind.OUT_OF_BOUNDS_READ, "pool", "values = tl.load(pool_ptr", (-1, 0)),
    Stated("view_values.py::clear_wrong", Kind.OUT_OF_VIEW_WRITE, "out", "tl.store(out_ptr", (0, 1)),
    Stated("logits_rows.py::wrong", Kind.OUT_OF_VIEW_READ, "logits", "logits = tl.load(", (0, 1)),
    Stated("one_off.py::wrong", Kind.OUT_OF_BOUNDS_READ, "table", "page = tl.load(table_ptr", (0, 1)),
    Stated("oob_write.py::wrong", Kind.OUT_OF_BOUNDS_WRITE, "y", "tl.store(y_ptr", (1,)),
    Stated("expanded_grad.py::wrong", Kind.OUT_OF_VIEW_READ, "grad", "grad = tl.load(grad_ptr", (0, 1)),
    Stated("interleaved.py::wrong", Kind.OUT_OF_VIEW_READ, "k_pool", "values = tl.load(k_ptr", ()),
    Stated("view_hints.py::rows_wrong", Kind.FALSE_HINT, "", "x_row = tl.multiple_of(x_row", ()),
    Stated("view_hints.py::pointer_wrong", Kind.FALSE_HINT, "x", "tl.multiple_of(x_ptr", ()),
    Stated("view_hints.py::gather_wrong", Kind.FALSE_HINT, "", "place = tl.max_contiguous(place", ()),
    Stated("view_hints.py::grouped_wrong", Kind.FALSE_HINT, "", "which = tl.max_constancy(which", ()),
    Stated("view_hints.py::tile_wrong", Kind.FALSE_HINT, "", "offsets = tl.max_contiguous(tl.multiple_of", ()),
    Stated("made_by_target.py::into_empty", UNINITIALIZED, "out_ptr" + MADE, "tl.atomic_add(out_ptr", (0,)),
]


@pytest.mark.parametrize("stated", WRONG, ids=lambda stated: stated.spec)
def test_what_is_wrong_is_named(stated: Stated, checker: Client, tmp_path: Path) -> None:
    result = run(stated.spec, checker, tmp_path)
    assert result.verdict is CaseVerdict.FINDINGS
    found: dict[Kind, Finding] = {one.finding.kind: one.finding for one in result.discoveries}
    assert len(found) == len(result.discoveries), [one.finding.message for one in result.discoveries]
    assert set(found) - stated.also == {stated.kind}
    finding = found[stated.kind]
    assert (finding.argument, finding.severity) == (stated.argument, stated.severity)
    assert finding.source.startswith(stated.line)
    assert Path(finding.file).name == stated.spec.partition("::")[0]
    if stated.index:
        assert finding.index == stated.index
    assert {one.tool for one in result.discoveries} == {"viewcheck"}


RIGHT = [
    *(f"view_races.py::{name}_right" for name in ("split", "shift", "total", "last_program", "scatter")),
    "view_races.py::flag_atomic",
    "view_races.py::locked",
    *(f"view_values.py::{name}_right" for name in ("padded_sum", "row_max", "rows", "pick", "clear")),
    "view_values.py::hashed",
    *(f"view_hints.py::{name}_right" for name in ("rows", "pointer", "gather", "grouped", "tile")),
    *(f"view_hints.py::{name}" for name in ("wrapped", "clamped", "matmul", "all_true")),
    *(f"{name}.py::fixed" for name in ("logits_rows", "one_off", "oob_write", "expanded_grad", "interleaved")),
    "controls.py::any_stride_copy",
    "controls.py::in_place",
    "controls.py::masked_tail",
    "controls_matmul.py::matmul",
    "controls_reduce.py::atomic_column_sum",
    "controls_reduce.py::last_block_sum",
    "made_by_target.py::fixed",
    "made_by_target.py::into_zeros",
]


@pytest.mark.parametrize("spec", RIGHT)
def test_what_is_right_is_silent(spec: str, checker: Client, tmp_path: Path) -> None:
    result = run(spec, checker, tmp_path)
    assert result.verdict is CaseVerdict.MATCH, (result.reasons, [d.finding.message for d in result.discoveries])


def test_a_race_names_both_lines_and_both_programs(checker: Client, tmp_path: Path) -> None:
    (discovery,) = run("view_races.py::shift_wrong", checker, tmp_path, max_examples=0).discoveries
    finding = discovery.finding
    source = (KERNELS / "view_races.py").read_text().splitlines()
    reading = next(number for number, line in enumerate(source, 1) if "before = tl.load(x_ptr + (lanes - 1)" in line)
    assert finding.line == reading + 1
    assert "writes x[7] in program (0, 0, 0) and reads it in program (1, 0, 0)" in finding.message
    assert f"(line {reading})" in finding.message
    assert finding.notes[0].startswith(f"the other access: {KERNELS / 'view_races.py'}:{reading}: before = tl.load(")


def test_a_false_hint_says_what_is_not_so_and_what_it_changes(checker: Client, tmp_path: Path) -> None:
    (discovery,) = run("view_hints.py::rows_wrong", checker, tmp_path).discoveries
    finding, x = discovery.finding, discovery.case.views["x"].layout
    stride = x.strides[0]
    assert stride % 4
    assert finding.message == f"rows_kernel tells the compiler that x_row is a multiple of 4, but it is {stride}"
    assert (finding.parameter, finding.program) == ("x_row", (0, 0, 0))
    assert f"with {stride - stride % 4} in place of {stride}" in finding.notes[0]
    assert finding.notes[0].endswith("return[1, 0] changes")  # row 0 begins at the start with any stride


def test_a_loop_that_never_ends_with_a_true_hint_is_left(checker: Client, tmp_path: Path) -> None:
    result = run("view_hints.py::stepping", checker, tmp_path)
    kinds = {one.finding.kind for one in result.discoveries}
    assert kinds <= {Kind.FALSE_HINT}
    assert CaseVerdict.COULD_NOT_CHECK not in result.cases


def test_the_path_to_a_stray_access_is_part_of_the_finding(checker: Client, tmp_path: Path) -> None:
    (discovery,) = run("view_values.py::clear_wrong", checker, tmp_path).discoveries
    finding, out = discovery.finding, discovery.case.views["out"].layout
    # The lanes of a row, from its first element to the first one behind its width.
    row = finding.program[0]
    assert finding.path == tuple(out.first + row * out.strides[0] + lane for lane in range(out.shape[1] + 1))
    assert finding.steps == len(finding.path)
    assert finding.path[-1] == finding.cells[0]
    assert Finding.from_json(finding.to_json()) == finding


def test_a_wrapped_offset_says_where_it_wrapped(checker: Client, tmp_path: Path) -> None:
    (discovery,) = run("view_values.py::rows_wrong", checker, tmp_path, max_examples=0).discoveries
    finding, x = discovery.finding, discovery.case.views["x"].layout
    assert "start = row.to(tl.int64) * x_row if WIDE else row * x_row" in finding.notes[0]
    # The first row whose offset does not fit in 31 bits.
    row = next(row for row in range(x.shape[0]) if row * x.strides[0] >= 2**31)
    assert finding.message.endswith(f"in 64 bits it is {4 * row * x.strides[0]:,} bytes")


def test_a_program_that_waits_is_could_not_check(checker: Client, tmp_path: Path) -> None:
    result = run("view_races.py::look_back", checker, tmp_path, max_examples=0)
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "waits for another program" in result.reasons[0]
