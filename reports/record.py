"""What is known of a run: the events, gathered for the reports that are written at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Discovery,
    Event,
    RunDone,
    RunStarted,
    Shard,
    TargetDone,
    TargetResult,
    TargetStarted,
)


@dataclass(slots=True)
class RunRecord:
    """A run as far as it went.

    Attributes:
        backend: ``interpret`` or ``cuda``.
        seed: Seed of the run.
        versions: Package → version.
        targets: Names of all targets, those without a result included.
        results: One per target that had a turn.
        interrupted: The run did not come to its end.
        seconds: Wall time.
        shard: The part that it is of a larger run, None if it is all of it.
        joined: Indices of the shards that are joined in it, where some are missing.
        identity: What its shards have in common, in words by name; empty if nobody said it.
    """

    backend: str = ""
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    results: tuple[TargetResult, ...] = ()
    interrupted: bool = True
    seconds: float = 0.0
    shard: Shard | None = None
    joined: tuple[int, ...] = ()
    identity: Mapping[str, str] = field(default_factory=dict)

    def outcomes(self) -> tuple[TargetResult, ...]:
        """One result per target; those that had no turn could not be checked."""
        reasons = ("the run stopped before this target had its turn",)
        without = self.targets[len(self.results) :]
        return (*self.results, *(TargetResult(name, CaseVerdict.COULD_NOT_CHECK, reasons) for name in without))


class Recorder:
    """Follows the events of a run.

    Attributes:
        started: The run has begun, so that there is something to report.
    """

    def __init__(self) -> None:
        self.started = False
        self._record = RunRecord()
        self._open: TargetStarted | None = None
        self._found: list[Discovery] = []
        self._cases: dict[CaseVerdict, int] = {}
        self._seconds = 0.0

    def handle(self, event: Event) -> None:
        """Take one event."""
        record = self._record
        match event:
            case RunStarted():
                self.started = True
                record.backend, record.seed = event.backend, event.seed
                record.versions, record.targets = event.versions, event.targets
                record.shard, record.joined, record.identity = event.shard, event.joined, event.identity
            case TargetStarted():
                self._open, self._found, self._cases, self._seconds = event, [], {}, 0.0
            case CaseDone():
                self._cases[event.verdict] = self._cases.get(event.verdict, 0) + 1
                self._seconds += event.seconds
            case BugFound(discovery):
                self._found.append(discovery)
            case TargetDone(result):
                self._open = None
                record.results += (result,)
            case RunDone():
                self._open = None
                record.results = event.results
                record.interrupted, record.seconds = event.interrupted, event.seconds

    def record(self) -> RunRecord:
        """The run so far; what was found of a target that did not come to its end is in it."""
        record = self._record
        if self._open is not None:
            reason = "the run stopped before this target was done"
            verdict = CaseVerdict.FINDINGS if self._found else CaseVerdict.COULD_NOT_CHECK
            record.results += (
                TargetResult(
                    self._open.target, verdict, (reason,), (), self._cases, self._seconds, {}, tuple(self._found)
                ),
            )
            self._open = None
        return record
