"""Reports of shards, made by hand: each fact is stated, none is copied from a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kcheck
from kcheck.case import Case, Tensor
from kcheck.events import CaseVerdict, Cell, Discovery, Shard, TargetResult
from kcheck.evidence import Evidence
from kcheck.findings import Finding, Kind, Severity
from kcheck.join import judged
from kcheck.layout import Dim, Layout, LayoutKind
from kcheck.reports.json_report import render_json
from kcheck.reports.record import RunRecord

Write = Callable[..., Path]


def narrowed(rows: int) -> Case:
    """A case whose x has that many rows, two of four columns."""
    return Case(x=Tensor("float32", Layout((Dim(rows), Dim(2, after=2)))))


def discovery(rows: int = 2, **changes: Any) -> Discovery:
    """A stray read of x, in a case with that many rows."""
    fields: dict[str, Any] = {
        "target": "t",
        "spec": "kcheck_t.py::t",
        "finding": Finding(Kind.OUT_OF_VIEW_READ, "stray", kernel="k", source="tl.load(x)", argument="x"),
        "fingerprint": "a" * 12,
        "case": narrowed(rows),
        "layout_kinds": (LayoutKind.NARROWED,),
        "culprit": "x",
    }
    return Discovery(**fields | changes)


def part(
    matches: int = 10,
    *,
    found: Sequence[Discovery] = (),
    launches: int = 1,
    matrix: dict[str, dict[LayoutKind, Cell]] | None = None,
    **facts: Any,
) -> TargetResult:
    """What one shard says of the target t, which has a kernel k."""
    result = TargetResult(
        name="t",
        verdict=CaseVerdict.MATCH,
        cases={CaseVerdict.MATCH: matches} if matches else {},
        seconds=2.0,
        matrix=matrix or {},
        discoveries=tuple(found),
        launches={"k": launches} if launches else {},
        evidence=replace(Evidence(kernels=("k",), varied=matches), **facts),
    )
    return judged(result)


def record(result: TargetResult | None, index: int = 1, of: int = 2, **changes: Any) -> RunRecord:
    """The report of one shard."""
    fields: dict[str, Any] = {
        "backend": "interpret",
        "seed": 7,
        "versions": {"kcheck": kcheck.__version__, "torch": "2.0"},
        "targets": ("t",),
        "results": () if result is None else (result,),
        "interrupted": False,
        "seconds": 3.0,
        "shard": Shard(index, of),
        "identity": {"targets": "kcheck_t.py::t", "pins": "none", "source": "ab" * 8},
    }
    return RunRecord(**fields | changes)


def grave(severity: Severity) -> Finding:
    """The stray read, as grave as that."""
    return Finding(Kind.OUT_OF_VIEW_READ, "stray", severity=severity, kernel="k", source="tl.load(x)", argument="x")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a report into the test's folder."""

    def written(one: RunRecord, name: str = "") -> Path:
        shard = one.shard
        path = tmp_path / (name or f"shard-{shard.index if shard else 'all'}.json")
        path.write_text(render_json(one), encoding="utf-8")
        return path

    return written
