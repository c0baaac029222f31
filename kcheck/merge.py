"""Reports of the shards of a run, joined into the report of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kcheck import __version__, baseline
from kcheck.baseline import Known
from kcheck.errors import CouldNotCheck, InvalidDocument, UsageError
from kcheck.events import CaseVerdict, Discovery, TargetResult
from kcheck.join import join_results
from kcheck.reports.json_reader import read_report
from kcheck.reports.record import RunRecord

MOST_NAMED = 8  # of many shards that are missing


@dataclass(frozen=True, slots=True)
class Part:
    """One report.

    Attributes:
        path: Its file, as the user names it.
        record: What it says.
    """

    path: str
    record: RunRecord

    @property
    def indices(self) -> tuple[int, ...]:
        """The shards that are in it."""
        shard = self.record.shard
        return self.record.joined or (() if shard is None else (shard.index,))

    @property
    def name(self) -> str:
        """The shards in words."""
        shard = self.record.shard
        words = "shard" if len(self.indices) == 1 else "shards"
        return f"{words} {_listed(self.indices)} of {shard.of}" if shard is not None else "the run"


def read_parts(paths: Iterable[Path]) -> list[Part]:
    """Read reports.

    Raises:
        UsageError: One cannot be read, or another version of kcheck wrote it.
        InvalidDocument: One is not a valid report, or contradicts itself.
    """
    parts = [Part(str(path), _read(path)) for path in paths]
    for part in parts:
        written = part.record.versions.get("kcheck", "an unknown version")
        if written != __version__:
            raise UsageError(f"{part.path} was written by kcheck {written}, this is kcheck {__version__}; use that one")
        names = tuple(result.name for result in part.record.results)
        if names != part.record.targets[: len(names)]:
            raise InvalidDocument(f"{part.path}: targets", f"are {_listed(names)!r:.60}; expected those of selected")
        _check_agrees(part)
    return parts


def join_reports(parts: Sequence[Part]) -> RunRecord:
    """The report of the run whose shards these are.

    A report of a whole run, alone, stays as it is. Where shards are missing, each target has that as a reason, and the
    result can be joined with them later.

    Args:
        parts: At least one.

    Raises:
        UsageError: They are not of one run.
        CouldNotCheck: A shard is there twice.
    """
    first = parts[0].record
    if len(parts) == 1 and first.shard is None:
        return first
    for part in parts:
        if part.record.shard is None:
            raise UsageError(f"{part.path} is of a whole run; kcheck merge joins reports of kcheck fuzz --shard I/N")
        if not part.record.identity:
            raise UsageError(
                f"{part.path} does not say of which run it is: an older kcheck wrote it; run all shards again"
            )
        _check_same_run(parts[0], part)
    _check_once(parts)
    assert first.shard is not None
    ordered = sorted(parts, key=lambda part: part.indices)
    there = sorted(index for part in parts for index in part.indices)
    missing = [index for index in range(1, first.shard.of + 1) if index not in there]
    results = [join_results([_result_in(part, place) for part in ordered]) for place in range(len(first.targets))]
    if missing:
        reason = _missing(missing, first.shard.of)
        results = [_unfinished(result, reason) for result in results]
    return RunRecord(
        backend=first.backend,
        seed=first.seed,
        versions=_joined_versions([part.record for part in ordered]),
        targets=first.targets,
        results=tuple(results),
        interrupted=any(part.record.interrupted for part in parts),
        seconds=sum(part.record.seconds for part in parts),
        shard=replace(first.shard, index=there[0]) if missing else None,
        joined=tuple(there) if missing else (),
        identity=first.identity,
    )


def with_known(record: RunRecord, entries: Sequence[Known]) -> RunRecord:
    """The report with the findings marked that a baseline lists. Which of them are gone only a run can tell."""

    def marked(found: Discovery) -> Discovery:
        for entry in baseline.entries_of(entries, found.spec):
            found_by = baseline.known_of(found, record.backend).found_by
            same = (entry.fingerprint, entry.found_by) == (found.fingerprint, found_by)
            if same and entry.covers(found.finding):
                return replace(found, known=entry.issue)
        return found

    results = [replace(result, discoveries=tuple(map(marked, result.discoveries))) for result in record.results]
    return replace(record, results=tuple(results))


def _read(path: Path) -> RunRecord:
    try:
        return read_report(path)
    except InvalidDocument as error:
        where = "" if error.where.startswith(str(path)) else f"{path}: "
        raise InvalidDocument(f"{where}{error.where}", error.problem) from None


def _check_same_run(first: Part, other: Part) -> None:
    one, two = first.record, other.record
    assert one.shard is not None
    assert two.shard is not None
    differences = {
        "number of shards is": (one.shard.of, two.shard.of),
        "seed is": (one.seed, two.seed),
        "backend is": (one.backend, two.backend),
        "targets are": (_listed(one.targets), _listed(two.targets)),
    }
    names = dict.fromkeys([*one.identity, *two.identity])
    differences |= {f"{name}:": (one.identity.get(name), two.identity.get(name)) for name in names}
    for what, (here, there) in differences.items():
        if here != there:
            raise UsageError(
                f"{other.path} is of another run than {first.path}: its {what} {there}, not {here}; start all "
                "shards with the same options, and from the same source"
            )


def _check_agrees(part: Part) -> None:
    """Check that a report does not contradict itself: what is no pass must not become one."""
    for place, result in enumerate(part.record.results):
        counted, found = result.cases.get(CaseVerdict.FINDINGS, 0), len(result.discoveries)
        where = f"{part.path}: targets[{place}]"
        failed = result.evidence is None or bool(result.evidence.failures)  # stopped in the midst of a shrink, say
        if counted and not found and not (failed and result.verdict is CaseVerdict.COULD_NOT_CHECK):
            raise InvalidDocument(f"{where}.findings", f"is empty, though {counted:,} cases have findings")
        passed = result.verdict is CaseVerdict.MATCH
        if (result.verdict is CaseVerdict.FINDINGS and not found) or (passed and (found or result.reasons)):
            raise InvalidDocument(
                f"{where}.verdict", f"is {result.verdict}, with {found} findings and {len(result.reasons)} reasons"
            )


def _check_once(parts: Sequence[Part]) -> None:
    """Check that no shard is there twice: which of the two would count?"""
    taken: dict[int, str] = {}
    for part in parts:
        for index in part.indices:
            if index in taken:
                raise CouldNotCheck(f"shard {index} is in {taken[index]} and in {part.path}; leave one of the two out")
            taken[index] = part.path


def _result_in(part: Part, place: int) -> TargetResult:
    """What a part says of a target, be it that it had no turn."""
    record = part.record
    if place < len(record.results):
        return record.results[place]
    reason = f"{part.name} stopped before this target had its turn"
    return TargetResult(record.targets[place], CaseVerdict.COULD_NOT_CHECK, (reason,))


def _unfinished(result: TargetResult, reason: str) -> TargetResult:
    verdict = CaseVerdict.FINDINGS if result.discoveries else CaseVerdict.COULD_NOT_CHECK
    return replace(result, verdict=verdict, reasons=(reason, *result.reasons), allowed=False)


def _joined_versions(records: Sequence[RunRecord]) -> dict[str, str]:
    """Versions by package; machines may have different ones."""
    names = dict.fromkeys(name for record in records for name in record.versions)
    found = {name: dict.fromkeys(record.versions.get(name, "none") for record in records) for name in names}
    return {name: " and ".join(versions) for name, versions in found.items()}


def _missing(indices: Sequence[int], of: int) -> str:
    if len(indices) == 1:
        return f"shard {indices[0]} of {of} is missing: add its report"
    more = f" and {len(indices) - MOST_NAMED:,} more" if len(indices) > MOST_NAMED else ""
    return f"shards {_listed(indices[:MOST_NAMED])}{more} of {of} are missing: add their reports"


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
