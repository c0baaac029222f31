"""The JUnit report, as independent readers see it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcheck.events import Discovery, Gone, TargetResult
from kcheck.findings import Kind, Severity
from kcheck.reports.junit_report import render_junit
from kcheck.reports.record import RunRecord

CHECKS = 12


def read(record: RunRecord) -> dict[str, dict[str, Any]]:
    """Target → check → test case, as junitparser reads them."""
    junitparser = pytest.importorskip("junitparser")
    xml = junitparser.JUnitXml.fromstring(render_junit(record).encode())
    return {suite.name: {case.name: case for case in suite} for suite in xml}


def outcome(case: Any) -> tuple[str, str, str]:
    """Outcome, type and message of a test case; a pass has none."""
    (result,) = case.result or [None]
    return (type(result).__name__, result.type, result.message) if result is not None else ("Passed", "", "")


def test_findings_fail_with_seed_and_replay(record: RunRecord) -> None:
    """A failure per check that found something, with the panel; the other checks pass."""
    tests = read(record)["gather"]
    assert outcome(tests["could be checked"]) == ("Passed", "", "")
    kind, name, message = outcome(tests["out-of-view-read or out-of-bounds-read"])
    assert (kind, name) == ("Failure", "out-of-view-read")
    assert message.startswith("error: _gather_kernel reads block_table outside of its view")
    text = tests["out-of-view-read or out-of-bounds-read"].result[0].text
    assert "\n    kcheck replay 00494939db6f --target kcheck_gather.py::gather\n" in text
    assert "seed 42" in text
    assert "block_table = torch.empty((2, 16), dtype=torch.int32)[:, :3]" in text
    assert outcome(tests["value-mismatch or layout-variance"])[:2] == ("Failure", "value-mismatch")
    assert [outcome(case)[0] for case in tests.values()].count("Passed") == 1 + CHECKS - 2


def test_what_could_not_be_checked_never_passes(record: RunRecord) -> None:
    """An error with the reason, once; no check of the target is green."""
    tests = read(record)["scatter"]
    assert outcome(tests.pop("could be checked")) == (
        "Error",
        "could-not-check",
        "_scatter_kernel never launched: the result proves nothing about it.",
    )
    assert len(tests) == CHECKS
    assert {outcome(case)[:2] for case in tests.values()} == {("Skipped", "could-not-check")}


def test_an_allowed_skip_is_no_error_and_no_pass(record: RunRecord, results: tuple[TargetResult, ...]) -> None:
    """``--allow-skip`` takes the red away, and nothing more."""
    record.results = (results[0], replace(results[1], allowed=True))
    tests = read(record)["scatter"]
    assert outcome(tests["could be checked"])[:2] == ("Skipped", "could-not-check")
    assert {outcome(case)[0] for case in tests.values()} == {"Skipped"}


def test_a_target_without_a_turn_is_an_error(partial: RunRecord) -> None:
    """The run was stopped: nothing is known of the second target."""
    tests = read(partial)
    assert outcome(tests["scatter"]["could be checked"])[0] == "Error"


def test_known_findings_are_skipped(record: RunRecord, results: tuple[TargetResult, ...]) -> None:
    """With the issue's link; a new finding of the same check fails beside it."""
    issue = "https://github.com/o/r/issues/1"
    wild, mismatch = results[0].discoveries
    known = replace(wild, known=issue)
    record.results = (replace(results[0], discoveries=(known, mismatch)),)
    name = "out-of-view-read or out-of-bounds-read"
    assert outcome(read(record)["gather"][name]) == ("Skipped", "known", f"known: {issue}")
    other = replace(wild, fingerprint="0" * 12, finding=replace(wild.finding, kind=Kind.OUT_OF_BOUNDS_READ))
    record.results = (replace(results[0], discoveries=(known, other)),)
    assert outcome(read(record)["gather"][name])[:2] == ("Failure", "out-of-bounds-read")


def test_two_bugs_of_one_check_are_one_failure_with_both(
    record: RunRecord, results: tuple[TargetResult, ...], wild_read: Discovery
) -> None:
    """Readers take the first failure of a test case only."""
    other = replace(wild_read, fingerprint="0" * 12, finding=replace(wild_read.finding, severity=Severity.WARNING))
    record.results = (replace(results[0], discoveries=(wild_read, other)),)
    (failure,) = read(record)["gather"]["out-of-view-read or out-of-bounds-read"].result
    assert failure.message.endswith("(and 1 more)")
    assert "kcheck replay 00494939db6f" in failure.text
    assert "kcheck replay 000000000000" in failure.text


def test_a_symptom_is_no_pass(record: RunRecord, results: tuple[TargetResult, ...], wild_read: Discovery) -> None:
    """Wrong values because of a wild read: they are not counted, and not said to be right."""
    record.results = (replace(results[0], discoveries=(wild_read,)),)
    assert outcome(read(record)["gather"]["value-mismatch or layout-variance"])[:2] == ("Skipped", "symptom")


def test_nothing_passes_that_was_not_tried(record: RunRecord, results: tuple[TargetResult, ...]) -> None:
    """compute-sanitizer does not compare values: of such a run only what was found is listed."""
    record.versions = {**record.versions, "compute-sanitizer": "2025.4.0"}
    tests = read(record)
    assert list(tests["gather"]) == [
        "could be checked",
        "out-of-view-read or out-of-bounds-read",
        "value-mismatch or layout-variance",
    ]
    assert list(tests["scatter"]) == ["could be checked"]
    rare = replace(results[0].discoveries[0], finding=replace(results[0].discoveries[0].finding, kind=Kind.LEAK))
    record.results = (replace(results[0], discoveries=(rare,)),)
    assert list(read(record)["gather"]) == ["could be checked", "leak"]


def test_what_is_gone_fails(record: RunRecord, results: tuple[TargetResult, ...]) -> None:
    """The baseline must be kept true."""
    gone = Gone("0" * 12, "https://github.com/o/r/issues/1", "it is gone; delete it")
    record.results = (replace(results[0], discoveries=(), gone=(gone,)),)
    (failure,) = read(record)["gather"]["baseline"].result
    assert failure.text == "it is gone; delete it (https://github.com/o/r/issues/1)"


def test_counts_and_times(record: RunRecord) -> None:
    """The sums that readers show; a target's time is counted once."""
    junitparser = pytest.importorskip("junitparser")
    xml = junitparser.JUnitXml.fromstring(render_junit(record).encode())
    assert (xml.tests, xml.failures, xml.errors) == (2 * (CHECKS + 1), 2, 1)
    gather, scatter = xml
    assert (gather.tests, gather.failures, gather.errors, gather.skipped) == (CHECKS + 1, 2, 0, 0)
    assert (scatter.failures, scatter.errors, scatter.skipped) == (0, 1, CHECKS)
    assert sum(case.time for case in gather) == gather.time == 14.25


def test_names_do_not_change_with_the_outcome(record: RunRecord, results: tuple[TargetResult, ...]) -> None:
    """CI systems keep the history of a test by its names."""
    red = read(record)["gather"]
    record.results = (replace(results[0], discoveries=()),)
    green = read(record)["gather"]
    assert [(case.classname, case.name) for case in red.values()] == [
        (case.classname, case.name) for case in green.values()
    ]


def test_the_schema_of_jenkins(record: RunRecord, schemas: Path) -> None:
    """junit-10.xsd of Jenkins' xunit plugin."""
    etree = pytest.importorskip("lxml.etree")
    file = schemas / "junit-10.xsd"
    if not file.exists():
        pytest.skip(f"no {file.name} in $KCHECK_SCHEMAS or beside the repository")
    schema = etree.XMLSchema(etree.parse(str(file)))
    schema.assertValid(etree.fromstring(render_junit(record).encode()))
