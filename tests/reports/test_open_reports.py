"""Which reports a command line asks for."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

import kcheck.reports
from kcheck.errors import UsageError
from kcheck.events import Event
from kcheck.reports import FORMATS, Report, Reports, open_reports


def test_the_console_alone(events: Sequence[Event], capsys: pytest.CaptureFixture[str]) -> None:
    """It writes to stdout."""
    with open_reports() as report:
        for event in events:
            report.handle(event)
    captured = capsys.readouterr()
    assert "2 findings" in captured.out
    assert captured.err == ""


def test_a_machine_format_on_stdout_moves_the_console(
    events: Sequence[Event], capsys: pytest.CaptureFixture[str]
) -> None:
    """stdout is the JSON document and nothing else."""
    with open_reports(["console", "json"]) as report:
        for event in events:
            report.handle(event)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["seed"] == 42
    assert "2 findings" in captured.err


def test_a_path(events: Sequence[Event], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path may hold an equals sign."""
    with open_reports([f"json={tmp_path}/seed=1.json"]) as report:
        for event in events:
            report.handle(event)
    assert json.loads((tmp_path / "seed=1.json").read_text(encoding="utf-8"))["seed"] == 42
    assert "2 findings" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("specs", "sentence"),
    [
        (["yaml"], "--report yaml: 'yaml' is not a report format; use one of console, json"),
        (["=x"], "--report =x: '' is not a report format; use one of console, json"),
        (["json="], "--report json=: the path is missing; write json=PATH, or json alone for stdout"),
        (["console=x"], "--report console=x: the console takes no path; those that do are json"),
        (["json", "json"], "--report json and --report json both write to stdout; change one path"),
    ],
)
def test_mistakes(specs: list[str], sentence: str) -> None:
    """One sentence each."""
    with pytest.raises(UsageError) as caught:
        open_reports(specs)
    assert str(caught.value).startswith(sentence)


def test_a_directory_alone_gets_every_format(events: Sequence[Event], tmp_path: Path) -> None:
    """``--report-dir`` without ``--report``; the folder need not exist."""
    folder = tmp_path / "a" / "b"
    with open_reports(directory=folder) as report:
        for event in events:
            report.handle(event)
    names = ["kcheck.html", "kcheck.json", "kcheck.md", "kcheck.sarif", "kcheck.xml"]
    assert sorted(file.name for file in folder.iterdir()) == names
    assert json.loads((folder / "kcheck.json").read_text(encoding="utf-8"))["seed"] == 42
    assert (folder / "kcheck.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert json.loads((folder / "kcheck.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert (folder / "kcheck.md").read_text(encoding="utf-8").startswith("## kcheck: 2 findings")


@pytest.mark.parametrize(
    ("specs", "files"),
    [
        (["json"], ["kcheck.json"]),
        (["json=deep/run.json", "junit"], ["deep/run.json", "kcheck.xml"]),
        (["console", "sarif"], ["kcheck.sarif"]),
    ],
)
def test_what_is_asked_for_is_put_below_the_directory(
    events: Sequence[Event], tmp_path: Path, specs: list[str], files: list[str]
) -> None:
    """And nothing else."""
    folder = tmp_path / "out"
    with open_reports(specs, directory=folder) as report:
        for event in events:
            report.handle(event)
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()) == files


@pytest.mark.parametrize(("name", "below"), [*product(FORMATS[1:], [False]), ("json", True), ("html", True)])
def test_a_dash_is_stdout_in_every_format(
    name: str,
    below: bool,
    events: Sequence[Event],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    before = list(tmp_path.iterdir())
    for spec in (name, f"{name}=-"):
        with open_reports([spec], directory=tmp_path if below and spec == f"{name}=-" else None, width=80) as reports:
            for event in events:
                reports.handle(event)
    twice = capsys.readouterr().out
    assert len(twice) > 20
    assert twice[: len(twice) // 2] == twice[len(twice) // 2 :]
    assert list(tmp_path.iterdir()) == before


def test_an_absolute_path_stays(events: Sequence[Event], tmp_path: Path) -> None:
    """The directory is for relative ones."""
    with open_reports([f"json={tmp_path}/run.json"], directory=tmp_path / "other") as report:
        for event in events:
            report.handle(event)
    assert (tmp_path / "run.json").is_file()
    assert not (tmp_path / "other").exists()


def test_githubs_commands_go_to_stdout_beside_a_directory(
    events: Sequence[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The runner reads them there; it is no file, so the files are written all the same."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    with open_reports(["github"], directory=tmp_path / "out") as report:
        for event in events:
            report.handle(event)
    assert capsys.readouterr().out.startswith("::error file=")
    assert len(list((tmp_path / "out").iterdir())) == 5


@pytest.mark.parametrize(
    ("specs", "name", "sentence"),
    [
        ([], "file", "it is a file; name a folder, which need not exist"),
        (
            ["json"],
            "file/deep",
            "the report cannot be written to .*deep/kcheck.json: Not a directory; give another path",
        ),
        (["json", "json=kcheck.json"], "", "--report json and --report json=kcheck.json both write to .*kcheck.json;"),
    ],
)
def test_mistakes_with_a_directory(tmp_path: Path, specs: list[str], name: str, sentence: str) -> None:
    """Before the run, in one sentence."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=sentence):
        open_reports(specs, directory=tmp_path / name)


def test_documents_are_utf8_whatever_the_locale() -> None:
    """XML says that it is; a terminal in another encoding must not end in a traceback."""
    code = """
from kcheck.events import RunDone, RunStarted
from kcheck.reports import open_reports
with open_reports(["junit"]) as report:
    report.handle(RunStarted(("ü ✗ \\udcff",), "interpret", 1, {}))
    report.handle(RunDone((), False, 1.0))
"""
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert 'name="ü ✗ \\udcff"' in run.stdout.decode("utf-8")


def test_every_report_is_closed_even_if_one_fails() -> None:
    """A full disk under one report does not cost the others."""
    closed = []

    class Failing:
        def handle(self, event: Event) -> None: ...

        def close(self) -> None:
            raise UsageError("disk full")

    class Working(Failing):
        def close(self) -> None:
            closed.append(self)

    writers: list[Report] = [Working(), Failing(), Working()]
    with pytest.raises(UsageError, match="disk full"):
        Reports(writers).close()
    assert len(closed) == 2


def test_a_second_copy_is_refused() -> None:
    """``import reports`` at the repo root would make classes that nothing else knows."""
    spec = importlib.util.spec_from_file_location("reports", kcheck.reports.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r"import kcheck\.reports, not reports"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_rich_is_loaded_only_when_reports_are_opened() -> None:
    """``kcheck --help`` may import the package."""
    code = "import sys, kcheck.reports; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
