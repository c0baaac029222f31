"""What the console says of known findings, of those that are gone, and of skipped targets."""

from __future__ import annotations

import io

from kcheck.case import Case
from kcheck.events import BugFound, CaseVerdict, Discovery, Event, Gone, RunDone, RunStarted, TargetDone, TargetResult
from kcheck.findings import Finding, Kind
from kcheck.reports.console import ConsoleReport, make_console

ISSUE = "https://example.org/issues/7"
FINDING = Finding(Kind.OUT_OF_VIEW_READ, "x_kernel reads outside of x", kernel="x_kernel", argument="x")
KNOWN = Discovery("x", "x.py::x", FINDING, "0" * 12, Case(), known=ISSUE)


def shown(result: TargetResult) -> str:
    stream = io.StringIO()
    report = ConsoleReport(make_console(stream, color=False, width=100))
    events: list[Event] = [
        RunStarted(("x",), "interpret", 1, {}),
        *(BugFound(discovery) for discovery in result.discoveries),
        TargetDone(result),
        RunDone((result,), False, 1.0),
    ]
    for event in events:
        report.handle(event)
    return stream.getvalue()


def test_a_known_finding_is_two_lines_with_its_issue() -> None:
    text = shown(TargetResult("x", CaseVerdict.FINDINGS, discoveries=(KNOWN,)))
    assert "KNOWN  out-of-view-read · x · x_kernel\n    https://example.org/issues/7\n" in text
    assert FINDING.message not in text
    assert "no new findings, 1 known, 1 target" in text


def test_a_finding_that_is_gone_is_told() -> None:
    text = shown(TargetResult("x", CaseVerdict.MATCH, gone=(Gone("0" * 12, ISSUE, "it is gone"),)))
    assert "  gone       it is gone" in text
    assert "no findings, 1 gone, 1 target" in text


def test_a_skipped_target_is_seen() -> None:
    text = shown(TargetResult("x", CaseVerdict.COULD_NOT_CHECK, ("no kernel ever launched",), allowed=True))
    assert "COULD NOT CHECK  x" in text
    assert "no kernel ever launched" in text
    assert "skipped    --allow-skip lets the run pass all the same" in text
    assert "1 could not check" in text
