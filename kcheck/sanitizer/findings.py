"""Groups records by (tool, kind, kernel, line) and makes one finding of each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kcheck.findings import Finding, Kind, Severity, SourceFrame
from kcheck.sanitizer.command import filters_kernels
from kcheck.sanitizer.frames import caller_of_api, launched_at, occurrence, source_frame
from kcheck.sanitizer.kinds import is_aftermath, kind_of, what_happened
from kcheck.sanitizer.log import LogSummary
from kcheck.sanitizer.places import Allocation, Place, bytes_text, place
from kcheck.sanitizer.records import Index3, Record
from kcheck.sanitizer.tool import Tool

_MAX_CELLS = 64
_PLACED = frozenset(
    {Kind.OUT_OF_BOUNDS_READ, Kind.OUT_OF_BOUNDS_WRITE, Kind.MISALIGNED_ACCESS, Kind.UNINITIALIZED_READ, Kind.LEAK}
)
_SEVERITIES = {"warning": Severity.WARNING, "info": Severity.NOTE}

_Key = tuple[Kind, str, str, int]


@dataclass(slots=True)
class _Extent:
    """Smallest and largest of three-dimensional indices."""

    low: Index3 | None = None
    high: Index3 | None = None

    def add(self, index: Index3 | None) -> None:
        """Take one index in."""
        if index is not None:
            low, high = self.low or index, self.high or index
            self.low = (min(low[0], index[0]), min(low[1], index[1]), min(low[2], index[2]))
            self.high = (max(high[0], index[0]), max(high[1], index[1]), max(high[2], index[2]))

    def text(self, one: str, many: str) -> str:
        """``thread (96, 0, 0)``, ``threads (96–98, 0, 0)``; empty if there is no index."""
        if self.low is None or self.high is None:
            return ""
        parts = (str(low) if low == high else f"{low}–{high}" for low, high in zip(self.low, self.high, strict=True))
        return f"{one if self.low == self.high else many} ({', '.join(parts)})"


@dataclass(slots=True)
class _Group:
    """Records of one fault: the first of them, and what the others add."""

    first: Record
    records: int = 0
    severity: Severity = Severity.NOTE
    threads: _Extent = field(default_factory=_Extent)
    blocks: _Extent = field(default_factory=_Extent)
    programs: set[Index3] = field(default_factory=set)
    addresses: dict[int, int] = field(default_factory=dict)  # address → bytes accessed; the first ones only
    leaked: int = 0
    hazards: int = 0

    def add(self, record: Record) -> None:
        """Take one record in."""
        self.records += 1
        self.severity = min(self.severity, _SEVERITIES.get(record.level, Severity.ERROR), key=lambda s: s.rank)
        self.threads.add(record.thread)
        self.blocks.add(record.block)
        if record.block is not None:
            self.programs.add(record.block)
        if record.address is not None and len(self.addresses) < _MAX_CELLS:
            self.addresses.setdefault(record.address, max(record.size, 1))
        self.leaked += record.size
        self.hazards += sum(site.hazards for site in record.sites)


@dataclass(frozen=True, slots=True)
class Collected:
    """What the records of one run come to.

    Attributes:
        findings: One per group, gravest first.
        listed: Records read.
        foreign: Records of other kernels than the target's and of the worker's own memory: no findings.
        unknown: Kinds of records that kcheck does not know.
    """

    findings: tuple[Finding, ...]
    listed: int
    foreign: int
    unknown: tuple[str, ...]


def collect(
    records: Iterable[Record],
    log: LogSummary,
    *,
    allocations: Sequence[Allocation] = (),
    kernels: Sequence[str] = (),
) -> Collected:
    """Make findings of records.

    Args:
        records: Of one run, read once.
        log: Of the same run.
        allocations: The tensor arguments, to name addresses with.
        kernels: Names of the target's kernels; empty: all kernels are its own.

    Raises:
        CouldNotCheck: The records come from XML that is refused.
    """
    groups: dict[_Key, _Group] = {}
    aftermath: list[Record] = []
    unknown: dict[str, None] = {}
    listed = foreign = 0
    for record in records:
        listed += 1
        if _is_foreign(record, kernels):
            foreign += 1
        elif is_aftermath(record):
            aftermath.append(record)
        else:
            _sort_in(record, groups, unknown)
    if not any(key[0] is not Kind.API_ERROR for key in groups):  # no kernel failed here, so the calls are what is known
        for record in aftermath:
            _sort_in(record, groups, unknown)
    counts = _Counts(log.total, listed, len(groups))
    found = [_finding(kind, group, counts, log, allocations) for (kind, *_), group in groups.items()]
    found.sort(key=lambda finding: finding.severity.rank)
    return Collected(tuple(found), listed, foreign, tuple(unknown))


def _is_foreign(record: Record, kernels: Sequence[str]) -> bool:
    """The record is about another kernel, which `command` could not filter out, or about the worker's own memory."""
    if kind_of(record) is Kind.LEAK:  # allocated on the worker's own account, or by torch for itself
        return bool(record.python_frames) and launched_at(record) is None
    if not kernels or filters_kernels(record.tool):
        return False
    return not any(kernel in record.kernel for kernel in kernels)


def _sort_in(record: Record, groups: dict[_Key, _Group], unknown: dict[str, None]) -> None:
    kind = kind_of(record)
    if kind is None:
        unknown.setdefault(record.kind or "(none)")
        return
    file, line = record.file, record.line
    if not record.device_frames and (frame := launched_at(record)):  # API errors and leaks: told apart by their call
        file, line = frame.file, frame.line
    groups.setdefault((kind, record.kernel or record.api, file, line), _Group(record)).add(record)


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many errors there are in a run, how many are listed, and in how many groups."""

    total: int | None
    listed: int
    groups: int

    def of(self, group: _Group) -> tuple[int, str]:
        """Errors of a group, and a note where the number is not exact."""
        if self.total == self.listed:
            return group.hazards or group.records, ""
        if self.total is None or self.total < self.listed:
            return group.records, f"At least {group.records:,}: compute-sanitizer's own total is missing."
        counted = f"compute-sanitizer counted {self.total:,} errors in this run and listed {self.listed:,} of them"
        if self.groups == 1 and group.records == self.listed:
            # A fault makes the CUDA calls after it fail, and they are counted too: 66 errors where 64 threads stray
            # (total observed with 2025.3.1; the two others are not in its list, that they are calls is inferred).
            others = (
                "; the rest may include CUDA calls that failed after it" if group.first.tool is Tool.MEMCHECK else ""
            )
            return self.total, f"{counted}, all of this one fault{others}."
        return group.records, f"At least {group.records:,}: {counted}, in {self.groups} or more places."


def _finding(kind: Kind, group: _Group, counts: _Counts, log: LogSummary, allocations: Sequence[Allocation]) -> Finding:
    record = group.first
    launched = launched_at(record)
    chain = tuple(source_frame(frame) for frame in reversed(record.device_frames))
    own = chain[-1] if chain else launched
    count, inexact = counts.of(group)
    places = _places(kind, group, log, allocations)
    at = places[0] if places else Place("")
    return Finding(
        kind=kind,
        message=_message(record, kind, at, group),
        severity=group.severity,
        kernel=record.kernel,
        file=own.file if own else "",
        line=own.line if own else 0,
        source=own.source if own else "",
        occurrence=occurrence(own.file, own.line) if own else 0,
        argument=at.argument,
        index=at.index,
        program=record.block or (),
        count=count,
        programs=len(group.programs),
        cells=_cells(at, places),
        chain=chain,
        notes=tuple(_notes(kind, group, inexact, own, launched)),
    )


def _notes(
    kind: Kind, group: _Group, inexact: str, own: SourceFrame | None, launched: SourceFrame | None
) -> Iterator[str]:
    record = group.first
    if inexact:
        yield inexact
    if launched is not None and own is not launched:
        yield f"Launched at {launched.file}:{launched.line} in {launched.function}: {launched.source}".rstrip(": ")
    elif launched is None and (caller := caller_of_api(record)):
        yield f"Called in {caller.function} of {caller.module}, which has no line information."
    if kind is Kind.LEAK and group.records > 1:
        yield f"{group.records:,} allocations are listed, {bytes_text(group.leaked)} together."
    yield f"Found by compute-sanitizer's {record.tool}."


def _message(record: Record, kind: Kind, at: Place, group: _Group) -> str:
    where = " in ".join(filter(None, (group.threads.text("thread", "threads"), group.blocks.text("block", "blocks"))))
    what = what_happened(record, kind)
    if at.text and kind in _PLACED:
        what += f": {at.text}"
    subject = f"{record.kernel} " if record.kernel and kind in _PLACED else ""
    return f"{subject}{what}" + (f" ({where})" if where else "")


def _places(kind: Kind, group: _Group, log: LogSummary, allocations: Sequence[Allocation]) -> list[Place]:
    """The group's addresses, in order; none for shared and local memory, whose addresses are offsets."""
    if kind not in _PLACED or group.first.space not in ("", "global"):
        return []
    return [place(at, size, allocations, log.nearest.get(at)) for at, size in group.addresses.items()]


def _cells(first: Place, places: Sequence[Place]) -> tuple[int, ...]:
    if not first.argument:
        return ()
    return tuple(sorted({cell for at in places if at.argument == first.argument for cell in at.cells})[:_MAX_CELLS])
