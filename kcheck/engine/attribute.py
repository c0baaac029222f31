"""Attribution: which argument's layout decides, and which findings have the same cause."""

from __future__ import annotations

from dataclasses import replace

from kcheck.case import Case
from kcheck.engine.turn import Turn
from kcheck.events import BugFound, Cell, Discovery
from kcheck.findings import Finding, Kind
from kcheck.layout import Layout

# Findings about values: they say that something is wrong, not where. Memory findings name the access itself.
SYMPTOMS = frozenset({Kind.VALUE_MISMATCH, Kind.LAYOUT_VARIANCE, Kind.NONDETERMINISM, Kind.UNWRITTEN_OUTPUT})
_LOST_WORKER = frozenset({Kind.CRASH, Kind.TIMEOUT})


def discover(turn: Turn, finding: Finding, case: Case, minimal: bool) -> None:
    """Make a bug known: attribute it, keep it on disk, tell of it.

    A finding about values waits for the end of the turn, since a memory finding may turn out to be its cause.
    """
    fingerprint = turn.fingerprint(finding)
    bug = turn.bugs[fingerprint]
    culprit = find_culprit(turn, finding, case)
    view = case.views.get(culprit)
    if view is not None:
        turn.mark(culprit, view.kinds, Cell.FINDING)
    discovery = Discovery(
        target=turn.target.name,
        spec=turn.spec,
        finding=finding,
        fingerprint=fingerprint,
        case=case,
        layout_kinds=tuple(sorted(bug.kinds)) or (tuple(sorted(view.kinds)) if view else ()),
        seen=bug.seen,
        culprit=culprit,
        minimal=minimal,
        directory=turn.store.unusual,
    )
    turn.discoveries[fingerprint] = discovery
    turn.store.save(discovery)
    if finding.kind not in SYMPTOMS:
        turn.emit(BugFound(discovery))


def find_culprit(turn: Turn, finding: Finding, case: Case) -> str:
    """The argument with which, made contiguous alone, the finding is gone; the finding's own argument first.

    Returns:
        ``""`` if there is none, or if each try would cost a worker.
    """
    if finding.kind in _LOST_WORKER:
        return ""
    fingerprint, rank = turn.fingerprint(finding), finding.severity.rank
    candidates = [
        name
        for name, view in case.views.items()
        if view.layout != Layout.contiguous(view.layout.shape) or len(case.views) > len(case.backings)
    ]
    candidates.sort(key=lambda name: name != finding.argument)
    for name in candidates:
        judgement = turn.client.judge(turn.spec, case, dense=[name])
        if turn.showing(judgement, fingerprint, rank) is None:
            return name
    return ""


def tell_symptoms(turn: Turn) -> tuple[Discovery, ...]:
    """At the end of a turn: fold findings about values into the memory finding that causes them, tell of the rest.

    The cause of a wrong value is the access through the argument whose layout decides about the value.

    Returns:
        All discoveries, gravest first.
    """
    accesses = [d for d in turn.discoveries.values() if d.finding.kind not in SYMPTOMS]
    symptoms = [d for d in turn.discoveries.values() if d.finding.kind in SYMPTOMS]
    related: dict[str, list[Finding]] = {d.fingerprint: [] for d in accesses}
    told = list(accesses)
    for symptom in symptoms:
        cause = next((a for a in accesses if symptom.culprit and symptom.culprit in (a.culprit, a.finding.argument)), None)
        if cause is not None:
            related[cause.fingerprint].append(symptom.finding)
        else:
            turn.emit(BugFound(symptom))
            told.append(symptom)
    complete = [
        replace(d, seen=turn.bugs[d.fingerprint].seen, related=tuple(related.get(d.fingerprint, ()))) for d in told
    ]
    return tuple(sorted(complete, key=lambda d: d.finding.severity.rank))
