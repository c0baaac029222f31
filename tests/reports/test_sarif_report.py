"""The SARIF report: valid by the official schema, and fit for GitHub's code scanning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcheck.case import Case
from kcheck.events import Discovery, Gone, TargetResult
from kcheck.findings import Finding, Kind, Severity, SourceFrame
from kcheck.reports.record import RunRecord
from kcheck.reports.sarif_report import render_sarif


def run_of(record: RunRecord) -> Any:
    (run,) = json.loads(render_sarif(record))["runs"]
    return run


def with_finding(record: RunRecord, *discoveries: Discovery) -> RunRecord:
    record.results = (replace(record.results[0], discoveries=discoveries), *record.results[1:])
    return record


def test_a_finding_is_at_the_kernels_line(record: RunRecord) -> None:
    """Relative to the repository, with the rule, the fingerprint and the way to replay it."""
    run = run_of(record)
    result = run["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "mylib/gather.py", "uriBaseId": "SRCROOT"}
    assert place["region"]["startLine"] == 6
    assert place["region"]["snippet"]["text"].startswith("page = tl.load(table + request * width")
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == f"file://{Path.cwd()}/"
    assert result["level"] == "error"
    assert result["partialFingerprints"] == {"kcheck/v1": "00494939db6f"}
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "out-of-view-read"
    assert result["message"]["text"].split("\n") == [
        "_gather_kernel reads block_table outside of its view: request 1 reads what lies behind row 0.",
        "block_table = torch.empty((2, 16), dtype=torch.int32)[:, :3]",
        "Replay: kcheck replay 00494939db6f --target kcheck_gather.py::gather",
    ]


def test_below_a_repository_paths_are_the_repositorys(
    record: RunRecord, source_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kcheck may run in a folder of it; a worktree has a file .git."""
    (source_file.parents[1] / ".git").touch()
    monkeypatch.chdir(source_file.parent)
    run = run_of(record)
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "mylib/gather.py"
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == f"file://{source_file.parents[1]}/"


def test_a_file_elsewhere_has_an_absolute_address(record: RunRecord, wild_read: Discovery) -> None:
    """Characters that an address may not have are encoded."""
    found = replace(wild_read, finding=replace(wild_read.finding, file="/opt/my lib/ü#1.py"))
    (result,) = run_of(with_finding(record, found))["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///opt/my%20lib/%C3%BC%231.py"}


@pytest.mark.parametrize(
    ("spec", "uri", "line"),
    [
        ("kcheck_x.py::second", "kcheck_x.py", 5),
        ("kcheck_x.py::imported", "kcheck_x.py", 1),
        ("missing/kcheck_x.py::second", "missing/kcheck_x.py", 1),
        ("some.module:second", "some/module.py", 1),
    ],
)
def test_a_finding_without_a_line_is_at_its_target(
    record: RunRecord, source_file: Path, spec: str, uri: str, line: int
) -> None:
    """GitHub refuses a whole file in which one result has no location."""
    Path("kcheck_x.py").write_text("def first():\n    pass\n\n\ndef second(x):\n    pass\n", encoding="utf-8")
    found = Discovery("second", spec, Finding(Kind.CRASH, "it died"), "0" * 12, Case(n=1))
    (result,) = run_of(with_finding(record, found))["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == (uri, {"startLine": line})


def test_what_could_not_be_checked(record: RunRecord) -> None:
    """An error of the run, never a quiet pass."""
    (invocation,) = run_of(record)["invocations"]
    assert invocation["executionSuccessful"] is False
    said = invocation["toolExecutionNotifications"][0]
    assert said["level"] == "error"
    assert said["descriptor"]["id"] == "could-not-check"
    assert said["message"]["text"].startswith("scatter could not be checked: _scatter_kernel never launched")


def test_a_run_without_gaps_is_successful(record: RunRecord) -> None:
    """Findings are results, not failures of the tool."""
    record.results, record.targets = record.results[:1], record.targets[:1]
    assert run_of(record)["invocations"][0]["executionSuccessful"] is True


def test_an_interrupted_run_is_not(partial: RunRecord) -> None:
    """And the target without a turn is named."""
    (invocation,) = run_of(partial)["invocations"]
    assert invocation["executionSuccessful"] is False
    texts = [said["message"]["text"] for said in invocation["toolExecutionNotifications"]]
    assert texts[:2] == [
        "The run was interrupted.",
        "scatter could not be checked: the run stopped before this target had its turn",
    ]


@pytest.mark.parametrize(("severity", "level"), [("error", "error"), ("warning", "warning"), ("note", "note")])
def test_levels(record: RunRecord, wild_read: Discovery, severity: str, level: str) -> None:
    """SARIF's words."""
    found = replace(wild_read, finding=replace(wild_read.finding, severity=Severity(severity)))
    (result,) = run_of(with_finding(record, found))["results"]
    assert result["level"] == level


def test_a_known_finding_is_suppressed(record: RunRecord, results: tuple[TargetResult, ...]) -> None:
    """With the issue as the reason; new findings come first."""
    known, new = results[0].discoveries
    found = run_of(with_finding(record, replace(known, known="https://github.com/o/r/issues/1"), new))["results"]
    assert [result["ruleId"] for result in found] == ["value-mismatch", "out-of-view-read"]
    assert "suppressions" not in found[0]
    assert found[1]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "https://github.com/o/r/issues/1"}
    ]


def test_callers_are_related_locations(record: RunRecord, wild_read: Discovery, source_file: Path) -> None:
    """From the inner one outwards, each once: the schema wants them distinct."""
    frames = [SourceFrame(str(source_file), line, "f", "") for line in (1, 3, 3, 6)]
    found = replace(wild_read, finding=replace(wild_read.finding, chain=tuple(frames)))
    (result,) = run_of(with_finding(record, found))["results"]
    lines = [place["physicalLocation"]["region"]["startLine"] for place in result["relatedLocations"]]
    assert lines == [3, 1]


def test_more_results_than_code_scanning_takes(record: RunRecord, wild_read: Discovery) -> None:
    """The gravest are kept, and what is left out is said."""
    mild = replace(wild_read, finding=replace(wild_read.finding, severity=Severity.NOTE))
    run = run_of(with_finding(record, *[mild] * 5_001, wild_read))
    assert len(run["results"]) == 5_000
    assert run["results"][0]["level"] == "error"
    assert "2 findings left out" in run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]


def test_the_official_schema(
    record: RunRecord, partial: RunRecord, wild_read: Discovery, source_file: Path, schemas: Path
) -> None:
    """A whole run, a stopped one, and one with everything that a result may have."""
    jsonschema = pytest.importorskip("jsonschema")
    file = schemas / "sarif-schema-2.1.0.json"
    if not file.exists():
        pytest.skip(f"no {file.name} in $KCHECK_SCHEMAS or beside the repository")
    schema = jsonschema.Draft4Validator(json.loads(file.read_text(encoding="utf-8")))
    frames = (SourceFrame(str(source_file), 1, "f", ""), SourceFrame("", 0, "", ""), *wild_read.finding.chain)
    full = replace(wild_read, known="x", finding=replace(wild_read.finding, chain=frames))
    gone = Gone("0" * 12, "x", "it is gone")
    for run in (RunRecord(), record, partial):
        schema.validate(json.loads(render_sarif(run)))
    record.results = (replace(record.results[0], discoveries=(full,), gone=(gone,)),)
    schema.validate(json.loads(render_sarif(record)))
