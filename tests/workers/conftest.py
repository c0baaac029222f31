"""Events of shards, made by hand."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kcheck.case import Case, Tensor
from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Discovery,
    Event,
    Phase,
    RunDone,
    RunStarted,
    TargetDone,
    TargetResult,
    TargetStarted,
)
from kcheck.evidence import Evidence
from kcheck.findings import Finding, Kind
from kcheck.join import judged
from kcheck.layout import Layout
from kcheck.sharded.message import Message

TARGETS = ("a", "b")


def bug(fingerprint: str, rows: int = 2, **changes: Any) -> Discovery:
    """A stray write of ``out``, which has that many rows."""
    case = Case(out=Tensor("float32", Layout.contiguous((rows, 4))))
    finding = Finding(Kind.OUT_OF_VIEW_WRITE, "stray", kernel="k", argument="out")
    return Discovery("t", "t.py::t", finding, fingerprint, case, **changes)


def result(target: str, matches: int, *found: Discovery, **facts: Any) -> TargetResult:
    """What one shard says of a target, whose kernel k was launched."""
    cases = {CaseVerdict.MATCH: matches, CaseVerdict.FINDINGS: len(found)}
    evidence = Evidence(kernels=("k",), varied=matches, **facts)
    bare = TargetResult(target, CaseVerdict.MATCH, cases=cases, launches={"k": matches}, discoveries=found)
    return judged(replace(bare, evidence=evidence))


def begin(targets: Sequence[str] = TARGETS) -> RunStarted:
    return RunStarted(tuple(targets), "interpret", 7, {"kcheck": "0"})


def turn(target: str, matches: int, *found: Discovery, **facts: Any) -> list[Event]:
    """All events of a target in one shard."""
    done = CaseDone(target, Phase.RANDOM, CaseVerdict.MATCH, 0.01)
    return [
        TargetStarted(target),
        *[done] * matches,
        *map(BugFound, found),
        TargetDone(result(target, matches, *found, **facts)),
    ]


def end(*, interrupted: bool = False) -> RunDone:
    return RunDone((), interrupted, 1.0)


class Played:
    """A runner that plays messages: of each start of a shard, what is heard of it then."""

    def __init__(self, *parts: Sequence[Iterable[Message]]) -> None:
        self._parts = [list(starts) for starts in parts]
        self._heard: list[tuple[int, Message]] = []
        self.tasks: list[tuple[int, object]] = []
        self.stops = 0
        self.is_closed = False

    def start(self, number: int, task: object) -> None:
        self.tasks.append((number, task))
        self._heard += [(number, message) for message in self._parts[number].pop(0)]

    def receive(self) -> list[tuple[int, Message]]:
        assert self._heard, "nothing more will be heard, and the run waits"
        number, message = self._heard.pop(0)
        return [(number, pickle.loads(pickle.dumps(message)))]

    def interrupt(self) -> None:
        self.stops += 1

    def close(self) -> None:
        self.is_closed = True
