"""From a run's results to its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import kcheck
from kcheck import strategies as ks
from kcheck.case import Case
from kcheck.cli.verdict import allowing, check_skips, exit_code
from kcheck.errors import UsageError
from kcheck.events import CaseVerdict, Discovery, Gone, RunDone, TargetDone, TargetResult
from kcheck.findings import Finding, Kind, Severity
from kcheck.loader import LoadedTarget


def found(severity: Severity = Severity.ERROR, known: str = "") -> TargetResult:
    finding = Finding(Kind.OUT_OF_VIEW_READ, "stray", severity)
    discovery = Discovery("x", "x.py::x", finding, "0" * 12, Case(), known=known)
    return TargetResult("x", CaseVerdict.FINDINGS, discoveries=(discovery,))


MATCH = TargetResult("x", CaseVerdict.MATCH)
UNCHECKED = TargetResult("x", CaseVerdict.COULD_NOT_CHECK, ("no kernel ever launched",))
GONE = replace(MATCH, gone=(Gone("0" * 12, "https://example.org/1", "it is gone"),))


def done(*results: TargetResult, interrupted: bool = False) -> RunDone:
    return RunDone(results, interrupted, 1.0)


@pytest.mark.parametrize(
    ("results", "fail_on", "code"),
    [
        ((MATCH,), "error", 0),
        ((MATCH, found()), "error", 1),
        ((found(Severity.WARNING),), "error", 0),
        ((found(Severity.WARNING),), "warning", 1),
        ((found(known="https://example.org/1"),), "note", 0),
        ((GONE,), "error", 1),
        ((UNCHECKED, GONE), "error", 1),
        ((UNCHECKED, MATCH), "error", 3),
        ((replace(UNCHECKED, reasons=()),), "error", 3),
        ((replace(found(known="https://example.org/1"), reasons=("half of it",)),), "error", 3),
        ((replace(UNCHECKED, allowed=True), MATCH), "error", 0),
        ((replace(UNCHECKED, allowed=True), UNCHECKED), "error", 3),
        ((replace(UNCHECKED, allowed=True), found()), "error", 1),
    ],
)
def test_the_exit_code(results: Sequence[TargetResult], fail_on: str, code: int) -> None:
    assert exit_code(done(*results), fail_on) == code


def test_an_interrupted_run_is_130() -> None:
    assert exit_code(done(found(), interrupted=True)) == 130


@kcheck.target(cases=ks.tensors((2,), "float32").map(lambda x: kcheck.Case(x=x)), name="x")
def target(x: object) -> object:
    return x


SELECTED = [LoadedTarget(target, "x.py::target")]


@pytest.mark.parametrize("name", ["x", "x.py::target", "all"])
def test_skips_are_allowed_by_name(name: str) -> None:
    events = list(allowing([TargetDone(UNCHECKED), done(UNCHECKED)], [name], SELECTED))
    marked = replace(UNCHECKED, allowed=True)
    assert events == [TargetDone(marked), done(marked)]
    check_skips([name], SELECTED)


def test_a_skip_of_one_of_two_targets_of_a_name() -> None:
    """By its own name only that one; by the name of both, both."""
    pair = [LoadedTarget(target, spec, is_namesake=True) for spec in ("x.py::target", "y.py::target")]
    results = [replace(UNCHECKED, name=one.title) for one in pair]
    for name, skipped in (("y.py::target", [False, True]), ("x", [True, True])):
        (last,) = allowing([done(*results)], [name], pair)
        assert isinstance(last, RunDone)
        assert [result.allowed for result in last.results] == skipped


def test_what_was_checked_is_not_marked_as_skipped() -> None:
    assert list(allowing([done(MATCH, found())], ["all"], SELECTED)) == [done(MATCH, found())]
    assert list(allowing([done(UNCHECKED)], [], SELECTED)) == [done(UNCHECKED)]


def test_a_skip_of_no_target_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--allow-skip y: no target of this run"):
        check_skips(["y"], SELECTED)
