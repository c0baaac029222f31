"""Workflow commands and the job summary of GitHub Actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kcheck.errors import UsageError
from kcheck.events import Discovery, Event, Gone, RunDone
from kcheck.findings import Severity
from kcheck.reports import open_reports
from kcheck.reports.github_report import GithubReport, render_github
from kcheck.reports.record import RunRecord


@pytest.fixture(autouse=True)
def no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests may run in GitHub Actions themselves."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def run_through(report: GithubReport, events: Sequence[Event]) -> None:
    for event in events:
        report.handle(event)
    report.close()


def with_findings(record: RunRecord, *discoveries: Discovery) -> RunRecord:
    record.results = (replace(record.results[0], discoveries=discoveries), *record.results[1:])
    return record


def mild(found: Discovery, severity: Severity) -> Discovery:
    return replace(found, finding=replace(found.finding, severity=severity))


def test_annotations(record: RunRecord) -> None:
    """A line each: a finding at its line, and what could not be checked as an error too."""
    wild, mismatch, unchecked = render_github(record).splitlines()
    assert wild == (
        "::error file=mylib/gather.py,line=6,title=kcheck%3A out-of-view-read · block_table · kernel _gather_kernel::"
        "_gather_kernel reads block_table outside of its view: request 1 reads what lies behind row 0."
        "%0AReplay: kcheck replay 00494939db6f --target kcheck_gather.py::gather"
    )
    assert mismatch.startswith("::error file=kcheck_gather.py,line=1,title=kcheck%3A value-mismatch · out::")
    assert unchecked == (
        "::error title=kcheck%3A could not check scatter::"
        "_scatter_kernel never launched: the result proves nothing about it."
    )


def test_what_the_runner_would_take_for_syntax_is_escaped(record: RunRecord, wild_read: Discovery) -> None:
    """In the message percent signs and line ends, in properties colons and commas too."""
    finding = replace(wild_read.finding, message="100%\nx:y,z", argument="a,b:c%d", file="dir,1/a:b.py")
    line = render_github(with_findings(record, replace(wild_read, finding=finding))).splitlines()[0]
    assert line.startswith("::error file=dir%2C1/a%3Ab.py,line=6,title=kcheck%3A out-of-view-read · a%2Cb%3Ac%25d · ")
    assert "::100%25%0Ax:y,z%0AReplay: " in line


def test_levels(record: RunRecord, wild_read: Discovery) -> None:
    """Grave ones first; what could not be checked comes before warnings."""
    found = [mild(wild_read, severity) for severity in (Severity.NOTE, Severity.WARNING, Severity.ERROR)]
    lines = render_github(with_findings(record, *found)).splitlines()
    assert [line.split()[0] for line in lines] == ["::error", "::error", "::warning", "::notice"]
    assert "could not check" in lines[1]


def test_ten_annotations(record: RunRecord, wild_read: Discovery) -> None:
    """GitHub shows no more; the gravest are kept, and a plain line says how many are left out."""
    found = [mild(wild_read, Severity.WARNING)] * 9 + [wild_read] * 3
    lines = render_github(with_findings(record, *found)).splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["::error"] * 4 + ["::warning"] * 6
    assert lines[-1] == "3 more are not annotated; the job summary has them."


def test_known_findings_are_not_annotated_and_gone_ones_are(record: RunRecord, wild_read: Discovery) -> None:
    """A baseline that is not true any more fails the run."""
    gone = Gone("0" * 12, "https://github.com/o/r/issues/1", "it is gone")
    known = replace(wild_read, known="https://github.com/o/r/issues/2")
    record.results = (replace(record.results[0], discoveries=(known,), gone=(gone,)),)
    record.targets = record.targets[:1]
    assert render_github(record) == "::error title=kcheck%3A baseline of gather::it is gone\n"


def test_an_allowed_skip_is_a_warning(record: RunRecord) -> None:
    """It stays visible."""
    record.results = (replace(record.results[0], discoveries=()), replace(record.results[1], allowed=True))
    assert render_github(record).startswith("::warning title=kcheck%3A could not check scatter::")


def test_a_file_outside_the_repository_is_not_named(record: RunRecord, wild_read: Discovery) -> None:
    """GitHub could not show it."""
    found = replace(wild_read, finding=replace(wild_read.finding, file="/opt/lib/kernel.py"))
    assert render_github(with_findings(record, found)).startswith("::error title=")


def test_the_summary_is_appended(
    events: Sequence[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What the step wrote before stays; the commands go to stdout, where the runner reads them."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    with open_reports(["github"]) as report:
        for event in events:
            report.handle(event)
    captured = capsysbinary.readouterr()
    assert [line[:8] for line in captured.out.splitlines()] == [b"::error "] * 3
    assert b"2 findings" in captured.err
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n## kcheck: 2 findings, 1 could not check\n")
    assert "kcheck replay 00494939db6f --target kcheck_gather.py::gather" in text


def test_a_summary_that_would_be_dropped(
    events: Sequence[Event], wild_read: Discovery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond 1 MiB GitHub shows nothing: whole sections are left out, and the summary says so."""
    summary = tmp_path / "summary.md"
    summary.write_bytes(b"x" * 900_000)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    many = [mild(wild_read, Severity.NOTE) for _ in range(100)]
    done = events[-1]
    assert isinstance(done, RunDone)
    results = (replace(done.results[0], discoveries=(*many, wild_read)), done.results[1])
    run_through(GithubReport(tmp_path / "commands"), [*events[:-1], replace(done, results=results)])
    size = summary.stat().st_size
    assert 990_000 < size < 1_000_000
    text = summary.read_text(encoding="utf-8").removeprefix("x" * 900_000)
    headings = [line for line in text.splitlines() if line.startswith("##")]
    assert headings[:3] == [
        "## kcheck: 101 findings, 1 could not check",
        "### Could not check",
        "### ERROR out-of-view-read · block\\_table · kernel \\_gather\\_kernel · target `gather`",
    ]
    left_out = 101 - sum(line.startswith(("### ERROR", "### NOTE")) for line in headings)
    assert 0 < left_out < 101
    assert text.endswith(f"*{left_out} sections left out for want of room. The other reports have them all.*\n\n")


def test_a_summary_that_cannot_be_written(
    events: Sequence[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    with pytest.raises(UsageError, match=r"the job summary cannot be written to .*: No such file or directory; unset"):
        run_through(GithubReport(tmp_path / "commands"), events)
