"""The self-test notices when a bug is missed, at a false alarm, and when something could not be checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kcheck.cli import selftest as command
from kcheck.findings import Kind
from kcheck.recall import Outcome, SelfTestResult, TargetOutcome
from kcheck.selftest import Effort, SelfTest
from kcheck.targets.registry import PAIRS, Pair

FOUND = next(pair for pair in PAIRS if pair.name == "softmax")
MISSED = Pair("missed", FOUND.right, "builtin:rope", "mask", (Kind.OUT_OF_BOUNDS_READ,), "table")  # it is right
OTHERWISE = Pair("otherwise", FOUND.right, "builtin:layer_norm_wrong", "mask", (Kind.RACE,), "x")
ON_GPU = Pair("on_gpu", FOUND.right, "builtin:rope_wrong", "clusters", (Kind.RACE,), "x", needs_gpu=True)
ALARM = "builtin:cross_entropy_wrong"  # shows a finding, though it is called a control


def test_what_a_self_test_notices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kcheck.selftest.SEARCH_CASES", 9)
    told: list[tuple[int, int]] = []
    run = SelfTest(
        "interpret", tmp_path / "worker.log", 1, Effort((40, 60), (2, 2)), lambda *done: told.append(done),
        pairs=[FOUND, MISSED, OTHERWISE, ON_GPU], controls=["builtin:any_stride", ALARM],
    )  # fmt: skip
    result = run.run()
    by_name = {one.target: one for one in result.outcomes}
    assert by_name[FOUND.wrong].outcome is Outcome.RIGHT
    assert by_name[FOUND.wrong].message.startswith("out-of-")
    assert by_name[FOUND.right].outcome is Outcome.RIGHT
    assert by_name[MISSED.wrong].outcome is Outcome.WRONG
    assert by_name[MISSED.wrong].message == "missed out-of-bounds-read of table"
    assert by_name[MISSED.wrong].cases == 9
    assert by_name[OTHERWISE.wrong].outcome is Outcome.WRONG
    assert "missed race of x; found instead: value-mismatch" in by_name[OTHERWISE.wrong].message
    assert by_name[ON_GPU.wrong].outcome is Outcome.LEFT_OUT
    assert by_name["builtin:any_stride"].outcome is Outcome.RIGHT
    assert by_name["builtin:any_stride"].cases > 40
    assert by_name[ALARM].outcome is Outcome.WRONG
    assert by_name[ALARM].message.startswith("false alarm: ")
    assert {one.target for one in result.failures()} == {MISSED.wrong, OTHERWISE.wrong, ALARM}
    assert told[-1] == (len(result.outcomes), len(result.outcomes))


def outcome(what: Outcome, mechanism: str = "") -> TargetOutcome:
    return TargetOutcome("builtin:rows", mechanism, what, 5, 0.25, "why")


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([outcome(Outcome.RIGHT, "mask"), outcome(Outcome.RIGHT)], 0),
        ([outcome(Outcome.LEFT_OUT, "mask"), outcome(Outcome.RIGHT)], 0),
        ([outcome(Outcome.WRONG, "mask"), outcome(Outcome.RIGHT)], 1),
        ([outcome(Outcome.RIGHT, "mask"), outcome(Outcome.WRONG)], 1),
        ([outcome(Outcome.RIGHT, "mask"), outcome(Outcome.COULD_NOT_CHECK)], 3),
        ([outcome(Outcome.WRONG, "mask"), outcome(Outcome.COULD_NOT_CHECK)], 1),
    ],
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcomes: list[TargetOutcome], code: int) -> None:
    def run(_: Any) -> SelfTestResult:
        return SelfTestResult("interpret", tuple(outcomes), 2.0)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SelfTest, "run", run)
    done = CliRunner().invoke(command.command, ["--backend", "interpret", "--width", "200"], standalone_mode=False)
    assert done.return_value == code
    found = sum(bool(one.mechanism) and one.outcome is Outcome.RIGHT for one in outcomes)
    assert f"interpret: found {found} of " in done.stdout
    assert done.stdout.count("builtin:rows, 5 cases in 0.25 s: why") == sum(
        one.outcome in (Outcome.WRONG, Outcome.COULD_NOT_CHECK) for one in outcomes
    )
