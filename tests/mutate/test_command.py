"""``kcheck mutate``: reports and exit codes. No mutant runs here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kcheck.cli import mutate
from kcheck.errors import UsageError
from kcheck.mutation import Fate, Mutant, MutantResult, Mutation, MutationScore

CHANGE = Mutation("rows", "kernel", ())
MUTANT = Mutant("mask dropped", CHANGE, CHANGE, "/rows.py", 7, ("x = 1", "y"), ("x = 2",))


def score(*fates: Fate, made: int = 0, interrupted: bool = False) -> MutationScore:
    results = tuple(MutantResult(MUTANT, fate, 3, message="[b]why[/b]") for fate in fates)
    return MutationScore("rows", ("kernel",), made or len(fates), 3, results, 1.5, interrupted)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(found: MutationScore, *options: str) -> Result:
        monkeypatch.setattr(mutate, "_score", lambda *_: found)
        return CliRunner().invoke(mutate.command, ["rows.py", *options], standalone_mode=False)

    return run


@pytest.mark.parametrize(
    ("found", "options", "code"),
    [
        (score(Fate.KILLED), (), 0),
        (score(Fate.KILLED, Fate.SURVIVED), (), 0),
        (score(Fate.KILLED, Fate.SURVIVED), ("--min-score", "0.5"), 0),
        (score(Fate.KILLED, Fate.SURVIVED), ("--min-score", "0.51"), 1),
        (score(Fate.INVALID), (), 3),
        (score(Fate.INVALID), ("--min-score", "0"), 3),
        (score(Fate.KILLED, interrupted=True), (), 130),
    ],
)
def test_exit_codes(run: Any, found: MutationScore, options: tuple[str, ...], code: int) -> None:
    assert run(found, *options).return_value == code


def test_survivors_are_shown_as_diffs_and_what_was_left_out_is_said(run: Any) -> None:
    text = run(score(Fate.KILLED, Fate.SURVIVED, Fate.INVALID, made=9), "--width", "200").stdout
    assert "survived  mask dropped  /rows.py:7, in kernel\n    - x = 1\n    - y\n    + x = 2\n" in text
    assert "rows: killed 1 of 2 mutants (50 %) of kernel; 1 survived, 1 more cannot run, 6 of 9 left out" in text
    assert "killed  mask" not in text
    assert "killed  mask dropped" in run(score(Fate.KILLED), "-v").stdout


def test_the_help_names_the_seed_that_is_used() -> None:
    text = " ".join(CliRunner().invoke(mutate.command, ["--help"]).stdout.split())
    assert "Seed of random cases and of the choice of mutants; 0 if not given." in text
    assert "drawn and shown" not in text


def test_no_score_of_nothing(run: Any) -> None:
    assert "no mutant could be judged" in run(score(Fate.INVALID)).stdout


def test_the_report(run: Any, tmp_path: Path) -> None:
    run(score(Fate.KILLED, Fate.SURVIVED), "--report", "json=report.json")
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["score"] == 0.5
    piped = run(score(Fate.SURVIVED), "--report", "json")
    assert json.loads(piped.stdout)["mutants"][0]["fate"] == "survived"
    assert "killed 0 of 1 mutant" in piped.stderr


@pytest.mark.parametrize("report", ["xml", "json=", "json=nowhere/report.json"])
def test_a_report_that_cannot_be_had(run: Any, report: str) -> None:
    result = run(score(Fate.KILLED), "--report", report)
    assert isinstance(result.exception, UsageError)
    assert f"--report {report}: " in str(result.exception)
