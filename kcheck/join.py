"""The result of a target from what its run saw, and one result from the results of the parts of a run.

A run of several workers, the reports of several shards and a run that was resumed are joined here, by the same rules as
a run in one piece is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kcheck import evidence
from kcheck.events import CaseVerdict, Cell, Discovery, TargetResult
from kcheck.evidence import Evidence, added
from kcheck.findings import Finding, distance
from kcheck.layout import LayoutKind
from kcheck.weight import weight

_CELL_ORDER = (Cell.FINDING, Cell.MATCH, Cell.COULD_NOT_CHECK, Cell.REJECTED, Cell.NOT_TRIED)
_CONTIGUOUS = frozenset(
    {LayoutKind.CONTIGUOUS, LayoutKind.OFFSET, LayoutKind.MISALIGNED, LayoutKind.DEGENERATE, LayoutKind.EMPTY}
)
Matrix = Mapping[str, Mapping[LayoutKind, Cell]]


def judged(result: TargetResult) -> TargetResult:
    """A result with the verdict, the reasons and the notes that its evidence, its cases and its findings give."""
    assert result.evidence is not None
    cases = result.cases
    matches = cases.get(CaseVerdict.MATCH, 0)
    checked = matches + cases.get(CaseVerdict.FINDINGS, 0)
    reasons = result.evidence.reasons(matches, checked, sum(cases.values()), result.launches)
    verdict = CaseVerdict.COULD_NOT_CHECK if reasons else CaseVerdict.MATCH
    return replace(
        result,
        verdict=CaseVerdict.FINDINGS if result.discoveries else verdict,
        reasons=reasons,
        notes=(*_matches_explained(result, result.evidence), *result.evidence.notes()),
    )


def _matches_explained(result: TargetResult, facts: Evidence) -> Iterator[str]:
    """What a match in the matrix means where no layout but contiguous ones was accepted: a narrowed view may be one."""
    for name in () if facts.interrupted or facts.failures else facts.contiguous_only:
        row = result.matrix.get(name, {})
        kinds = [kind for kind in LayoutKind if kind not in _CONTIGUOUS and row.get(kind) is Cell.MATCH]
        if kinds:
            listed = ", ".join(kinds)
            yield f"{name} was accepted as {listed} only at sizes at which such a view is contiguous all the same"


def join_results(parts: Sequence[TargetResult]) -> TargetResult:
    """One result of a target from those of the parts of a run: seconds and counts are added.

    A part without evidence came to no end; its reasons stand.

    Args:
        parts: At least one, all of one target.
    """
    facts = evidence.joined([part.evidence or Evidence(failures=part.reasons) for part in parts])
    found = without_symptoms(joined_discoveries(d for part in parts for d in part.discoveries))
    seen = {d.fingerprint for part in parts for d in part.discoveries if d.seen}
    facts = replace(facts, settled=_without(facts.settled, seen), unseen=_without(facts.unseen, seen))
    gone = {one.fingerprint: one for part in parts for one in part.gone if one.fingerprint not in seen}
    facts = replace(facts, settled=_without(facts.settled, gone))
    joined = judged(
        TargetResult(
            name=parts[0].name,
            verdict=CaseVerdict.MATCH,
            cases=added(part.cases for part in parts),
            seconds=sum(part.seconds for part in parts),
            matrix=joined_matrix([part.matrix for part in parts]),
            discoveries=found,
            launches=added(part.launches for part in parts),
            gone=tuple(gone[key] for key in sorted(gone)),
            evidence=facts,
        )
    )
    skipped = [part.allowed for part in parts if part.reasons]
    return replace(joined, allowed=bool(joined.reasons and skipped) and all(skipped))


def joined_discoveries(found: Iterable[Discovery]) -> tuple[Discovery, ...]:
    """Each bug once, in its simplest case; how often it was seen is added.

    Returns:
        Gravest first, else by fingerprint, so that the order of the parts does not matter.
    """
    groups: dict[str, list[Discovery]] = {}
    for one in found:
        groups.setdefault(one.fingerprint, []).append(one)
    return tuple(sorted(map(_merged, groups.values()), key=lambda d: (d.finding.severity.rank, d.fingerprint)))


def without_symptoms(found: Sequence[Discovery]) -> tuple[Discovery, ...]:
    """The bugs; what is about values, or another argument, is told with the bug whose argument decides about it."""
    causes = [one for one in found if not one.is_symptom]
    related: dict[str, list[Finding]] = {}
    symptoms = [one for one in found if one.is_symptom]
    for symptom in sorted(symptoms, key=lambda one: distance(one.finding.kind)):
        cause = next((one for one in causes if symptom.culprit and symptom.culprit in one.arguments), None)
        if cause is None:
            causes.append(symptom)
        else:
            related.setdefault(cause.fingerprint, []).append(symptom.finding)
    told = {one.fingerprint for one in causes}
    return tuple(
        replace(one, related=_each_once(one, [*one.related, *related.get(one.fingerprint, ())]))
        for one in found
        if one.fingerprint in told
    )


def joined_matrix(parts: Iterable[Matrix]) -> dict[str, dict[LayoutKind, Cell]]:
    """The layout matrix of all parts; what weighs more stays."""
    joined: dict[str, dict[LayoutKind, Cell]] = {}
    for part in parts:
        for argument, row in part.items():
            mark(joined.setdefault(argument, {}), row)
    return joined


def mark(row: dict[LayoutKind, Cell], cells: Mapping[LayoutKind, Cell]) -> None:
    """Enter cells into a row of the layout matrix; what weighs more stays."""
    for kind, cell in cells.items():
        row[kind] = min(cell, row.get(kind, cell), key=_CELL_ORDER.index)


def _merged(group: Sequence[Discovery]) -> Discovery:
    best = min(group, key=lambda d: (d.finding.severity.rank, not d.seen, not d.minimal, weight(d.case), d.case.key))
    as_grave = (d for d in group if d.finding.severity is best.finding.severity)
    return replace(
        best,
        layout_kinds=tuple(sorted({kind for one in group for kind in one.layout_kinds})),
        seen=sum(one.seen for one in group),
        related=_each_once(best, [finding for one in group for finding in one.related]),
        known=best.known or next((one.known for one in as_grave if one.known), ""),
    )


def _each_once(cause: Discovery, related: Iterable[Finding]) -> tuple[Finding, ...]:
    by_identity = {finding.fingerprint(cause.target): finding for finding in related}
    by_identity.pop(cause.fingerprint, None)
    return tuple(by_identity[key] for key in sorted(by_identity))


def _without(texts: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if key not in set(keys)}
