"""What a baseline adds to the JSON report comes back from it."""

from __future__ import annotations

from pathlib import Path

from kcheck.case import Case
from kcheck.events import CaseVerdict, Discovery, Gone, TargetResult
from kcheck.findings import Finding, Kind
from kcheck.reports.json_reader import read_report
from kcheck.reports.json_report import render_json
from kcheck.reports.record import RunRecord

ISSUE = "https://example.org/issues/7"


def test_known_gone_and_allowed_round_trip(tmp_path: Path) -> None:
    found = Discovery("x", "x.py::x", Finding(Kind.LEAK, "a leak"), "0" * 12, Case(), known=ISSUE, tool="memcheck")
    result = TargetResult(
        "x",
        CaseVerdict.FINDINGS,
        ("half of it",),
        discoveries=(found,),
        gone=(Gone("1" * 12, ISSUE, "it is gone"),),
        allowed=True,
    )
    path = tmp_path / "report.json"
    path.write_text(render_json(RunRecord(targets=("x",), results=(result,))), encoding="utf-8")
    assert read_report(path).results == (result,)
