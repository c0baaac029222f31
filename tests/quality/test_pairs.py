"""Every planted bug is found and shrunk to a stated case; its fixed twin is silent.

The stated cases are what a person would call minimal: by the mechanism of each bug, nothing smaller shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.events import CaseVerdict, Discovery, RunDone, TargetResult
from kcheck.findings import Kind
from kcheck.layout import Layout
from kcheck.store import Store

KERNELS = Path(__file__).parent.parent / "kernels"


def run(spec: str, client: Client, tmp_path: Path, max_examples: int = 60, seed: int = 1) -> TargetResult:
    if not spec.startswith("builtin:"):
        spec = str(KERNELS / spec)
    (loaded,) = loader.load(spec)
    store = Store(tmp_path).open()
    settings = Settings(max_examples=max_examples, max_time=60.0, seed=seed)
    campaign = Campaign([loaded], client, store, settings, "interpret")
    done = list(campaign.run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0]


@dataclass(frozen=True)
class Stated:
    """What a bug's finding must be.

    Attributes:
        spec: The target.
        kind: Kind of the finding.
        argument: The argument to blame.
        line: Part of the source line.
        shapes: Sizes of arguments in the minimal case.
        cut: Layout of the argument in the minimal case, as code behind the dense tensor.
        index: First wrong element.
    """

    spec: str
    kind: Kind
    argument: str
    line: str
    shapes: dict[str, tuple[int, ...]]
    cut: str = ""
    index: tuple[int, ...] | None = None


READ, WRITE = Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_VIEW_WRITE
TABLE = Stated(
    "two_bugs.py::table_stride", READ, "table", "page = tl.load(table_ptr", {"table": (2, 1)}, "[:, :1]", (0, 1)
)
ROWS = Stated("two_bugs.py::output_rows", WRITE, "out", "tl.store(out_ptr", {"table": (1, 2)}, "[:, :8]", (0, 8))
PAIRS = [
    # A second row is needed for a wrong row stride to show, and one column.
    TABLE,
    ROWS,
    Stated("logits_rows.py::wrong", READ, "logits", "logits = tl.load(", {"logits": (2, 1)}, "[:, :1]", (0, 1)),
    Stated("expanded_grad.py::wrong", READ, "grad", "grad = tl.load(grad_ptr", {"grad": (2, 1)}, "[:, :1]", (0, 1)),
    Stated("interleaved.py::wrong", READ, "k_pool", "values = tl.load(k_ptr", {"ids": (1,)}),
    # One element is enough where the tail is not masked, where the layout does not matter, or where logic is wrong.
    Stated("oob_write.py::wrong", Kind.OUT_OF_BOUNDS_WRITE, "y", "tl.store(y_ptr", {"y": (1,)}, "", (1,)),
    *(
        Stated(spec, Kind.OUT_OF_BOUNDS_READ, "table", "page = tl.load(table_ptr", {"table": (1, 1)}, "", (0, 1))
        for spec in ("one_off.py::wrong", "one_off.py::wrong_sum")
    ),
    Stated("logic_bug.py::wrong", Kind.VALUE_MISMATCH, "mean", "row_mean_kernel[", {"x": (1, 1)}, "", (0,)),
    # Columns are 32 or 64 there, and the second half of them is not written.
    Stated("unwritten.py::wrong", Kind.UNWRITTEN_OUTPUT, "out", "scale_kernel[", {"out": (1, 32)}, "", (0, 16)),
    # The strategies begin at 2 columns, and at 2 programs.
    Stated("mutated.py::wrong", Kind.INPUT_MUTATED, "x", "tl.store(x_ptr", {"x": (1, 2)}, ""),
    Stated("nondeterministic.py::wrong", Kind.RACE, "out", "tl.store(out_ptr, value)", {"x": (2,)}, "", (0,)),
]


def check(discovery: Discovery, stated: Stated) -> None:
    finding, case = discovery.finding, discovery.case
    assert finding.kind is stated.kind
    assert finding.argument == stated.argument
    assert stated.line in finding.source
    assert {name: case.views[name].layout.shape for name in stated.shapes} == stated.shapes
    if stated.cut or not discovery.culprit:
        assert case.views[stated.argument].layout.suffix() == stated.cut
    if stated.index is not None:
        assert finding.index == stated.index
    others = {name: view.layout for name, view in case.views.items() if name != stated.argument}
    assert others == {name: Layout.contiguous(layout.shape) for name, layout in others.items()}
    assert discovery.minimal


@pytest.mark.parametrize("stated", PAIRS, ids=lambda stated: stated.spec)
def test_a_planted_bug_is_found_once_and_shrunk(stated: Stated, client: Client, tmp_path: Path) -> None:
    result = run(stated.spec, client, tmp_path)
    assert result.verdict is CaseVerdict.FINDINGS
    assert len(result.discoveries) == 1, [d.finding.message for d in result.discoveries]
    check(result.discoveries[0], stated)


def test_two_bugs_in_one_kernel_are_two_findings_each_minimal(client: Client, tmp_path: Path) -> None:
    result = run("two_bugs.py::both", client, tmp_path)
    found = {d.finding.argument: d for d in result.discoveries}
    assert len(result.discoveries) == len(found) == 2
    for stated in (TABLE, ROWS):
        check(found[stated.argument], stated)


def test_the_founding_bug_is_found_and_shrunk(client: Client, tmp_path: Path) -> None:
    (discovery,) = run("builtin:paged_gather_shape_stride", client, tmp_path, max_examples=20).discoveries
    finding, case = discovery.finding, discovery.case
    table = case.views["block_table"].layout
    assert (finding.kind, finding.argument, discovery.culprit) == (Kind.OUT_OF_VIEW_READ, "block_table", "block_table")
    assert finding.source.startswith("page = tl.load(table_ptr")
    assert table.shape[0] == 2
    assert table.shape[1] <= 2
    assert table.suffix() == f"[:, :{table.shape[1]}]"
    assert discovery.replay.startswith(f"kcheck replay {discovery.fingerprint}")


FIXED = sorted({stated.spec.partition("::")[0] + "::fixed" for stated in PAIRS})
CONTROLS = [
    "controls.py::any_stride_copy",
    "controls.py::in_place",
    "controls.py::masked_tail",
    "controls_matmul.py::matmul",
    "controls_reduce.py::atomic_column_sum",
    "controls_reduce.py::last_block_sum",
    "nondeterministic.py::atomic_sum",
    "made_by_target.py::fixed",
    "made_by_target.py::may_stay",
    "made_by_target.py::into_zeros",
    "rounding.py::sequential_sum",
    "rounding.py::atomic_sum",
    "rounding.py::two_orders",
    "rounding.py::layer_norm",
    "builtin:paged_gather",
    "builtin:paged_gather_contiguous",
]


@pytest.mark.parametrize("spec", FIXED + CONTROLS)
def test_what_is_right_is_silent(spec: str, client: Client, tmp_path: Path) -> None:
    result = run(spec, client, tmp_path, max_examples=40)
    assert result.verdict is CaseVerdict.MATCH, (result.reasons, [d.finding.message for d in result.discoveries])


def test_a_clean_rejection_is_no_finding_and_no_pass(client: Client, tmp_path: Path) -> None:
    result = run("controls.py::clean_rejection", client, tmp_path)
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert result.reasons[0].startswith("no layout of x but contiguous ones was accepted: ")
    assert "ValueError: x must be contiguous" in result.reasons[0]


@pytest.mark.parametrize(
    ("spec", "kind", "argument"),
    [
        ("made_by_target.py::unwritten", Kind.UNWRITTEN_OUTPUT, "return"),
        ("made_by_target.py::unwritten_without_oracle", Kind.UNWRITTEN_OUTPUT, "return"),
        ("made_by_target.py::into_empty", Kind.UNINITIALIZED_READ, "out_ptr (made by the target)"),
        ("made_by_target.py::temporary", Kind.OUT_OF_BOUNDS_READ, "x (made by the target)"),
    ],
)
def test_a_bug_with_a_tensor_that_the_wrapper_makes_is_one_finding(
    spec: str, kind: Kind, argument: str, client: Client, tmp_path: Path
) -> None:
    """And it never accuses an argument that has nothing to do with it."""
    for seed in (1, 2, 3):
        result = run(spec, client, tmp_path / str(seed), max_examples=40, seed=seed)
        assert [(d.finding.kind, d.finding.argument) for d in result.discoveries] == [(kind, argument)]
