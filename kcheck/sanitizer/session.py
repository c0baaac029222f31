"""The cases of one target under one tool: whose fault is whose.

A report does not say which case a record belongs to. Where a fault takes the CUDA context along, it is the case that
was running: the others go on in a new launch. Where the process goes on, the cases are halved and run again until the
first case that shows the fault is known.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kcheck.case import Case
from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Kind
from kcheck.job import Status
from kcheck.sanitizer.launch import Launched, Launcher
from kcheck.sanitizer.outcome import Outcome

# What a program survives under every tool; all else ends the context, and so belongs to the case that ran last.
_SURVIVED = frozenset({Kind.API_ERROR, Kind.LEAK, Kind.UNINITIALIZED_READ, Kind.SHARED_RACE})
_REPEATS = 4  # launches in a row that show nothing but known faults; more of them would not tell more

FaultKey = tuple[Kind, str, str, int]


def fault_key(finding: Finding) -> FaultKey:
    """Identity of a fault within a run: an address may name its argument in one case and only suggest it in another."""
    return finding.kind, finding.kernel, finding.file, finding.line


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of one case under the tool.

    Attributes:
        case: The case.
        verdict: Of it.
        reason: Why it was rejected or could not be checked.
        findings: Its faults.
    """

    case: Case
    verdict: CaseVerdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()


class Session:
    """Runs cases under one tool.

    Args:
        launcher: Of that tool, for the target.
        deadline: Of `time.monotonic`; no launch begins after it.

    Attributes:
        launches: Launches of kernels, over all cases.
        reasons: Why it could not go on, or why reports are not whole.
        notes: What was left out, a sentence each.
    """

    def __init__(self, launcher: Launcher, deadline: float = float("inf")) -> None:
        self._launcher, self._deadline = launcher, deadline
        self._waiting: list[list[Case]] = []  # a stack of batches
        self._known: set[FaultKey] = set()
        self._owed: dict[FaultKey, Finding] = {}  # reported for several cases together, and not yet for one alone
        self._repeats = 0
        self._mixed = 0
        self.launches: Counter[str] = Counter()
        self.reasons: list[str] = []
        self.notes: list[str] = []

    def check(self, cases: Sequence[Case]) -> Iterator[Checked]:
        """Run cases; tell of each when it is known what became of it.

        Raises:
            UsageError: A kernel's name is not a symbol.
        """
        self._waiting = [list(cases)] if cases else []
        while self._waiting and not self.reasons:
            if time.monotonic() > self._deadline:
                self._leave("give it more --max-time")
                break
            if self._repeats >= _REPEATS:
                self._leave(f"the last {_REPEATS} launches showed nothing but faults that are known")
                break
            launched = self._launcher.launch(self._waiting.pop())
            for progress in launched.progress.cases.values():
                self.launches.update(progress.launches)
            yield from self._sort_out(launched)
        for finding in self._owed.values():
            self.reasons.append(f"compute-sanitizer reported a fault once and not again: {finding.message}.")
        if self._mixed:
            self.notes.append(f"{cases_text(self._mixed)} ran together with a faulty one and were not told apart")

    def _leave(self, why: str) -> None:
        self.notes.append(f"{cases_text(sum(map(len, self._waiting)))} were not run: {why}")

    def _sort_out(self, launched: Launched) -> Iterator[Checked]:
        """From one launch to verdicts, and to what must still run."""
        progress, outcome = launched.progress, launched.outcome()
        started = list(progress.cases)
        last = next((n for n in started if progress.cases[n].status in (Status.LOST, Status.RUNNING)), None)
        left = list(launched.cases[len(started) :])
        if left:
            self._waiting.append(left)
        if not started:
            self.reasons = [progress.problem, *outcome.reasons] if progress.problem else list(outcome.reasons)
            self.reasons = self.reasons or ["the worker ended before it ran a case."]
        elif outcome.findings:
            yield from self._blame(launched, outcome, last)
        elif last is not None:
            yield from self._without_record(launched, outcome, last)
        else:
            if outcome.verdict is CaseVerdict.COULD_NOT_CHECK:
                self.reasons = list(outcome.reasons)
            for number in started:
                yield self._plain(launched, number, outcome)

    def _blame(self, launched: Launched, outcome: Outcome, last: int | None) -> Iterator[Checked]:
        """The report holds faults: find the case that they belong to."""
        started = list(launched.progress.cases)
        owner = last if all(finding.kind not in _SURVIVED for finding in outcome.findings) else None
        if len(started) == 1:
            owner = started[0]
        news = {fault_key(finding) for finding in outcome.findings} - self._known
        self._repeats = 0 if news else self._repeats + 1
        if owner is not None:
            self._known |= news
            self._owed = {key: finding for key, finding in self._owed.items() if key not in news}
            told = launched.outcome(owner)
            for number in started:
                if number != owner:
                    yield self._plain(launched, number, Outcome(CaseVerdict.MATCH))
            yield Checked(launched.cases[owner], CaseVerdict.FINDINGS, findings=told.findings)
            self.notes += [reason for reason in told.reasons if reason not in self.notes]
        elif news:
            self._owed |= {fault_key(f): f for f in outcome.findings if fault_key(f) in news}
            cases = [launched.cases[number] for number in started]
            half = (len(cases) + 1) // 2
            self._waiting += [cases[half:], cases[:half]]
        else:
            self._mixed += len(started)

    def _without_record(self, launched: Launched, outcome: Outcome, last: int) -> Iterator[Checked]:
        """The process came to its end in a case, and the tool has no record that says why."""
        progress = launched.progress
        reason = progress.cases[last].reason or "the worker died in this case"
        if launched.hung:
            reason = "this case did not come to its end under compute-sanitizer in time; give it more --case-timeout"
        elif outcome.reasons:
            reason += f"; {outcome.reasons[0]}"
        yield Checked(launched.cases[last], CaseVerdict.COULD_NOT_CHECK, reason)
        others = [number for number in progress.cases if number != last]
        if outcome.verdict is CaseVerdict.MATCH:
            for number in others:
                yield self._plain(launched, number, outcome)
        elif others:  # no end mark, no proof: once more without the case that spoilt it
            self._waiting.append([launched.cases[number] for number in others])

    def _plain(self, launched: Launched, number: int, outcome: Outcome) -> Checked:
        """The verdict of a case that no record is about."""
        case, progress = launched.cases[number], launched.progress.cases[number]
        if progress.status is Status.REJECTED:
            return Checked(case, CaseVerdict.REJECTED, progress.reason)
        if progress.status is Status.UNCHECKED:
            return Checked(case, CaseVerdict.COULD_NOT_CHECK, progress.reason)
        return Checked(case, outcome.verdict, " ".join(outcome.reasons))


def cases_text(count: int) -> str:
    """``1 case``, ``12 cases``."""
    return "1 case" if count == 1 else f"{count:,} cases"
