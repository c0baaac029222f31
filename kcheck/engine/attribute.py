"""Attribution: which argument's layout decides, and which findings have the same cause."""

from __future__ import annotations

from dataclasses import replace

from kcheck.case import Case
from kcheck.engine.turn import Turn
from kcheck.errors import WorkerError
from kcheck.events import BugFound, CaseVerdict, Cell, Discovery, Phase
from kcheck.findings import SYMPTOMS, Finding, Kind, distance
from kcheck.saved_case import SavedCase
from kcheck.weight import is_dense, weight

SIMPLER_SAVED = "an earlier run has saved a simpler case, and that is what the replay command runs"
_LOST_WORKER = frozenset({Kind.CRASH, Kind.TIMEOUT})


def is_explained(turn: Turn, finding: Finding, case: Case) -> bool:
    """Whether a finding is a symptom of a known bug: gone once the argument of that bug is made contiguous.

    A wrong table row yields a wrong page id, and so a stray access to the pool; where it is another row of the table,
    nothing but a wrong value.
    """
    fingerprint = turn.fingerprint(finding)
    for cause in turn.discoveries.values():
        view = case.views.get(cause.culprit)
        if view is None or is_dense(view) or cause.fingerprint == fingerprint or not _may_cause(cause, finding):
            continue
        if cause.known and not _is_effect(turn, cause, finding):
            continue
        if _is_gone(turn, finding, case, cause.culprit):
            turn.symptoms[fingerprint] = cause.culprit
            turn.related.setdefault(cause.fingerprint, []).append(finding)
            return True
    return False


def _may_cause(cause: Discovery, finding: Finding) -> bool:
    """Whether a finding may be the cause of another one, if that one goes away with its culprit's layout.

    Of two that collide because of a wrong stride, wrong values are an effect, and accesses that go astray are not:
    these say what is wrong, whichever was met first.
    """
    collision = distance(cause.finding.kind) == 1 and cause.culprit == cause.finding.argument
    return not cause.is_symptom or (collision and distance(finding.kind) > 0)


def _is_gone(turn: Turn, finding: Finding, case: Case, argument: str) -> bool:
    """Whether it is proven that a case with one argument made contiguous does not show a finding."""
    try:
        judgement = turn.client.judge(turn.spec, case, dense=[argument])
    except (WorkerError, OSError):
        return False
    ended = any(found.kind in _LOST_WORKER for found in judgement.findings)
    checked = judgement.verdict in (CaseVerdict.MATCH, CaseVerdict.FINDINGS) and not ended
    return checked and turn.showing(judgement, turn.fingerprint(finding), finding.severity.rank) is None


def _is_effect(turn: Turn, cause: Discovery, finding: Finding) -> bool:
    """Whether a finding can pass for an effect of one that the baseline lists.

    A run that is to fail for new bugs must not take one for an effect: another access through the same argument is a
    bug of its own, unless the baseline has it beside the known one.
    """
    entry = turn.ledger.entries[cause.fingerprint]
    elsewhere = finding.argument != cause.culprit or finding.kind in SYMPTOMS
    return elsewhere or turn.fingerprint(finding) in entry.related


def discover(turn: Turn, finding: Finding, case: Case, minimal: bool) -> None:
    """Make a bug known: attribute it, keep it on disk, tell of it.

    A symptom waits for the end of the turn, since its cause may still be found.
    """
    fingerprint = turn.fingerprint(finding)
    bug = turn.bugs[fingerprint]
    culprit = find_culprit(turn, finding, case)
    view = case.views.get(culprit)
    if view is not None:
        turn.mark(culprit, view.kinds, Cell.FINDING)
    kinds = tuple(sorted(bug.kinds)) or (tuple(sorted(view.kinds)) if view else ())
    discovery = replace(
        turn.discovery(finding, case), layout_kinds=kinds, seen=bug.seen, culprit=culprit, minimal=minimal
    )
    discovery = _saved(turn, discovery)
    turn.discoveries[fingerprint] = discovery
    if not discovery.is_symptom:
        turn.emit(BugFound(discovery))


def _saved(turn: Turn, discovery: Discovery) -> Discovery:
    """Keep a finding's case, unless an earlier run has saved a simpler one that shows it still: told in a note."""
    finding = discovery.finding
    if _shows_simpler(turn, turn.store.saved(discovery), discovery):
        return replace(discovery, finding=replace(finding, notes=(*finding.notes, SIMPLER_SAVED)))
    return turn.store.keep(discovery)


def _shows_simpler(turn: Turn, saved: SavedCase | None, discovery: Discovery) -> bool:
    if saved is None or weight(saved.case) >= weight(discovery.case) or discovery.finding.kind is Kind.TIMEOUT:
        return False
    try:
        judgement = turn.look(saved.case)
    except (WorkerError, OSError):
        return False
    return turn.showing(judgement, discovery.fingerprint, discovery.finding.severity.rank) is not None


def judge_saved(turn: Turn) -> None:
    """Run the cases that the settings name besides.

    Raises:
        Stop: The budget is used up.
    """
    for case in turn.settings.saved.get(turn.spec, ()):
        turn.phase = Phase.SWEEP
        for finding in turn.news(case, turn.judge(case)):
            if not is_explained(turn, finding, case):
                discover(turn, finding, case, minimal=False)


def keep_rest(turn: Turn) -> None:
    """Make discoveries of what was seen and not pursued: the turn ended first. None of it may look like a pass."""
    for bug in sorted(turn.bugs.values(), key=lambda bug: distance(bug.finding.kind)):
        if turn.is_news(bug.case, bug.finding) and not is_explained(turn, bug.finding, bug.case):
            discover(turn, bug.finding, bug.case, minimal=False)


def find_culprit(turn: Turn, finding: Finding, case: Case) -> str:
    """The argument with which, made contiguous alone, the finding is gone; the finding's own argument first.

    Returns:
        ``""`` if there is none, or if each try would cost a worker.
    """
    if finding.kind in _LOST_WORKER:
        return ""
    candidates = [
        name for name, view in case.views.items() if not is_dense(view) or len(case.views) > len(case.backings)
    ]
    candidates.sort(key=lambda name: name != finding.argument)
    return next((name for name in candidates if _is_gone(turn, finding, case, name)), "")


def tell_symptoms(turn: Turn) -> tuple[Discovery, ...]:
    """At the end of a turn: fold symptoms into the finding that causes them, tell of those that have no cause.

    The cause is the access through the argument whose layout decides about the symptom.

    Returns:
        All discoveries, gravest first.
    """
    told = [d for d in turn.discoveries.values() if not d.is_symptom]
    symptoms = [d for d in turn.discoveries.values() if d.is_symptom]
    for symptom in sorted(symptoms, key=lambda d: distance(d.finding.kind)):
        cause = next((d for d in told if symptom.culprit and symptom.culprit in d.arguments), None)
        if cause is not None:
            effects = [symptom.finding, *turn.related.get(symptom.fingerprint, ())]
            turn.related.setdefault(cause.fingerprint, []).extend(effects)
        else:
            turn.emit(BugFound(symptom))
            told.append(symptom)
    for discovery in told:
        argument = discovery.finding.argument
        if argument and discovery.culprit in ("", argument):
            turn.mark(argument, turn.bugs[discovery.fingerprint].kinds, Cell.FINDING)
    complete = [
        replace(d, seen=turn.bugs[d.fingerprint].seen, related=tuple(turn.related.get(d.fingerprint, ()))) for d in told
    ]
    for known in filter(lambda d: d.known and not d.is_symptom, complete):
        turn.emit(BugFound(known))  # nobody waits for what is known: it is told once it is complete
    return tuple(sorted(complete, key=lambda d: d.finding.severity.rank))
