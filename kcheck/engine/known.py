"""What the run's baseline lists for a target: tried first, not shrunk, not launched if it ends the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcheck.baseline import Known, holds
from kcheck.case import Case
from kcheck.events import CaseVerdict, Cell, Discovery, Gone, Phase, PhaseStarted
from kcheck.findings import Finding

if TYPE_CHECKING:
    from kcheck.engine.turn import Turn

REPEATS = 2  # more tries of a case that does not show its finding: gone is claimed only after all of them


class Ledger:
    """Known findings of a target.

    Args:
        entries: What the baseline lists.

    Attributes:
        entries: By fingerprint.
        left_out: Fingerprint of a crash → cases that were not launched because of it.
    """

    def __init__(self, entries: Sequence[Known] = ()) -> None:
        self.entries = {entry.fingerprint: entry for entry in entries}
        self.left_out: Counter[str] = Counter()
        self._hazards = [(entry.fingerprint, entry.case) for entry in entries if entry.is_crash]

    def hazard_in(self, case: Case) -> str:
        """Fingerprint of a known crash whose case this one holds, ``""`` if there is none."""
        return next((fingerprint for fingerprint, least in self._hazards if holds(case, least)), "")

    def add_hazard(self, fingerprint: str, case: Case) -> None:
        """Launch no more cases that hold this one: it showed a known crash."""
        self._hazards.append((fingerprint, case))


@dataclass(slots=True)
class Settled:
    """What became of the known findings of a target.

    Attributes:
        unlaunched: What was not seen since its case was not launched.
        gone: What is proven to be gone.
        untried: Fingerprint of what could not be checked → why.
        left_out: Crash, with its issue → cases that were not launched because of it.
        unseen: Fingerprint of what comes and goes and was not seen → a sentence that says so.
        notes: What else the reader should know, a sentence each.
    """

    unlaunched: list[Discovery] = field(default_factory=list)
    gone: list[Gone] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def recognise(turn: Turn, case: Case, finding: Finding) -> None:
    """Make what the baseline lists a discovery at once, so that it is neither news nor shrunk."""
    entry = turn.ledger.entries.get(turn.fingerprint(finding))
    if entry is None or not entry.covers(finding):
        return
    if entry.is_crash:
        turn.ledger.add_hazard(entry.fingerprint, case)
    if entry.fingerprint not in turn.discoveries:
        found = entry.tracked(turn.discovery(finding, entry.case if entry.is_crash else case))
        turn.discoveries[entry.fingerprint] = turn.store.keep(found)
        if (view := case.views.get(entry.culprit)) is not None:
            turn.mark(entry.culprit, view.kinds, Cell.FINDING)


def replay_known(turn: Turn) -> None:
    """Run the case of each known finding, before all others.

    Raises:
        Stop: The budget is used up.
    """
    entries = [entry for entry in turn.ledger.entries.values() if not entry.is_crash and _fits(turn, entry)]
    if entries:
        turn.emit(PhaseStarted(turn.title, Phase.SWEEP, len(entries)))
    for entry in entries:
        judgement = turn.judge(entry.case)
        for _ in range(REPEATS):
            if entry.fingerprint in turn.bugs or judgement.verdict is CaseVerdict.COULD_NOT_CHECK:
                break
            turn.note_bugs(entry.case, turn.client.judge(turn.spec, entry.case))


def settle(turn: Turn) -> Settled:
    """Hold the baseline against a turn that is over."""
    settled = Settled()
    for entry in turn.ledger.entries.values():
        if entry.is_crash:
            _settle_crash(turn, entry, settled)
        elif entry.fingerprint in turn.bugs:
            found = turn.discoveries.get(entry.fingerprint)
            if found is not None and found.known and found.case != entry.case:
                settled.notes.append(f"{entry.title} is still there, but in another case; write the baseline again")
        else:
            _settle_unseen(turn, entry, settled)
    return settled


def _settle_crash(turn: Turn, entry: Known, settled: Settled) -> None:
    if entry.fingerprint not in turn.bugs:
        settled.unlaunched.append(entry.unlaunched(turn.target.name, turn.spec, turn.store.unusual))
    if count := turn.ledger.left_out[entry.fingerprint]:
        settled.left_out[f"{entry.title}, known from the baseline, {entry.issue}"] = count


def _settle_unseen(turn: Turn, entry: Known, settled: Settled) -> None:
    verdict = turn.verdict_of(entry.case)
    if not _fits(turn, entry):
        why = f"{entry.title}: its case in the baseline does not fit the target; remove the entry"
        settled.untried[entry.fingerprint] = why
    elif verdict is None:
        settled.untried[entry.fingerprint] = f"{entry.title}: there was no time for its case in the baseline"
    elif verdict is CaseVerdict.COULD_NOT_CHECK:  # its reason is among those of the turn, or it holds a crash
        if turn.ledger.hazard_in(entry.case):
            settled.unlaunched.append(entry.unlaunched(turn.target.name, turn.spec, turn.store.unusual))
    elif entry.strict:
        settled.gone.append(entry.gone)
    else:
        settled.unseen[entry.fingerprint] = f"{entry.title} is in the baseline, and this run did not see it"


def _fits(turn: Turn, entry: Known) -> bool:
    return set(entry.case.args) == set(turn.target.parameters)
