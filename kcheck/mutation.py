"""Mutants: a change to the source of one function, as data, and what a run over mutants comes to.

The file on disk is never changed. A mutation keeps the number of lines, so that every line keeps its number.
"""

from __future__ import annotations

import enum
import inspect
import linecache
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import FunctionType
from typing import Any

SCHEMA = "kcheck.mutants/1"
_INNER = ("fn", "_init_fn", "__wrapped__", "function")  # kernels, custom operators, what functools wraps, targets


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of source and what stands there instead.

    Attributes:
        start: First byte of it in the file, in UTF-8.
        end: Byte behind it.
        text: The replacement, with as many line breaks as the piece has.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change to one function, for a worker process.

    Attributes:
        module: Name of the module that defines the function.
        qualname: Its name there: ``scale_kernel``, ``Ops.forward``.
        edits: The change; the pieces do not overlap.
    """

    module: str
    qualname: str
    edits: tuple[Edit, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Mutation:
        """Read `to_json`'s data back."""
        return Mutation(data["module"], data["qualname"], tuple(Edit(**edit) for edit in data["edits"]))


class Fate(enum.StrEnum):
    """What became of a mutant."""

    KILLED = "killed"  # a case shows a finding
    SURVIVED = "survived"  # no case does
    INVALID = "invalid"  # it cannot run, so it says nothing about the target


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutation as its reader sees it.

    Attributes:
        operator: What kind of change it is: ``mask dropped``.
        mutation: The change.
        probe: Instead of the change, what fails where it is run.
        file: Source file.
        line: First changed line, from 1.
        before: The changed lines as they are.
        after: The lines that stand there instead; as many, or fewer.
    """

    operator: str
    mutation: Mutation
    probe: Mutation
    file: str
    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MutantResult:
    """What became of a mutant.

    Attributes:
        mutant: Which.
        fate: What became of it.
        cases: Cases that were judged.
        kind: Kind of the finding that killed it, ``""`` without one.
        message: The finding, or why it is invalid; one sentence.
        ran: Whether a case runs the changed code.
    """

    mutant: Mutant
    fate: Fate
    cases: int
    kind: str = ""
    message: str = ""
    ran: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain data for a report."""
        mutant = self.mutant
        return {
            "operator": mutant.operator,
            "function": mutant.mutation.qualname,
            "file": mutant.file,
            "line": mutant.line,
            "before": list(mutant.before),
            "after": list(mutant.after),
            "fate": self.fate.value,
            "cases": self.cases,
            "kind": self.kind,
            "message": self.message,
            "ran": self.ran,
        }


@dataclass(frozen=True, slots=True)
class MutationScore:
    """How many mutants of a target's kernels its cases and checks kill.

    Attributes:
        target: Name of the target.
        functions: Functions that were mutated.
        made: Mutants that could be made, those left out by the budget included.
        cases: Cases that each surviving mutant passed.
        results: One for each mutant that was tried.
        seconds: Wall time.
        interrupted: The user stopped the run before all had been tried.
    """

    target: str
    functions: tuple[str, ...]
    made: int
    cases: int
    results: tuple[MutantResult, ...]
    seconds: float
    interrupted: bool = False

    def of(self, fate: Fate) -> list[MutantResult]:
        """The results with a fate."""
        return [result for result in self.results if result.fate is fate]

    @property
    def killed(self) -> int:
        """Mutants that a case showed."""
        return len(self.of(Fate.KILLED))

    @property
    def judged(self) -> int:
        """Mutants that count: killed or survived."""
        return self.killed + len(self.of(Fate.SURVIVED))

    @property
    def score(self) -> float | None:
        """Killed of those that count, 0 to 1; None if none does."""
        return self.killed / self.judged if self.judged else None

    def to_json(self) -> dict[str, Any]:
        """The document of a report."""
        return {
            "schema": SCHEMA,
            "target": self.target,
            "functions": list(self.functions),
            "made": self.made,
            "cases": self.cases,
            "score": self.score,
            "counts": {fate.value: len(self.of(fate)) for fate in Fate},
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "mutants": [result.to_json() for result in self.results],
        }


def function_at(module: str, qualname: str) -> tuple[FunctionType, Any] | None:
    """Find a function by name.

    Args:
        module: Name of an imported module.
        qualname: The function's ``__qualname__``.

    Returns:
        The function, and the object around it that holds it as ``fn`` (a kernel; else the function itself). None: it
        is not found by that name.
    """
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        members = getattr(found, "__dict__", {})  # not getattr: a descriptor would bind
        if part not in members:
            return None
        found = members[part]
    return unwrapped(found)


def unwrapped(value: Any) -> tuple[FunctionType, Any] | None:
    """The function inside of decorators, and the innermost object around it (the function itself, if there is none)."""
    holder = value
    for _ in range(16):  # deeper is a circle
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        elif isinstance(value, FunctionType):
            wrapped = getattr(value, "__wrapped__", None)
            if wrapped is None:
                return value, holder if getattr(holder, "fn", None) is value else value
            value = wrapped
        else:
            members = getattr(value, "__dict__", {})
            holder = value
            value = next((members[name] for name in _INNER if name in members), None)
    return None


def source_of(function: FunctionType) -> bytes:
    """The source file of a function as Python's own tools see it, UTF-8; empty if it has none."""
    file = inspect.getsourcefile(function)
    lines = linecache.getlines(file, function.__globals__) if file else []
    return "".join(lines).encode()


def edited(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The source with pieces replaced."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    return source
