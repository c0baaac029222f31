"""The verdict of a run and of a target in words, the same in every report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcheck.events import CaseVerdict, Discovery, TargetResult
from kcheck.reports.record import RunRecord
from kcheck.reports.wording import counted

_CASES = {
    CaseVerdict.MATCH: "match",
    CaseVerdict.REJECTED: "rejected",
    CaseVerdict.FINDINGS: "with findings",
    CaseVerdict.COULD_NOT_CHECK: "not checked",
}


def headline(record: RunRecord) -> str:
    """What came out of the run: ``2 findings, 1 known, 1 could not check``."""
    results = record.outcomes()
    fresh, listed = new(results), known(results)
    unchecked = [result for result in results if could_not_check(result)]
    skipped = sum(result.allowed for result in unchecked)
    words = ["interrupted"] if record.interrupted else []
    words += _found(fresh, listed, sum(len(result.gone) for result in results))
    words += [f"{len(unchecked) - skipped} could not check"] if len(unchecked) > skipped else []
    words += [f"{skipped} skipped"] if skipped else []
    words += [] if fresh else ["no new findings" if listed else "no findings"]
    return ", ".join(words)


def verdict(result: TargetResult) -> str:
    """What came out of a target: ``1 finding, could not check``."""
    words = list(_found(new([result]), known([result]), len(result.gone)))
    if could_not_check(result):
        words.append("could not check, skipped by --allow-skip" if result.allowed else "could not check")
    return ", ".join(words) or result.verdict.value


def could_not_check(result: TargetResult) -> bool:
    """Something of the target could not be checked, beside findings or without."""
    return bool(result.reasons) or result.verdict is CaseVerdict.COULD_NOT_CHECK


def new(results: Sequence[TargetResult]) -> list[Discovery]:
    """Findings that no baseline lists, gravest first."""
    found = [discovery for result in results for discovery in result.discoveries if not discovery.known]
    return sorted(found, key=lambda discovery: discovery.finding.severity.rank)


def known(results: Sequence[TargetResult]) -> list[Discovery]:
    """Findings that the baseline lists."""
    return [discovery for result in results for discovery in result.discoveries if discovery.known]


def cases(result: TargetResult) -> str:
    """Cases by verdict: ``1,380 match, 30 rejected``."""
    return ", ".join(f"{result.cases[kind]:,} {says}" for kind, says in _CASES.items() if result.cases.get(kind))


def conditions(record: RunRecord) -> str:
    """Versions, backend and seed, what a rerun needs."""
    versions = [f"{name} {version}" for name, version in record.versions.items()]
    return ", ".join([*versions, f"backend {record.backend}", f"seed {record.seed}"])


def _found(fresh: Sequence[Discovery], listed: Sequence[Discovery], gone: int) -> Iterator[str]:
    if fresh:
        yield counted(len(fresh), "finding")
    if listed:
        yield f"{len(listed)} known"
    if gone:
        yield f"{gone} gone"
