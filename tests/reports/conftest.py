"""One run in events: a gather kernel with a wrong row stride, and a kernel that never launched."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kcheck.case import Case, DTypeValue, Role, Tensor
from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Cell,
    Discovery,
    Event,
    Phase,
    PhaseStarted,
    RunDone,
    RunStarted,
    TargetDone,
    TargetResult,
    TargetStarted,
    WorkerReplaced,
)
from kcheck.fill import Fill
from kcheck.findings import Finding, Kind, Mismatch, SourceFrame
from kcheck.layout import Dim, Layout, LayoutKind, Plane
from kcheck.reports.record import Recorder, RunRecord

SOURCE = """\
@triton.jit
def _gather_kernel(out, pool, table, seq_lens, width, BLOCK: tl.constexpr):
    request = tl.program_id(0)
    position = tl.arange(0, BLOCK)
    mask = position < tl.load(seq_lens + request)
    page = tl.load(table + request * width + position[None, :] // 4, mask=mask)  # width is shape[-1]

    row = tl.load(pool + page[:, None] * 128 + tl.arange(0, 128))
"""
FAULTY = 6


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer's own terminal is set to does not matter."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def source_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel's file, below the working directory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mylib" / "gather.py"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    return file


@pytest.fixture
def case() -> Case:
    """A small case: 2 requests, a narrowed table, one plane of an interleaved pool."""
    return Case(
        out=Tensor("float32", Layout((Dim(2), Dim(8))), role=Role.OUTPUT),
        pool=Tensor("bfloat16", Layout((Dim(4), Dim(4), Dim(128)), order=(0, 3, 1, 2), planes=(Plane(2, 0),))),
        seq_lens=Tensor("int32", Layout.contiguous((2,)), Fill.of((9, 12)), Role.INDEX),
        block_table=Tensor(
            "int32", Layout((Dim(2), Dim(3, after=13))), Fill.of((3, 1, 0, 2, 2, 1)), Role.INDEX, bound=4
        ),
        block_size=4,
        scale=0.5,
        dtype=DTypeValue("bfloat16"),
    )


@pytest.fixture
def wild_read(source_file: Path, case: Case) -> Discovery:
    """A read outside the table's view."""
    line = SOURCE.splitlines()[FAULTY - 1].strip()
    finding = Finding(
        Kind.OUT_OF_VIEW_READ,
        "_gather_kernel reads block_table outside of its view: request 1 reads what lies behind row 0.",
        kernel="_gather_kernel",
        file=str(source_file),
        line=FAULTY,
        source=line,
        argument="block_table",
        parameter="table",
        index=(0, 3),
        program=(1, 0, 0),
        count=3,
        programs=1,
        cells=(3, 4, 5),
        chain=(SourceFrame(str(source_file), FAULTY, "_gather_kernel", line),),
    )
    related = Finding(Kind.VALUE_MISMATCH, "8 of 16 elements differ from the oracle.", argument="out")
    return Discovery(
        target="gather",
        spec="kcheck_gather.py::gather",
        finding=finding,
        fingerprint=finding.fingerprint("gather"),
        case=case,
        layout_kinds=(LayoutKind.NARROWED, LayoutKind.PADDED),
        seen=12,
        culprit="block_table",
        related=(related,),
    )


@pytest.fixture
def mismatch(case: Case) -> Discovery:
    """Wrong values in the output, because of the table's layout; not shrunk to the end."""
    examples = tuple(((1, i), 0.5 * i, float("nan") if i == 2 else -0.25) for i in range(8))
    finding = Finding(
        Kind.VALUE_MISMATCH,
        "out differs from the oracle.",
        argument="out",
        index=(1, 0),
        count=8,
        mismatch=Mismatch("out", 8, 16, (1, 7), 3.5, -0.25, 1.3e-6, "oracle", examples),
        notes=("The oracle ran on float64 copies as well.",),
    )
    return Discovery(
        "gather",
        "kcheck_gather.py::gather",
        finding,
        finding.fingerprint("gather"),
        case,
        (LayoutKind.CONTIGUOUS,),
        seen=3,
        culprit="block_table",
        minimal=False,
    )


@pytest.fixture
def results(wild_read: Discovery, mismatch: Discovery) -> tuple[TargetResult, TargetResult]:
    """A target with two bugs, and one that could not be checked."""
    matrix: dict[str, dict[LayoutKind, Cell]] = {
        name: {kind: Cell.MATCH for kind in LayoutKind if kind is not LayoutKind.EMPTY} for name in wild_read.case.views
    }
    matrix["block_table"] |= {LayoutKind.NARROWED: Cell.FINDING, LayoutKind.PADDED: Cell.FINDING}
    matrix["pool"] |= {LayoutKind.TRANSPOSED: Cell.REJECTED, LayoutKind.FAR: Cell.COULD_NOT_CHECK}
    gather = TargetResult(
        "gather",
        CaseVerdict.FINDINGS,
        notes=("scale is the same in every case.",),
        cases={CaseVerdict.MATCH: 1380, CaseVerdict.REJECTED: 30, CaseVerdict.FINDINGS: 15},
        seconds=14.25,
        matrix=matrix,
        discoveries=(wild_read, mismatch),
        launches={"_gather_kernel": 1395},
    )
    scatter = TargetResult(
        "scatter",
        CaseVerdict.COULD_NOT_CHECK,
        ("_scatter_kernel never launched: the result proves nothing about it.",),
        cases={CaseVerdict.MATCH: 80},
        seconds=1.25,
        matrix={"x": {LayoutKind.CONTIGUOUS: Cell.MATCH}},
    )
    return gather, scatter


@pytest.fixture
def events(results: tuple[TargetResult, TargetResult]) -> Sequence[Event]:
    """The whole run."""
    gather, scatter = results
    versions = {"kcheck": "0.1.0", "triton": "3.7.1", "torch": "2.13.0"}
    return (
        RunStarted(("gather", "scatter"), "interpret", 42, versions),
        TargetStarted("gather"),
        PhaseStarted("gather", Phase.SWEEP, 2),
        CaseDone("gather", Phase.SWEEP, CaseVerdict.MATCH, 0.5),
        CaseDone("gather", Phase.SWEEP, CaseVerdict.FINDINGS, 0.25),
        BugFound(gather.discoveries[0]),
        PhaseStarted("gather", Phase.RANDOM),
        WorkerReplaced("gather", "the worker was ended by signal 9 (SIGKILL).", 0.03),
        BugFound(gather.discoveries[1]),
        TargetDone(gather),
        TargetStarted("scatter"),
        TargetDone(scatter),
        RunDone((gather, scatter), False, 15.5),
    )


@pytest.fixture
def record(events: Sequence[Event]) -> RunRecord:
    """The whole run, gathered."""
    return recorded(events)


@pytest.fixture
def partial(events: Sequence[Event]) -> RunRecord:
    """The run, stopped after its first target."""
    return recorded(events[:10])


def recorded(events: Sequence[Event]) -> RunRecord:
    """What a report knows after these events."""
    recorder = Recorder()
    for event in events:
        recorder.handle(event)
    return recorder.record()


@pytest.fixture
def schemas() -> Path:
    """The folder of official schemas, which is not part of the repository: ``$KCHECK_SCHEMAS``, or beside it."""
    default = Path(__file__).parents[2].parent / "shared" / "schemas"
    return Path(os.environ.get("KCHECK_SCHEMAS", default))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file of golden/; ``KCHECK_UPDATE_GOLDEN=1`` writes the file instead."""

    def compare(name: str, text: str) -> None:
        file = Path(request.path).parent / "golden" / name
        if os.environ.get("KCHECK_UPDATE_GOLDEN") == "1":
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return compare
