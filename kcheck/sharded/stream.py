"""The events of several shards as those of one run."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Discovery,
    Event,
    Notice,
    Phase,
    PhaseStarted,
    RunDone,
    RunStarted,
    Shard,
    TargetDone,
    TargetResult,
    TargetStarted,
    WorkerReplaced,
)
from kcheck.join import join_results


@dataclass(slots=True)
class _Part:
    """What is known of one shard.

    Attributes:
        target: The target whose turn it is there.
        results: Target → its result.
        found: Target → fingerprint → bug, as soon as it was known.
        over: It said that it is done.
        interrupted: It was stopped.
        lost: Why it will never be done, ``""`` if it will.
    """

    target: str = ""
    results: dict[str, TargetResult] = field(default_factory=dict)
    found: dict[str, dict[str, Discovery]] = field(default_factory=lambda: defaultdict(dict))
    over: bool = False
    interrupted: bool = False
    lost: str = ""

    def is_done_with(self, target: str) -> bool:
        """Nothing more will be heard about a target."""
        return target in self.results or self.over or bool(self.lost)

    def result(self, target: str) -> TargetResult:
        """What the shard has to say about a target. Nothing that was found is missing, be it of a process now lost."""
        result = self.results.get(target)
        told = {d.fingerprint for d in result.discoveries} if result is not None else set()
        found = tuple(d for d in self.found[target].values() if d.fingerprint not in told)
        if result is None:
            reason = self.lost or "the run stopped before all workers were done with this target"
            return TargetResult(target, CaseVerdict.COULD_NOT_CHECK, (reason,), discoveries=found)
        return replace(result, discoveries=result.discoveries + found) if found else result


class _Progress:
    """How far all shards together are with a target."""

    def __init__(self) -> None:
        self._done: Counter[tuple[int, Phase]] = Counter()
        self._totals: dict[tuple[int, Phase], int] = {}

    def enter(self, number: int, event: PhaseStarted) -> PhaseStarted | None:
        """A phase that begins in one shard, as one of all: planned and done cases added up."""
        if event.total is None:
            return None
        key = number, event.phase
        self._totals[key] = max(self._totals.get(key, 0), self._done[key] + event.total)
        total = sum(count for (_, phase), count in self._totals.items() if phase is event.phase)
        done = sum(count for (_, phase), count in self._done.items() if phase is event.phase)
        return replace(event, total=total, done=done)

    def count(self, number: int, event: CaseDone) -> None:
        """A case of one shard."""
        self._done[number, event.phase] += 1


class JoinedStream:
    """Takes the events of shards as they come, and gives those of one run: one target after another, each bug once.

    A target is done when all shards are done with it; what shards tell of later ones waits.

    Args:
        count: Number of shards.
        shard: The part of the run that they are together, None if they are all of it.
    """

    def __init__(self, count: int, shard: Shard | None = None) -> None:
        self._parts = [_Part() for _ in range(count)]
        self._shard = shard
        self._began = time.monotonic()
        self._targets: tuple[str, ...] = ()
        self._front = 0
        self._waiting: dict[str, list[tuple[int, Event]]] = defaultdict(list)
        self._told: set[tuple[str, str]] = set()
        self._progress = _Progress()
        self._results: list[TargetResult] = []

    @property
    def is_started(self) -> bool:
        """A shard has begun its work."""
        return bool(self._targets)

    @property
    def is_over(self) -> bool:
        """Nothing more is to be heard of any shard."""
        return all(part.over or part.lost for part in self._parts)

    def finished(self, number: int) -> tuple[str, ...]:
        """The targets that a shard is done with."""
        return tuple(self._parts[number].results)

    def take(self, number: int, event: Event) -> Iterator[Event]:
        """Take an event of a shard; give those of the run that follow from it."""
        part = self._parts[number]
        match event:
            case Notice(text):
                yield Notice(f"worker {number + 1} of {len(self._parts)}: {text}")
            case RunStarted():
                if not self._targets:
                    self._targets = event.targets
                    yield replace(event, shard=self._shard, workers=len(self._parts))
                    yield from self._open()
            case TargetStarted(target):
                part.target = target
            case TargetDone(result):
                part.results[result.name] = result
                yield from self._close_targets()
            case RunDone():
                part.over, part.interrupted = True, event.interrupted
                yield from self._close_targets()
            case BugFound(discovery):
                part.found[part.target][discovery.fingerprint] = discovery
                yield from self._tell(part.target, number, event)
            case PhaseStarted() | CaseDone() | WorkerReplaced():
                yield from self._tell(event.target, number, event)

    def replace_shard(self, number: int, cause: str) -> Iterator[Event]:
        """A shard is lost, and is started again."""
        if self._front < len(self._targets):
            yield WorkerReplaced(self._targets[self._front], cause, 0.0)
        self._parts[number].target = ""

    def give_up(self, number: int, reason: str) -> Iterator[Event]:
        """A shard is lost, and will not be done."""
        self._parts[number].lost = reason
        yield from self._close_targets()

    def stop(self, number: int) -> Iterator[Event]:
        """A shard ended early since the user wants it."""
        self._parts[number].over = self._parts[number].interrupted = True
        yield from self._close_targets()

    def done(self) -> RunDone:
        """The end of the run."""
        interrupted = any(part.interrupted for part in self._parts)
        return RunDone(tuple(self._results), interrupted, time.monotonic() - self._began)

    def _open(self) -> Iterator[Event]:
        target = self._targets[self._front]
        self._progress = _Progress()
        yield TargetStarted(target)
        for number, event in self._waiting.pop(target, ()):
            yield from self._tell(target, number, event)

    def _tell(self, target: str, number: int, event: Event) -> Iterator[Event]:
        if target not in self._targets[self._front : self._front + 1]:
            self._waiting[target].append((number, event))
            return
        match event:
            case CaseDone():
                self._progress.count(number, event)
                yield event
            case PhaseStarted():
                if (phase := self._progress.enter(number, event)) is not None:
                    yield phase
            case BugFound(discovery):
                if (discovery.spec, discovery.fingerprint) not in self._told:
                    self._told.add((discovery.spec, discovery.fingerprint))
                    yield event
            case _:
                yield event

    def _close_targets(self) -> Iterator[Event]:
        """End the turns of the targets that all shards are done with."""
        while self._front < len(self._targets):
            target = self._targets[self._front]
            had_it = any(target in part.results or part.found[target] or part.lost for part in self._parts)
            if not (had_it and all(part.is_done_with(target) for part in self._parts)):
                return
            parts = [part.result(target) for part in self._parts]
            result = replace(join_results(parts), seconds=max(part.seconds for part in parts))
            self._results.append(result)
            yield TargetDone(result)
            self._front += 1
            if self._front < len(self._targets) and not self.is_over:
                yield from self._open()
