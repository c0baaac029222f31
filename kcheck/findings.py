"""Findings: proven faults of what is under test. (Failures of kcheck's own work are `kcheck.errors`.)"""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


class Kind(enum.StrEnum):
    """What was proven."""

    VALUE_MISMATCH = "value-mismatch"
    LAYOUT_VARIANCE = "layout-variance"
    OUT_OF_VIEW_READ = "out-of-view-read"
    OUT_OF_VIEW_WRITE = "out-of-view-write"
    OUT_OF_BOUNDS_READ = "out-of-bounds-read"
    OUT_OF_BOUNDS_WRITE = "out-of-bounds-write"
    MISALIGNED_ACCESS = "misaligned-access"
    UNWRITTEN_OUTPUT = "unwritten-output"
    INPUT_MUTATED = "input-mutated"
    UNINITIALIZED_READ = "uninitialized-read"
    RACE = "race"
    SCATTER_CONFLICT = "scatter-conflict"
    OFFSET_OVERFLOW = "offset-overflow"
    FALSE_HINT = "false-hint"
    SHARED_RACE = "shared-race"
    BARRIER_DIVERGENCE = "barrier-divergence"
    GRAPH_VARIANCE = "graph-variance"
    DEAD_READ = "dead-read"
    NONDETERMINISM = "nondeterminism"
    CRASH = "crash"
    TIMEOUT = "timeout"
    DEVICE_ASSERT = "device-assert"
    COMPILE_ERROR = "compile-error"
    API_ERROR = "api-error"
    LEAK = "leak"
    TARGET_ERROR = "target-error"
    MUST_ACCEPT = "must-accept"  # a layout that the target's spec says must be accepted was rejected


# Findings about values: they say that something is wrong, not where. Memory findings name the access itself.
SYMPTOMS = frozenset({Kind.VALUE_MISMATCH, Kind.LAYOUT_VARIANCE, Kind.NONDETERMINISM, Kind.UNWRITTEN_OUTPUT})
# A wrong stride leads out of the view in one layout, and to another program's elements in the next.
COLLISIONS = frozenset({Kind.RACE, Kind.SCATTER_CONFLICT})


def distance(kind: Kind) -> int:
    """How far a finding may be from its cause: 0 names an access, 1 two of them that collide, 2 a wrong value."""
    return 2 if kind in SYMPTOMS else 1 if kind in COLLISIONS else 0


class Severity(enum.StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """One line of source: where the kernel, or the wrapper, was."""

    file: str
    line: int
    function: str
    source: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How two tensors differ.

    Attributes:
        output: Name of the output.
        count: Elements that differ.
        total: Elements compared.
        worst: Index of the largest difference.
        actual: Value there.
        expected: Value there.
        allowed: Largest difference allowed there.
        against: What `expected` is: ``oracle``, ``contiguous copy``, ``repeat``.
        examples: ``(index, actual, expected)`` of the first wrong elements, at most 8.
    """

    output: str
    count: int
    total: int
    worst: tuple[int, ...]
    actual: float
    expected: float
    allowed: float
    against: str
    examples: tuple[tuple[tuple[int, ...], float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One proven fault in one case.

    Attributes:
        kind: What was proven.
        message: One sentence that says what happened.
        severity: Error, warning or note.
        kernel: Name of the kernel, ``""`` if no kernel is to blame.
        file: Source file of the faulty line, ``""`` if unknown.
        line: Its number from 1, 0 if unknown.
        source: Its text.
        occurrence: 0 for the first line with this text in its function, 1 for the second, ….
        argument: The target's argument.
        parameter: The kernel's parameter.
        index: Logical index in the argument of the first wrong element.
        landed: What the address belongs to instead, as text; ``""`` if nothing.
        program: ``program_id`` of the first bad lane.
        count: Wrong lanes or elements.
        programs: Programs with a bad lane.
        cells: Backing elements of `argument` that were touched wrongly or are wrong, at most 64, for the picture.
            May be negative or beyond the backing.
        path: Backing elements of `argument` that the faulty line touched before in `program`, in order, and last the
            first wrong one; no element follows itself. Of a path longer than 64 the first 63 and the last.
        steps: Elements of the whole path.
        chain: Frames from the kernel down to the faulty line.
        mismatch: How the result differs, where it does.
        notes: Further facts, a sentence each.
    """

    kind: Kind
    message: str
    severity: Severity = Severity.ERROR
    kernel: str = ""
    file: str = ""
    line: int = 0
    source: str = ""
    occurrence: int = 0
    argument: str = ""
    parameter: str = ""
    index: tuple[int, ...] = ()
    landed: str = ""
    program: tuple[int, ...] = ()
    count: int = 0
    programs: int = 0
    cells: tuple[int, ...] = ()
    path: tuple[int, ...] = ()
    steps: int = 0
    chain: tuple[SourceFrame, ...] = ()
    mismatch: Mismatch | None = None
    notes: tuple[str, ...] = field(default=())

    def fingerprint(self, target: str) -> str:
        """Identity of the bug, stable under edits elsewhere in the file: 12 hexadecimal digits.

        Neither the line number nor the layout counts, nor how far a stray access strays: one wrong stride reads the
        gap in one row and leaves the backing in the last. Where a loop was when its time ran out is chance.

        Args:
            target: Name of the target.
        """
        kind = self.kind.replace("out-of-bounds", "out-of-view")
        line = "" if self.kind is Kind.TIMEOUT else f"{self.source}\0{self.occurrence}"
        parts = (target, kind, self.kernel, self.argument, line)
        return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`, also where a value is not finite."""
        plain: dict[str, Any] = _strict(asdict(self))
        return plain

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Finding:
        """Read `to_json`'s data back.

        Raises:
            KeyError, TypeError, ValueError: The data is something else.
        """
        values = {f.name: data[f.name] for f in fields(Finding) if f.name in data}
        for name in ("index", "program", "cells", "path", "notes"):
            values[name] = tuple(values.get(name, ()))
        values["chain"] = tuple(SourceFrame(**frame) for frame in values.get("chain", ()))
        found = values.get("mismatch")
        if found is not None:
            examples = tuple((tuple(i), float(actual), float(expected)) for i, actual, expected in found["examples"])
            numbers = {name: float(found[name]) for name in ("actual", "expected", "allowed")}
            values["mismatch"] = Mismatch(**(found | numbers | {"worst": tuple(found["worst"]), "examples": examples}))
        return Finding(**values | {"kind": Kind(values["kind"]), "severity": Severity(values["severity"])})


def _strict(value: Any) -> Any:
    """JSON has no NaN and no infinities: these become strings, which `float` reads back."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
