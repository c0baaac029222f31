"""Which reports a command line asks for."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import kcheck.reports
from kcheck.errors import UsageError
from kcheck.events import Event
from kcheck.reports import Report, Reports, open_reports


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
