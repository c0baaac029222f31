"""What a run reports while it goes on. The engine yields these; reports consume them."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from kcheck.case import Case
from kcheck.evidence import Evidence
from kcheck.findings import Finding, distance
from kcheck.layout import LayoutKind


class CaseVerdict(enum.StrEnum):
    """Verdict of one case."""

    MATCH = "match"
    REJECTED = "rejected"
    FINDINGS = "findings"
    COULD_NOT_CHECK = "could-not-check"


class Cell(enum.StrEnum):
    """One cell of the layout matrix: what became of an argument in a layout of some kind."""

    MATCH = "match"
    REJECTED = "rejected"
    FINDING = "finding"
    COULD_NOT_CHECK = "could-not-check"
    NOT_TRIED = "not tried"


class Phase(enum.StrEnum):
    """Part of a target's run."""

    SWEEP = "sweep"
    RANDOM = "random"
    SHRINK = "shrink"


@dataclass(frozen=True, slots=True)
class Discovery:
    """One bug: a finding with its minimal case and the way to replay it.

    Attributes:
        target: Name of the target.
        spec: How the user named the target's source, to be given to ``kcheck replay``.
        finding: The finding as the minimal case shows it.
        fingerprint: Identity, 12 hexadecimal digits.
        case: The minimal case.
        layout_kinds: Kinds of the argument's layout in all cases that showed the bug.
        seen: Cases that showed it.
        culprit: The argument whose layout alone decides: with it made contiguous the finding is gone. ``""``: none.
        related: Other findings with the same cause, not counted on their own.
        minimal: Shrinking came to its end (False: it was interrupted).
        directory: Where findings are kept, if it is not the usual place.
        options: Further options that ``kcheck replay`` needs.
        known: Link of the issue that tracks it, if the run's baseline lists it: it does not fail the run. ``""``: new.
        tool: The tool of compute-sanitizer that showed it. ``""``: kcheck itself did.
    """

    target: str
    spec: str
    finding: Finding
    fingerprint: str
    case: Case
    layout_kinds: tuple[LayoutKind, ...] = ()
    seen: int = 1
    culprit: str = ""
    related: tuple[Finding, ...] = ()
    minimal: bool = True
    directory: str = ""
    options: tuple[str, ...] = ()
    known: str = ""
    tool: str = ""

    @property
    def arguments(self) -> tuple[str, str]:
        """The argument whose layout decides about it, and the one that it is about."""
        return self.culprit, self.finding.argument

    @property
    def is_symptom(self) -> bool:
        """Whether another finding may be the cause: it is about values, or it is one of some layouts only.

        An access that names its own line is no symptom in these: two that collide may be one that went astray.
        """
        far = distance(self.finding.kind)
        return far == 2 or self.culprit not in ("", self.finding.argument) or (far == 1 and bool(self.culprit))

    @property
    def saved_as(self) -> str:
        """Name that its case is saved by. What a sanitizer shows has one of its own: it is replayed under the tool."""
        return f"{self.fingerprint}-{self.tool}" if self.tool else self.fingerprint

    @property
    def replay(self) -> str:
        """The command that runs the minimal case again.

        It names the target: a saved file is data and is not trusted to name code. Built-in targets need no name.
        """
        parts = ["kcheck", "replay", self.saved_as]
        if not self.spec.startswith("builtin:"):
            parts += ["--target", self.spec]
        if self.directory:
            parts += ["--dir", self.directory]
        parts += self.options
        return shlex.join(parts)


@dataclass(frozen=True, slots=True)
class Gone:
    """A finding that the run's baseline lists, and that this run proved to be gone.

    Attributes:
        fingerprint: Identity, 12 hexadecimal digits.
        issue: Link of the issue that tracks it.
        message: One sentence: what is gone, and what to do.
    """

    fingerprint: str
    issue: str
    message: str


@dataclass(frozen=True, slots=True)
class TargetResult:
    """Outcome of one target.

    Attributes:
        name: Name of the target.
        verdict: MATCH, FINDINGS or COULD_NOT_CHECK (never REJECTED).
        reasons: Why it could not be checked, a sentence each; may stand beside findings.
        notes: What the reader should know although nothing failed, a sentence each.
        cases: Cases by verdict.
        seconds: Wall time.
        matrix: Argument → layout kind → cell.
        discoveries: Bugs found, gravest first.
        launches: Launches by kernel.
        gone: What the baseline lists and is gone; it fails the run, since the list must be kept true.
        allowed: ``--allow-skip`` names the target: that it could not be checked does not fail the run.
        evidence: What verdict and reasons were judged from, for joining it with other parts of the run; None: a run
            that has no parts, or that came to no end.
    """

    name: str
    verdict: CaseVerdict
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cases: Mapping[CaseVerdict, int] = field(default_factory=dict)
    seconds: float = 0.0
    matrix: Mapping[str, Mapping[LayoutKind, Cell]] = field(default_factory=dict)
    discoveries: tuple[Discovery, ...] = ()
    launches: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[Gone, ...] = ()
    allowed: bool = False
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a run.

    Attributes:
        index: Which, from 1.
        of: How many there are.
    """

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run begins.

    Attributes:
        targets: Names of the targets, in order.
        backend: ``interpret`` or ``cuda``.
        seed: Seed of the whole run.
        versions: Package → version.
        shard: The part that it is of a larger run, None if it is all of it.
        joined: Indices of the shards that are joined in it, where some are missing.
        workers: Processes that share it.
        identity: What its shards have in common, in words by name: targets, pins, source.
    """

    targets: tuple[str, ...]
    backend: str
    seed: int
    versions: Mapping[str, str]
    shard: Shard | None = None
    joined: tuple[int, ...] = ()
    workers: int = 1
    identity: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetStarted:
    """A target's turn begins."""

    target: str


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase of a target begins.

    Attributes:
        total: Planned number of cases, where it is known.
        done: How many of them have run: of several workers some begin later.
    """

    target: str
    phase: Phase
    total: int | None = None
    done: int = 0


@dataclass(frozen=True, slots=True)
class CaseDone:
    """One case was judged.

    Attributes:
        seconds: Wall time of the case.
        case: The case, where it is known.
        reason: Why it was rejected or could not be checked.
    """

    target: str
    phase: Phase
    verdict: CaseVerdict
    seconds: float
    case: Case | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BugFound:
    """A bug is known, with its minimal case."""

    discovery: Discovery


@dataclass(frozen=True, slots=True)
class WorkerReplaced:
    """A worker was lost and another one took its place.

    Attributes:
        cause: One sentence.
        seconds: From the loss to the new worker's readiness.
    """

    target: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the reader should know at once.

    Attributes:
        text: One sentence.
    """

    text: str


@dataclass(frozen=True, slots=True)
class TargetDone:
    """A target's turn is over."""

    result: TargetResult


@dataclass(frozen=True, slots=True)
class RunDone:
    """The run is over.

    Attributes:
        results: One per target that had a turn.
        interrupted: The user stopped it.
        seconds: Wall time.
    """

    results: tuple[TargetResult, ...]
    interrupted: bool
    seconds: float


Event = Notice | RunStarted | TargetStarted | PhaseStarted | CaseDone | BugFound | WorkerReplaced | TargetDone | RunDone
