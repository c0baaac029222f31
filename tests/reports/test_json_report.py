"""The JSON report: written, read back, refused where it is malformed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcheck.errors import InvalidDocument, UsageError
from kcheck.events import CaseVerdict, Event, RunDone, TargetDone, TargetResult
from kcheck.reports.document_report import DocumentReport
from kcheck.reports.json_reader import read_report
from kcheck.reports.json_report import render_json


def written(events: Sequence[Event], path: Path) -> Any:
    report = DocumentReport(render_json, path)
    for event in events:
        report.handle(event)
    report.close()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_keys_of_the_design(events: Sequence[Event], tmp_path: Path) -> None:
    """What other programs rely on."""
    data = written(events, tmp_path / "deep" / "report.json")
    assert data["schema"] == "kcheck.report/1"
    assert data["seed"] == 42
    assert data["versions"]["triton"] == "3.7.1"
    gather, scatter = data["targets"]
    assert (gather["name"], gather["verdict"], gather["cases"]["match"]) == ("gather", "findings", 1380)
    assert scatter["reason"] == "_scatter_kernel never launched: the result proves nothing about it."
    assert gather["matrix"]["block_table"]["narrowed"] == "finding"
    found = gather["findings"][0]
    assert found["kind"] == "out-of-view-read"
    assert found["severity"] == "error"
    assert (found["kernel"], found["line"], found["argument"]) == ("_gather_kernel", 6, "block_table")
    assert (found["index"], found["program"], found["count"]) == ([0, 3], [1, 0, 0], 3)
    assert found["layout_kinds"] == ["narrowed", "padded"]
    assert found["layouts"]["block_table"].endswith("[:, :3]")
    assert found["case"]["schema"] == "kcheck.case/1"
    assert found["replay"] == f"kcheck replay {found['fingerprint']} --target kcheck_gather.py::gather"
    assert gather["findings"][1]["mismatch"]["examples"][2] == [[1, 2], 1.0, "nan"]
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["report.json"]


def test_round_trip(events: Sequence[Event], results: tuple[TargetResult, ...], tmp_path: Path) -> None:
    """Reading gives what was written; NaN is the only thing that does not equal itself."""
    written(events, tmp_path / "report.json")
    record = read_report(tmp_path / "report.json")
    assert (record.seed, record.backend, record.seconds, record.interrupted) == (42, "interpret", 15.5, False)
    assert record.targets == ("gather", "scatter")
    assert record.results[1] == results[1]
    assert record.results[0].discoveries[0] == results[0].discoveries[0]
    assert replace(record.results[0], discoveries=()) == replace(results[0], discoveries=())
    assert render_json(record) == (tmp_path / "report.json").read_text(encoding="utf-8")


def test_a_run_that_stopped(events: Sequence[Event], tmp_path: Path) -> None:
    """Without the end of the target and of the run, what was found is written."""
    data = written([e for e in events[:10] if not isinstance(e, (RunDone, TargetDone))], tmp_path / "report.json")
    assert data["interrupted"] is True
    (target,) = data["targets"]
    assert target["verdict"] == "findings"
    assert target["cases"] == {"match": 1, "findings": 1}
    assert len(target["findings"]) == 2
    assert "stopped" in target["reason"]


def test_a_target_that_stopped_without_a_bug_is_no_match(events: Sequence[Event], tmp_path: Path) -> None:
    """It never looks green."""
    data = written(events[:3], tmp_path / "report.json")
    assert data["targets"][0]["verdict"] == CaseVerdict.COULD_NOT_CHECK


def test_nothing_is_written_when_nothing_ran(tmp_path: Path) -> None:
    """An error before the run leaves an older report alone."""
    DocumentReport(render_json, tmp_path / "report.json").close()
    assert not list(tmp_path.iterdir())


def test_to_a_device(events: Sequence[Event]) -> None:
    """A device is written to, not replaced by a file."""
    report = DocumentReport(render_json, Path("/dev/null"))
    report.handle(events[0])
    report.close()
    assert not Path("/dev/null").is_file()


def test_to_stdout(events: Sequence[Event], capsys: pytest.CaptureFixture[str]) -> None:
    """Closing twice writes once."""
    report = DocumentReport(render_json, None)
    report.handle(events[0])
    report.close()
    report.close()
    assert json.loads(capsys.readouterr().out)["targets"] == []


@pytest.mark.parametrize("name", ["", "file/report.json"])
def test_a_path_that_cannot_be_written_fails_at_once(tmp_path: Path, name: str) -> None:
    """Before the run, in one sentence."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        DocumentReport(render_json, tmp_path / name)


def set_at(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = to

    return change


def remove(*path: str | int) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        del data[path[-1]]

    return change


FINDING = ("targets", 0, "findings", 0)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (set_at("schema", to="kcheck.report/9"), "schema"),
        (set_at("seed", to="42"), "seed"),
        (set_at("seed", to=True), "seed"),
        (remove("versions"), "document"),
        (set_at("versions", "torch", to=2), "versions.torch"),
        (set_at("targets", to={}), "targets"),
        (set_at("targets", 1, to=None), "targets[1]"),
        (set_at("targets", 0, "verdict", to="green"), "targets[0].verdict"),
        (set_at("targets", 0, "cases", "match", to=-1), "targets[0].cases.match"),
        (set_at("targets", 0, "cases", "odd", to=1), "the key of targets[0].cases.odd"),
        (set_at("targets", 0, "matrix", "pool", "far", to="fine"), "targets[0].matrix.pool.far"),
        (set_at(*FINDING, "kind", to="typo"), "targets[0].findings[0].kind"),
        (set_at(*FINDING, "cells", 1, to=0.5), "targets[0].findings[0].cells[1]"),
        (remove(*FINDING, "chain", 0, "file"), "targets[0].findings[0].chain[0]"),
        (set_at(*FINDING, "case", "schema", to=""), "targets[0].findings[0].case.schema"),
        (set_at(*FINDING, "related", 0, "message", to=[]), "targets[0].findings[0].related[0].message"),
        (
            set_at("targets", 0, "findings", 1, "mismatch", "examples", 0, to=[[0]]),
            "targets[0].findings[1].mismatch.examples[0]",
        ),
    ],
)
def test_a_malformed_report_is_refused_by_place(
    events: Sequence[Event], tmp_path: Path, change: Callable[[Any], None], where: str
) -> None:
    """The error names the first bad value."""
    path = tmp_path / "report.json"
    data = written(events, path)
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InvalidDocument) as caught:
        read_report(path)
    assert caught.value.where == where


@pytest.mark.parametrize("text", ["", "{", "[NaN]", "[" * 100_000, "[]", "\udcff"])
def test_what_is_no_report_at_all(tmp_path: Path, text: str) -> None:
    """Not JSON, not strict JSON, not an object, not text."""
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InvalidDocument):
        read_report(path)


def test_a_missing_report(tmp_path: Path) -> None:
    """One sentence."""
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_report(tmp_path / "none.json")


def test_the_reader_needs_no_rich() -> None:
    """Merging reports costs no console."""
    code = "import sys, kcheck.reports, kcheck.reports.json_reader; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
