"""A run that goes on where an earlier one was killed: at every moment of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from kcheck.engine import search
from kcheck.engine.settings import Earlier
from kcheck.events import BugFound, CaseVerdict, Phase, PhaseStarted, TargetDone
from kcheck.findings import Finding, Kind

from .conftest import MATCH, Ran, showing, stray

Run = Callable[..., Ran]


def moments(states: list[Earlier], count: int = 5) -> list[Earlier]:
    """Some of the states, from the first to the last."""
    return [states[number * (len(states) - 1) // (count - 1)] for number in range(count)]


def counted(ran: Ran) -> Counter[str]:
    return Counter(case.key for case in ran.asked)


def test_a_killed_run_and_the_one_that_goes_on_are_one_run(run: Run, whole: Ran) -> None:
    assert whole.journal.finished
    for state in moments(whole.journal.states):
        rest = run(stray, state)
        for told, expected in zip(rest.results, whole.results, strict=True):
            assert told.verdict is expected.verdict
            assert [d.fingerprint for d in told.discoveries] == [d.fingerprint for d in expected.discoveries]
            assert all(d.minimal for d in told.discoveries)
            assert told.matrix == expected.matrix
            assert not told.reasons
            assert told.evidence is not None
            assert expected.evidence is not None
            assert told.evidence.swept == expected.evidence.swept  # each step once, be it here or there
            assert told.evidence.shards == 1


def test_the_sweep_goes_on_behind_the_last_case(run: Run) -> None:
    """Steps that draw the same case share its judgement, but not with the earlier run: a few run again."""
    whole = run(lambda case: MATCH, max_examples=0)
    for state in moments(whole.journal.states):
        known = sum(sum(result.cases.values()) for result in state.results)
        known += sum(state.progress.result.cases.values()) if state.progress else 0
        rest = run(lambda case: MATCH, state, max_examples=0)
        left = {case.key for case in whole.asked[known:]}
        assert left <= set(counted(rest))
        assert len(rest.asked) <= len(whole.asked) - known + 8
        for told, expected in zip(rest.results, whole.results, strict=True):
            assert told.matrix == expected.matrix


def test_targets_that_are_done_are_not_run_again(run: Run, whole: Ran) -> None:
    state = next(state for state in whole.journal.states if state.results)
    rest = run(stray, state)
    assert rest.results[0] == state.results[0]
    first = next(event for event in rest.events if isinstance(event, TargetDone))
    assert first.result == state.results[0]


def test_random_cases_are_those_that_are_left_and_others(run: Run) -> None:
    whole = run(lambda case: MATCH, sweep=False, max_examples=40)
    state = next(s for s in whole.journal.states if s.progress is not None and s.progress.drawn == 20)
    rest = run(lambda case: MATCH, state, sweep=False, max_examples=40)
    first = rest.results[0]
    assert sum(first.cases.values()) <= 40
    assert len(set(counted(rest)) - {case.key for case in whole.asked[:20]}) > 10


def test_what_was_found_is_told_at_once_and_not_shrunk_again(run: Run, whole: Ran) -> None:
    state = next(s for s in whole.journal.states if s.progress is not None and s.progress.result.discoveries)
    assert state.progress is not None
    rest = run(stray, state)
    told = next(event for event in rest.events if isinstance(event, BugFound))
    assert told.discovery.case == state.progress.result.discoveries[0].case
    shrunk = [e for e in rest.events if isinstance(e, PhaseStarted) and e.phase is Phase.SHRINK]
    assert not [event for event in shrunk if event.target == "one"]


def test_a_finding_that_is_seen_no_more_is_still_reported(run: Run, whole: Ran) -> None:
    """As where the machine's state made it show: it was proven when it was found."""
    state = next(s for s in whole.journal.states if s.progress is not None and s.progress.result.discoveries)
    rest = run(lambda case: MATCH, state)
    assert rest.results[0].verdict is CaseVerdict.FINDINGS
    assert rest.results[0].discoveries[0].seen >= 1


def test_a_bug_that_was_seen_and_not_shrunk_yet_is_shrunk(run: Run, whole: Ran) -> None:
    state = next(s for s in whole.journal.states if s.progress is not None and s.progress.seen)
    assert state.progress is not None
    assert not state.progress.result.discoveries
    rest = run(stray, state)
    (found,) = rest.results[0].discoveries
    assert found.minimal
    assert found.case == whole.results[0].discoveries[0].case


def test_the_time_that_was_used_is_used(run: Run) -> None:
    whole = run(lambda case: MATCH)
    state = next(s for s in whole.journal.states if s.progress is not None and s.progress.drawn)
    rest = run(lambda case: MATCH, state, max_time=1e-9)
    assert len(rest.asked) < len(whole.asked)


def test_many_random_cases_are_drawn_in_pieces_that_differ(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CHUNK", 50)
    ran = run(lambda case: MATCH, sweep=False, max_examples=200)
    assert sum(ran.results[0].cases.values()) > 120  # a piece that drew all of the one before would give 50
    again = run(lambda case: MATCH, sweep=False, max_examples=200)
    assert [case.key for case in again.asked] == [case.key for case in ran.asked]


def test_a_bug_in_a_later_piece_is_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CHUNK", 30)
    clean = run(lambda case: MATCH, sweep=False, max_examples=90)
    finding = Finding(Kind.VALUE_MISMATCH, "", kernel="k", source="s", argument="out")
    bad = clean.asked[45]  # of the second piece
    ran = run(lambda case: showing(finding) if case == bad else MATCH, sweep=False, max_examples=90)
    assert [found.case for found in ran.results[0].discoveries] == [bad]


def test_ctrl_c_leaves_what_kill_9_leaves(run: Run, whole: Ran) -> None:
    cut = run(stray, stop_after=40)
    assert not cut.journal.finished
    state = cut.journal.states[-1]
    assert state.progress is not None
    assert not state.progress.result.reasons
    rest = run(stray, state)
    assert rest.journal.finished
    assert [d.fingerprint for d in rest.results[0].discoveries] == [d.fingerprint for d in whole.results[0].discoveries]
    assert not rest.results[0].reasons
