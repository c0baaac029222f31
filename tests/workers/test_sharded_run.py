"""Shards that are lost, refuse, or are stopped."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kcheck.errors import CouldNotCheck, KcheckError, UsageError
from kcheck.events import CaseVerdict, Event, RunDone, TargetDone, WorkerReplaced
from kcheck.sharded.message import Lost, Message, Refused, Told
from kcheck.sharded.run import MOST_STARTS, ShardedRun
from tests.workers.conftest import Played, begin, end, turn

WHOLE = [Told((begin(), *turn("a", 2), *turn("b", 2), end()))]
LOST = Lost("was killed by SIGKILL")


def run(*parts: Sequence[Sequence[Message]]) -> tuple[list[Event], Played]:
    runner = Played(*parts)
    return list(ShardedRun(runner, len(parts), lambda number, done: tuple(done)).run()), runner


def test_a_lost_shard_runs_again_from_the_target_where_it_was() -> None:
    lost: list[Message] = [Told((begin(), *turn("a", 2), *turn("b", 1)[:2])), LOST]
    again: list[Message] = [Told((begin(("b",)), *turn("b", 2), end()))]
    events, runner = run([lost, again], [WHOLE])
    assert runner.tasks == [(0, ()), (1, ()), (0, ("a",))]
    results = [event.result for event in events if isinstance(event, TargetDone)]
    assert [(one.name, one.cases[CaseVerdict.MATCH], one.verdict) for one in results] == [
        ("a", 4, CaseVerdict.MATCH),
        ("b", 4, CaseVerdict.MATCH),
    ]
    (replaced,) = [event for event in events if isinstance(event, WorkerReplaced)]
    assert replaced.cause == "worker 1 of 2 was killed by SIGKILL"
    assert runner.is_closed


def test_a_shard_that_is_lost_again_and_again_is_no_pass() -> None:
    lost: list[Message] = [Told((begin(),)), LOST]
    events, runner = run([lost] * MOST_STARTS, [WHOLE])
    assert len(runner.tasks) == MOST_STARTS + 1
    done = events[-1]
    assert isinstance(done, RunDone)
    assert [one.verdict for one in done.results] == [CaseVerdict.COULD_NOT_CHECK] * 2
    assert done.results[0].reasons == ("worker 1 of 2 was lost 3 times; the last one was killed by SIGKILL",)
    assert done.results[0].cases[CaseVerdict.MATCH] == 2


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ([[LOST]] * MOST_STARTS, CouldNotCheck),
        ([[Refused(3, "no GPU")]], CouldNotCheck),
        ([[Refused(4, "a fault")]], KcheckError),
    ],
)
def test_no_shard_that_begins_is_an_error(part: list[list[Message]], error: type[KcheckError]) -> None:
    with pytest.raises(KcheckError) as raised:
        run(part, part)
    assert raised.value.exit_code == error.exit_code
    assert "SIGKILL" in str(raised.value) or "no GPU" in str(raised.value) or "a fault" in str(raised.value)


def test_a_usage_error_of_one_is_that_of_the_run() -> None:
    runner = Played([[Refused(2, "no such target")]], [WHOLE])
    with pytest.raises(UsageError, match="no such target"):
        list(ShardedRun(runner, 2, lambda number, done: None).run())
    assert runner.is_closed


def test_one_worker_without_a_gpu_leaves_the_others_their_results() -> None:
    events, _ = run([[Refused(3, "no GPU")]], [WHOLE])
    done = events[-1]
    assert isinstance(done, RunDone)
    assert done.results[1].reasons == ("worker 1 of 2: no GPU",)
    assert done.results[1].cases[CaseVerdict.MATCH] == 2


def test_an_interrupted_run_starts_no_shard_again() -> None:
    runner = Played([[Told((begin(), *turn("a", 1))), LOST]], [WHOLE])
    sharded = ShardedRun(runner, 2, lambda number, done: None)
    events = sharded.run()
    next(events)
    sharded.interrupt()
    done = list(events)[-1]
    assert isinstance(done, RunDone)
    assert done.interrupted
    assert runner.stops == 1
    assert len(runner.tasks) == 2


def test_interrupted_before_it_began() -> None:
    runner = Played([[LOST]])
    sharded = ShardedRun(runner, 1, lambda number, done: None)
    sharded.interrupt()
    with pytest.raises(KeyboardInterrupt):
        list(sharded.run())
    assert runner.stops == 2  # once more, for the shard that was started after it
