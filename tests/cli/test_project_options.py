"""What pyproject.toml and a profile say for a run: values, precedence, mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kcheck import config
from kcheck.cli import options
from kcheck.errors import UsageError

PROFILES: dict[str, dict[str, Any]] = {
    "pr": {"total-time": 60.0, "max-examples": 200, "seed": 0},
    "nightly": {"max-examples": 20_000},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def write(text: str) -> None:
    Path("pyproject.toml").write_text(text)


def chosen(*arguments: str) -> tuple[options.CaseOptions, options.RunOptions]:
    """What a command with the shared options gets."""
    got: list[Any] = []

    @click.command()
    @options.cases(max_examples=500, examples_help="")
    @options.run(max_time=60.0, time_help="", profiles=PROFILES)
    def command(cases: options.CaseOptions, run: options.RunOptions) -> None:
        got.extend((cases, run))

    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return got[0], got[1]


def test_without_a_profile_the_options_have_their_defaults() -> None:
    cases, run = chosen()
    assert (cases.max_examples, cases.sweep, run.max_time, run.total_time) == (500, True, 60.0, float("inf"))
    assert cases.seed != chosen()[0].seed  # drawn anew; the same twice once in 2**32


def test_a_profile_changes_defaults() -> None:
    cases, run = chosen("--profile", "pr")
    assert (cases.max_examples, cases.seed, run.total_time, run.max_time) == (200, 0, 60.0, 60.0)


def test_the_project_changes_a_profile_and_the_command_line_wins() -> None:
    write(
        "[tool.kcheck]\nmax-examples = 7\nfail-on = 'warning'\nprofile.pr = { max-examples = 50, seed = 'random' }\n"
        "profile.nightly = { sweep = false }\n"
    )
    assert chosen()[0].max_examples == 7
    cases, run = chosen("--profile", "pr")
    assert (cases.max_examples, run.total_time, run.fail_on) == (50, 60.0, "warning")
    assert cases.seed != 0
    assert chosen("--profile", "pr", "--max-examples", "3")[0].max_examples == 3
    nightly, _ = chosen("--profile", "nightly")
    assert (nightly.max_examples, nightly.sweep) == (20_000, False)


def test_the_project_chooses_a_profile() -> None:
    write("[tool.kcheck]\nprofile = 'pr'\n")
    assert chosen()[1].total_time == 60.0
    assert chosen("--profile", "nightly")[0].max_examples == 20_000


def test_paths_are_relative_to_the_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("[tool.kcheck]\nbaseline = 'known.json'\nallow-skip = ['a', 'b']\n")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    _, run = chosen()
    assert run.baseline == Path("../known.json")
    assert run.allow_skip == ("a", "b")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.kcheck]\nmax-exmples = 1\n", "[tool.kcheck] has no key 'max-exmples'; known keys: targets, profile"),
        ("[tool.kcheck]\nmax-examples = -1\n", "[tool.kcheck] max-examples is -1; expected a number, 0 or more"),
        ("[tool.kcheck]\nmax-examples = true\n", "[tool.kcheck] max-examples is True; expected"),
        ("[tool.kcheck]\nmax-time = 'long'\n", "[tool.kcheck] max-time is 'long'; expected a number of seconds"),
        ("[tool.kcheck]\nseed = 4294967296\n", "[tool.kcheck] seed is 4294967296; expected"),
        ("[tool.kcheck]\nseed = 'dice'\n", "[tool.kcheck] seed is 'dice'; expected"),
        ("[tool.kcheck]\nfail-on = 'never'\n", "[tool.kcheck] fail-on is 'never'; expected one of"),
        ("[tool.kcheck]\nfail-on = []\n", "[tool.kcheck] fail-on is []; expected one of"),
        ("[tool.kcheck]\nallow-skip = 'all'\n", "[tool.kcheck] allow-skip is 'all'; expected a list"),
        ("[tool.kcheck]\nprofile = 'weekly'\n", "[tool.kcheck] profile is 'weekly'; expected one of"),
        ("[tool.kcheck.profile.weekly]\n", "[tool.kcheck.profile] has no profile 'weekly'; there are pr, nightly"),
        ("[tool.kcheck.profile]\npr = 1\n", "[tool.kcheck.profile.pr] is 1; expected a table"),
        ("[tool.kcheck.profile.pr]\ntargets = []\n", "[tool.kcheck.profile.pr] has no key 'targets'"),
    ],
)
def test_mistakes_are_one_sentence(text: str, problem: str) -> None:
    write(text)
    with pytest.raises(UsageError) as caught:
        config.read()
    assert str(caught.value).startswith(f"pyproject.toml: {problem}")
    with pytest.raises(UsageError):
        chosen()
