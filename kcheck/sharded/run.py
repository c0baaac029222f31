"""A run in several shards: starts them, starts again those that are lost, and tells of all as of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kcheck.errors import CouldNotCheck, KcheckError, NoTargetError, UsageError
from kcheck.events import Event, Shard
from kcheck.sharded.message import Lost, Message, Refused, Runner, Told
from kcheck.sharded.stream import JoinedStream

MOST_STARTS = 3  # of one shard: what ends a process three times will do it again
_ERRORS: dict[int, type[KcheckError]] = {
    error.exit_code: error for error in (KcheckError, UsageError, CouldNotCheck, NoTargetError)
}


class ShardedRun:
    """Looks like a campaign: `run` yields the events of one run.

    Args:
        runner: Runs the shards; closed at the end.
        count: Number of shards.
        task: From a shard's number and the targets that it is done with to what it has to do.
        shard: The part of a larger run that all of them are, None if they are all of it.
    """

    def __init__(
        self, runner: Runner, count: int, task: Callable[[int, Sequence[str]], object], shard: Shard | None = None
    ) -> None:
        self._runner, self._count, self._task = runner, count, task
        self._stream = JoinedStream(count, shard)
        self._starts: Counter[int] = Counter()
        self._refused: Refused | None = None
        self._interrupted = False

    def interrupt(self) -> None:
        """End the run soon; what was found is kept and reported."""
        self._interrupted = True
        self._runner.interrupt()

    def run(self) -> Iterator[Event]:
        """Run, and yield events until `RunDone`.

        Raises:
            KcheckError: No shard could begin its work.
            KeyboardInterrupt: The run was stopped before one did.
        """
        try:
            for number in range(self._count):
                self._start(number)
            while not self._stream.is_over:
                for number, message in self._runner.receive():
                    yield from self._heard(number, message)
            if not self._stream.is_started:
                raise self._failure()
            yield self._stream.done()
        finally:
            self._runner.close()

    def _start(self, number: int) -> None:
        self._starts[number] += 1
        self._runner.start(number, self._task(number, self._stream.finished(number)))
        if self._interrupted:
            self._runner.interrupt()  # it came while there was nothing to stop

    def _heard(self, number: int, message: Message) -> Iterator[Event]:
        match message:
            case Told(events):
                for event in events:
                    yield from self._stream.take(number, event)
            case Refused(exit_code, sentence):
                self._refused = message
                if exit_code in (UsageError.exit_code, NoTargetError.exit_code):  # so will all others say
                    raise self._failure()
                yield from self._stream.give_up(number, f"worker {number + 1} of {self._count}: {sentence}")
            case Lost() if self._interrupted:
                yield from self._stream.stop(number)
            case Lost(cause) if self._starts[number] < MOST_STARTS:
                yield from self._stream.replace_shard(number, f"worker {number + 1} of {self._count} {cause}")
                self._start(number)
            case Lost(cause):
                often = f"worker {number + 1} of {self._count} was lost {MOST_STARTS} times; the last one {cause}"
                self._refused = self._refused or Refused(CouldNotCheck.exit_code, often)
                yield from self._stream.give_up(number, often)

    def _failure(self) -> BaseException:
        if self._interrupted or self._refused is None:
            return KeyboardInterrupt()
        return _ERRORS.get(self._refused.exit_code, KcheckError)(self._refused.sentence)
