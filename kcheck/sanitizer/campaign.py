"""A campaign under compute-sanitizer: targets, tool by tool, told in the events of a fuzz campaign."""

from __future__ import annotations

import importlib.metadata
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import kcheck
from kcheck.baseline import Known, holds
from kcheck.case import Case
from kcheck.errors import KcheckError
from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Discovery,
    Event,
    Gone,
    Phase,
    PhaseStarted,
    RunDone,
    RunStarted,
    TargetDone,
    TargetResult,
    TargetStarted,
)
from kcheck.findings import Finding
from kcheck.layout import LayoutKind
from kcheck.sanitizer.launch import Launcher, Setup
from kcheck.sanitizer.outcome import unlaunched
from kcheck.sanitizer.session import Checked, FaultKey, Session, cases_text, fault_key
from kcheck.sanitizer.tool import Tool
from kcheck.store import Store
from kcheck.target import Target

MAX_BACKING = 1 << 28  # bytes: a larger tensor (a far layout) is not laid out for real


@dataclass(frozen=True, slots=True)
class Subject:
    """A target and the cases to run.

    Attributes:
        target: The target.
        spec: How the user names it; the worker loads it by this.
        cases: Its cases, small ones first.
        notes: What the reader should know of their choice, a sentence each.
        problem: Why there are no cases, a sentence.
        known: What the run's baseline lists for it.
        title: What reports call it; ``""``: the target's name.
    """

    target: Target
    spec: str
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()
    problem: str = ""
    known: tuple[Known, ...] = ()
    title: str = ""

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.title or self.target.name


@dataclass(slots=True)
class _Bug:
    """One fault, in all cases that show it."""

    discovery: Discovery
    kinds: set[LayoutKind] = field(default_factory=set)
    seen: int = 0

    @property
    def told(self) -> Discovery:
        return replace(self.discovery, seen=self.seen, layout_kinds=tuple(sorted(self.kinds)))


@dataclass(slots=True)
class _Turn:
    """The account of one target."""

    subject: Subject
    began: float
    seconds: float
    counts: Counter[CaseVerdict] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)
    unchecked: Counter[str] = field(default_factory=Counter)
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bugs: dict[FaultKey, _Bug] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)  # fingerprints of known findings
    judged: set[tuple[Tool, str]] = field(default_factory=set)  # tools and keys of cases
    gone: list[Gone] = field(default_factory=list)

    def result(self) -> TargetResult:
        """Sum up."""
        reasons = self.reasons + [f"{reason} ({cases_text(count)})" for reason, count in self.unchecked.most_common(3)]
        judged = self.counts[CaseVerdict.MATCH] + self.counts[CaseVerdict.FINDINGS]
        if not judged and not reasons:
            quote = next(iter(self.rejections), "")
            reasons = [f"every case was rejected: {quote}" if quote else "no case ran"]
        verdict = (
            CaseVerdict.FINDINGS
            if self.bugs or self._unlaunched()
            else CaseVerdict.COULD_NOT_CHECK
            if reasons
            else CaseVerdict.MATCH
        )
        found = sorted((bug.told for bug in self.bugs.values()), key=lambda told: told.finding.severity.rank)
        return TargetResult(
            name=self.subject.name,
            verdict=verdict,
            reasons=tuple(reasons),
            notes=(*self.subject.notes, *self.notes),
            cases=dict(self.counts),
            seconds=time.monotonic() - self.began,
            discoveries=tuple(found) + self._unlaunched(),
            launches=dict(self.launches),
            gone=tuple(self.gone),
        )

    def known(self, tool: Tool) -> dict[str, Known]:
        """What the baseline lists for a tool, by fingerprint."""
        return {entry.fingerprint: entry for entry in self.subject.known if entry.found_by == tool}

    def settle(self, tool: Tool) -> None:
        """Hold the baseline against what the tool showed."""
        for entry in self.known(tool).values():
            if entry.is_crash or entry.fingerprint in self.met:
                continue
            if (tool, entry.case.key) not in self.judged:
                self.reasons.append(f"{tool}: {entry.title}: its case in the baseline could not be checked")
            elif entry.strict:
                self.gone.append(entry.gone)
            else:
                self.notes.append(f"{tool}: {entry.title} is in the baseline, and this run did not see it")

    def _unlaunched(self) -> tuple[Discovery, ...]:
        return tuple(
            entry.unlaunched(self.subject.target.name, self.subject.spec)
            for entry in self.subject.known
            if entry.is_crash
        )


class SanitizerCampaign:
    """A run over targets.

    Args:
        subjects: What to run, in order.
        tools: Under which tools, in order.
        setup: How workers are launched.
        store: Where findings are kept.
        seed: Of the random cases, for reports.
        max_time: Seconds a target after which no launch begins.
        total_time: Seconds for all targets, in equal shares of what is left.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        tools: Sequence[Tool],
        setup: Setup,
        store: Store,
        *,
        seed: int = 0,
        max_time: float = 600.0,
        total_time: float = math.inf,
    ) -> None:
        self._subjects, self._tools, self._setup, self._store = subjects, tools, setup, store
        self._seed, self._max_time, self._total_time = seed, max_time, total_time

    def run(self) -> Iterator[Event]:
        """Run, and yield events until `RunDone`. Ctrl-C ends the run in order; what was found is kept."""
        began = time.monotonic()
        names = tuple(subject.name for subject in self._subjects)
        yield RunStarted(names, self._setup.backend, self._seed, self._versions())
        results: list[TargetResult] = []
        interrupted = False
        for done, subject in enumerate(self._subjects):
            share = (self._total_time - (time.monotonic() - began)) / (len(self._subjects) - done)
            turn = _Turn(subject, time.monotonic(), min(self._max_time, share))
            yield TargetStarted(subject.name)
            try:
                yield from self._tools_of(turn)
            except KeyboardInterrupt:
                interrupted = True
                turn.reasons.append("interrupted")
            except KcheckError as error:
                turn.reasons.append(str(error))
            results.append(turn.result())
            yield TargetDone(results[-1])
            if interrupted:
                break
        yield RunDone(tuple(results), interrupted, time.monotonic() - began)

    def _versions(self) -> Mapping[str, str]:
        packages = {name: importlib.metadata.version(name) for name in ("torch", "triton")}
        return {"kcheck": kcheck.__version__, **packages, "compute-sanitizer": self._setup.sanitizer.version}

    def _tools_of(self, turn: _Turn) -> Iterator[Event]:
        subject = turn.subject
        if subject.problem:
            turn.reasons.append(subject.problem)
            return
        cases = [case for case in subject.cases if all(b.nbytes < MAX_BACKING for b in case.backings.values())]
        if left_out := len(subject.cases) - len(cases):
            turn.notes.append(f"{cases_text(left_out)} with tensors of {MAX_BACKING >> 20} MiB or more: left out")
        small = len(cases)
        cases = [
            case for case in cases if not any(entry.is_crash and holds(case, entry.case) for entry in subject.known)
        ]
        if left_out := small - len(cases):
            turn.notes.append(
                f"{cases_text(left_out)} not launched: they hold the case of a crash known from the baseline"
            )
        for tool in self._tools:
            yield PhaseStarted(subject.name, Phase.SWEEP, len(cases))
            yield from self._tool(turn, tool, cases)

    def _tool(self, turn: _Turn, tool: Tool, cases: Sequence[Case]) -> Iterator[Event]:
        target = turn.subject.target
        launcher = Launcher(self._setup, tool, turn.subject.spec, target.kernels)
        session = Session(launcher, turn.began + turn.seconds)
        began = before = time.monotonic()
        ran = 0
        for checked in session.check(cases):
            seconds, before = time.monotonic() - before, time.monotonic()
            ran += 1
            turn.counts[checked.verdict] += 1
            if checked.verdict is CaseVerdict.REJECTED:
                turn.rejections[checked.reason] += 1
            elif checked.verdict is CaseVerdict.COULD_NOT_CHECK and not session.reasons:
                turn.unchecked[f"{tool}: {checked.reason}"] += 1
            yield CaseDone(turn.subject.name, Phase.SWEEP, checked.verdict, seconds, checked.case, checked.reason)
            if checked.verdict is not CaseVerdict.COULD_NOT_CHECK:
                turn.judged.add((tool, checked.case.key))
            yield from self._discover(turn, tool, checked)
        turn.launches.update(session.launches)
        turn.reasons += [f"{tool}: {reason}" for reason in session.reasons]
        turn.notes += [f"{tool}: {note}" for note in session.notes]
        turn.notes.append(f"{tool}: {cases_text(ran)}, {launcher.count} starts, {time.monotonic() - began:.0f} s")
        turn.settle(tool)
        if not session.reasons and not turn.bugs and turn.counts[CaseVerdict.MATCH]:
            turn.reasons += [f"{tool}: {reason}" for reason in _unseen(target, session.launches)]

    def _discover(self, turn: _Turn, tool: Tool, checked: Checked) -> Iterator[Event]:
        known = turn.known(tool)
        for finding in checked.findings:
            entry = known.get(finding.fingerprint(turn.subject.target.name))
            bug = turn.bugs.get(fault_key(finding))
            if entry is not None:
                turn.met.add(entry.fingerprint)
                if bug is not None and entry.covers(finding):
                    bug.discovery = replace(bug.discovery, known=entry.issue)
            if bug is None:
                discovery = self._store.keep(self._discovery(turn.subject, finding, checked.case, tool, entry))
                bug = turn.bugs[fault_key(finding)] = _Bug(discovery)
                yield BugFound(discovery)
            bug.seen += 1
            view = checked.case.views.get(finding.argument)
            bug.kinds |= view.kinds if view is not None else frozenset()

    def _discovery(self, subject: Subject, finding: Finding, case: Case, tool: Tool, entry: Known | None) -> Discovery:
        view = case.views.get(finding.argument)
        found = Discovery(
            target=subject.target.name,
            spec=subject.spec,
            finding=finding,
            fingerprint=finding.fingerprint(subject.target.name),
            case=case,
            layout_kinds=tuple(sorted(view.kinds)) if view is not None else (),
            directory=self._store.unusual,
            tool=tool,
        )
        return entry.tracked(found) if entry is not None and entry.covers(finding) else found


def _unseen(target: Target, launches: Mapping[str, int]) -> list[str]:
    """Why launches prove nothing about some kernels, a sentence each."""
    unknown = [kernel for kernel in target.named if not launches.get(kernel)]
    reasons = [
        f"{kernel} is named by a string: under compute-sanitizer only launches by Triton are seen, so nobody knows "
        "whether it ran."
        for kernel in unknown
    ]
    known = [kernel for kernel in target.kernels if kernel not in unknown]
    return reasons + (unlaunched(known, launches) if known or not unknown else [])
