"""Events of several shards as those of one run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Event,
    Phase,
    PhaseStarted,
    RunStarted,
    Shard,
    TargetDone,
    TargetResult,
    TargetStarted,
)
from kcheck.join import join_results
from kcheck.sharded.stream import JoinedStream
from tests.workers.conftest import begin, bug, end, result, turn


def played(*parts: Iterable[Event], shard: Shard | None = None) -> list[Event]:
    """The stream that comes of these shards, one event of each in turn."""
    stream, told = JoinedStream(len(parts), shard), list[Event]()
    left = [list(events) for events in parts]
    while any(left):
        for number, events in enumerate(left):
            if events:
                told += stream.take(number, events.pop(0))
    return [*told, stream.done()]


def results(events: Iterable[Event]) -> list[TargetResult]:
    return [event.result for event in events if isinstance(event, TargetDone)]


def test_targets_come_one_after_another() -> None:
    """One shard is done with both targets before the other one is done with the first."""
    fast = [begin(), *turn("a", 1), *turn("b", 2), end()]
    slow = [begin(), *turn("a", 20), *turn("b", 1), end()]
    events = played(fast, slow, shard=Shard(2, 3))
    assert events[0] == RunStarted(("a", "b"), "interpret", 7, {"kcheck": "0"}, Shard(2, 3), workers=2)
    of = [event.target for event in events if isinstance(event, (TargetStarted, CaseDone))]
    assert of == ["a"] * 22 + ["b"] * 4
    assert [(one.name, one.cases[CaseVerdict.MATCH]) for one in results(events)] == [("a", 21), ("b", 3)]


def test_a_bug_of_both_is_told_once_and_kept_in_its_smallest_case() -> None:
    big, small, other = bug("f" * 12, rows=9, seen=4), bug("f" * 12, rows=2, seen=3), bug("e" * 12)
    parts = [begin(("a",)), *turn("a", 1, big), end()], [begin(("a",)), *turn("a", 1, small, other), end()]
    for order in permutations(parts):
        events = played(*order)
        assert len([event for event in events if isinstance(event, BugFound)]) == 2
        (joined,) = results(events)
        found = {one.fingerprint: one for one in joined.discoveries}
        assert set(found) == {"f" * 12, "e" * 12}
        assert found["f" * 12].case == small.case
        assert found["f" * 12].seen == 7


def test_the_result_is_the_one_of_the_joined_reports() -> None:
    mine, yours = result("a", 4, bug("f" * 12)), result("a", 6, rejections={"no": 1})
    (joined,) = results(played([begin(("a",)), TargetDone(mine), end()], [begin(("a",)), TargetDone(yours), end()]))
    expected = join_results([mine, yours])
    assert joined.discoveries == expected.discoveries
    assert (joined.verdict, joined.cases, joined.reasons) == (expected.verdict, expected.cases, expected.reasons)


def test_a_reason_that_another_shard_refutes_is_none() -> None:
    """One shard met only layouts that the target declines."""
    declined = turn("a", 1, declined={"x": "must be contiguous"})
    accepted = turn("a", 1, accepted=("x",))
    assert results(played([begin(("a",)), *declined, end()]))[0].verdict is CaseVerdict.COULD_NOT_CHECK
    (joined,) = results(played([begin(("a",)), *declined, end()], [begin(("a",)), *accepted, end()]))
    assert joined.verdict is CaseVerdict.MATCH


def test_what_a_lost_process_found_is_not_lost() -> None:
    stream = JoinedStream(1)
    told = [event for sent in [begin(("a",)), *turn("a", 3, bug("f" * 12))[:-1]] for event in stream.take(0, sent)]
    told += stream.replace_shard(0, "worker 1 of 1 was killed by SIGKILL")
    told += [event for sent in [begin(("a",)), *turn("a", 2), end()] for event in stream.take(0, sent)]
    assert len([event for event in told if isinstance(event, BugFound)]) == 1
    (joined,) = results(told)
    assert [one.fingerprint for one in joined.discoveries] == ["f" * 12]
    assert joined.verdict is CaseVerdict.FINDINGS
    assert joined.cases[CaseVerdict.MATCH] == 2  # the case count is that of the process that came to an end


def test_a_shard_that_is_given_up_leaves_its_reason_and_its_bugs() -> None:
    stream = JoinedStream(2)
    told = list(stream.take(0, begin()))
    for sent in turn("a", 1, bug("f" * 12))[:-1]:
        told += stream.take(0, sent)
    told += stream.give_up(0, "worker 1 of 2 was lost 3 times")
    for sent in [begin(), *turn("a", 5), *turn("b", 5), end()]:
        told += stream.take(1, sent)
    first, second = results(told)
    assert first.verdict is CaseVerdict.FINDINGS
    assert first.reasons == ("worker 1 of 2 was lost 3 times",)
    assert second.verdict is CaseVerdict.COULD_NOT_CHECK
    assert second.reasons == first.reasons
    assert stream.is_over


@pytest.mark.parametrize("parts", [1, 2])
def test_an_interrupted_run_has_the_results_that_there_are(parts: int) -> None:
    stopped = [begin(), *turn("a", 1, interrupted=True), end(interrupted=True)]
    events = played(*[stopped] * parts)
    assert [one.name for one in results(events)] == ["a"]
    assert results(events)[0].reasons == ("the run was interrupted",)
    assert events[-1].interrupted  # type: ignore[union-attr]


def test_a_target_that_one_shard_did_not_come_to_is_not_checked() -> None:
    whole = [begin(), *turn("a", 3), *turn("b", 3), end()]
    stopped = [begin(), *turn("a", 1, interrupted=True), end(interrupted=True)]
    first, second = results(played(whole, stopped))
    assert first.verdict is second.verdict is CaseVerdict.COULD_NOT_CHECK
    assert second.cases[CaseVerdict.MATCH] == 3


def test_progress_is_that_of_all() -> None:
    """Two shards of a sweep of 7: three cases are done in one when the other begins."""
    stream = JoinedStream(2)
    told = [*stream.take(0, begin(("a",))), *stream.take(0, PhaseStarted("a", Phase.SWEEP, 4))]
    for _ in range(3):
        told += stream.take(0, CaseDone("a", Phase.SWEEP, CaseVerdict.MATCH, 0.1))
    told += stream.take(1, PhaseStarted("a", Phase.SWEEP, 3))
    phases = [event for event in told if isinstance(event, PhaseStarted)]
    assert phases == [PhaseStarted("a", Phase.SWEEP, 4), PhaseStarted("a", Phase.SWEEP, 7, done=3)]
