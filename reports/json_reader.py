"""Reads a JSON report back. A malformed one is refused with the place of the first bad value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from kcheck.document import case_from_json
from kcheck.errors import InvalidDocument, UsageError
from kcheck.events import CaseVerdict, Cell, Discovery, TargetResult
from kcheck.fill import Number, number_from_json
from kcheck.findings import Finding, Kind, Mismatch, Severity, SourceFrame
from kcheck.layout import LayoutKind
from kcheck.reports.json_report import REPORT_SCHEMA
from kcheck.reports.record import RunRecord

E = TypeVar("E", bound=StrEnum)


def read_report(path: Path) -> RunRecord:
    """Read a report that `render_json` wrote.

    Keys that this kcheck does not know are passed over.

    Args:
        path: The file.

    Raises:
        UsageError: The file cannot be read.
        InvalidDocument: It is not a valid report; the error names the place.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise UsageError(f"the report {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidDocument(str(path), "is not UTF-8 text; expected a JSON report") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidDocument(str(path), f"is not JSON: {error}") from None
    return _report(Node(data, ""))


def _refuse_constant(name: str) -> Any:
    raise InvalidDocument("document", f"contains {name}, which is not JSON; write it as a string")


class Node:
    """One value of a document, and its place.

    Args:
        value: The value.
        where: Its place, ``targets[0].name``.
    """

    def __init__(self, value: Any, where: str) -> None:
        self.value = value
        self.where = where or "document"
        self._prefix = f"{where}." if where else ""

    def _as(self, kind: type, article: str) -> Any:
        if type(self.value) is not kind:
            raise InvalidDocument(self.where, f"is {self.value!r:.60}; expected {article}")
        return self.value

    def get(self, key: str) -> Node:
        """The entry of an object."""
        fields = self._as(dict, "an object")
        if key not in fields:
            raise InvalidDocument(self.where, f"has no {key!r}")
        return Node(fields[key], f"{self._prefix}{key}")

    def entries(self) -> Iterator[tuple[str, Node]]:
        """All entries of an object."""
        for key, value in self._as(dict, "an object").items():
            yield key, Node(value, f"{self._prefix}{key}")

    def items(self) -> list[Node]:
        """The items of a list."""
        return [Node(value, f"{self.where}[{i}]") for i, value in enumerate(self._as(list, "a list"))]

    def text(self) -> str:
        """A string."""
        return str(self._as(str, "a string"))

    def texts(self) -> tuple[str, ...]:
        """A list of strings."""
        return tuple(item.text() for item in self.items())

    def integer(self) -> int:
        """An integer."""
        return int(self._as(int, "an integer"))

    def integers(self) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(item.integer() for item in self.items())

    def count(self) -> int:
        """An integer that is not negative."""
        if self.integer() < 0:
            raise InvalidDocument(self.where, f"is {self.value}; expected an integer >= 0")
        return self.integer()

    def number(self) -> Number:
        """A number, or ``"nan"``, ``"inf"``, ``"-inf"``."""
        return number_from_json(self.value, self.where)

    def boolean(self) -> bool:
        """True or false."""
        return bool(self._as(bool, "true or false"))

    def member(self, enum: type[E]) -> E:
        """The value of an enumeration."""
        known = [member.value for member in enum]
        if self.value not in known:
            raise InvalidDocument(self.where, f"is {self.value!r:.60}; expected one of {', '.join(known)}")
        return enum(self.value)


def _report(node: Node) -> RunRecord:
    schema = node.get("schema")
    if schema.value != REPORT_SCHEMA:
        raise InvalidDocument("schema", f"is {schema.value!r:.60}; this kcheck reads {REPORT_SCHEMA!r}")
    return RunRecord(
        backend=node.get("backend").text(),
        seed=node.get("seed").integer(),
        versions={name: version.text() for name, version in node.get("versions").entries()},
        targets=node.get("selected").texts(),
        results=tuple(_target(target) for target in node.get("targets").items()),
        interrupted=node.get("interrupted").boolean(),
        seconds=node.get("seconds").number(),
    )


def _target(node: Node) -> TargetResult:
    return TargetResult(
        name=node.get("name").text(),
        verdict=node.get("verdict").member(CaseVerdict),
        reasons=node.get("reasons").texts(),
        notes=node.get("notes").texts(),
        cases={_key(name, at, CaseVerdict): at.count() for name, at in node.get("cases").entries()},
        seconds=node.get("seconds").number(),
        matrix={
            argument: {_key(name, at, LayoutKind): at.member(Cell) for name, at in row.entries()}
            for argument, row in node.get("matrix").entries()
        },
        discoveries=tuple(_discovery(found) for found in node.get("findings").items()),
        launches={kernel: at.count() for kernel, at in node.get("launches").entries()},
    )


def _key(name: str, at: Node, enum: type[E]) -> E:
    return Node(name, f"the key of {at.where}").member(enum)


def _discovery(node: Node) -> Discovery:
    case = node.get("case")
    try:
        replayed = case_from_json(case.value)
    except InvalidDocument as error:
        raise InvalidDocument(f"{case.where}.{error.where}", error.problem) from None
    return Discovery(
        target=node.get("target").text(),
        spec=node.get("spec").text(),
        finding=_finding(node),
        fingerprint=node.get("fingerprint").text(),
        case=replayed,
        layout_kinds=tuple(kind.member(LayoutKind) for kind in node.get("layout_kinds").items()),
        seen=node.get("seen").count(),
        culprit=node.get("culprit").text(),
        related=tuple(_finding(related) for related in node.get("related").items()),
        minimal=node.get("minimal").boolean(),
        directory=node.get("directory").text(),
    )


def _finding(node: Node) -> Finding:
    mismatch = node.get("mismatch")
    return Finding(
        kind=node.get("kind").member(Kind),
        message=node.get("message").text(),
        severity=node.get("severity").member(Severity),
        kernel=node.get("kernel").text(),
        file=node.get("file").text(),
        line=node.get("line").count(),
        source=node.get("source").text(),
        occurrence=node.get("occurrence").count(),
        argument=node.get("argument").text(),
        parameter=node.get("parameter").text(),
        index=node.get("index").integers(),
        landed=node.get("landed").text(),
        program=node.get("program").integers(),
        count=node.get("count").count(),
        programs=node.get("programs").count(),
        cells=node.get("cells").integers(),
        chain=tuple(map(_frame, node.get("chain").items())),
        mismatch=None if mismatch.value is None else _mismatch(mismatch),
        notes=node.get("notes").texts(),
    )


def _frame(node: Node) -> SourceFrame:
    return SourceFrame(
        file=node.get("file").text(),
        line=node.get("line").count(),
        function=node.get("function").text(),
        source=node.get("source").text(),
    )


def _mismatch(node: Node) -> Mismatch:
    def example(at: Node) -> tuple[tuple[int, ...], float, float]:
        parts = at.items()
        if len(parts) != 3:
            raise InvalidDocument(at.where, f"has {len(parts)} entries; expected index, actual, expected")
        return parts[0].integers(), parts[1].number(), parts[2].number()

    return Mismatch(
        output=node.get("output").text(),
        count=node.get("count").count(),
        total=node.get("total").count(),
        worst=node.get("worst").integers(),
        actual=node.get("actual").number(),
        expected=node.get("expected").number(),
        allowed=node.get("allowed").number(),
        against=node.get("against").text(),
        examples=tuple(map(example, node.get("examples").items())),
    )
