"""Reads a JSON report back. A malformed one is refused with the place of the first bad value."""

from __future__ import annotations

from pathlib import Path

from kcheck.errors import InvalidDocument
from kcheck.events import CaseVerdict, Cell, Discovery, Gone, TargetResult
from kcheck.findings import Finding, Kind, Mismatch, Severity, SourceFrame
from kcheck.json_node import E, Node, read_node
from kcheck.layout import LayoutKind
from kcheck.reports.json_report import REPORT_SCHEMA
from kcheck.reports.record import RunRecord


def read_report(path: Path) -> RunRecord:
    """Read a report that `render_json` wrote.

    Keys that this kcheck does not know are passed over.

    Args:
        path: The file.

    Raises:
        UsageError: The file cannot be read.
        InvalidDocument: It is not a valid report; the error names the place.
    """
    return _report(read_node(path, "report"))


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
        gone=tuple(_gone(gone) for gone in node.get("gone").items()),
        allowed=node.get("allowed").boolean(),
    )


def _gone(node: Node) -> Gone:
    return Gone(node.get("fingerprint").text(), node.get("issue").text(), node.get("message").text())


def _key(name: str, at: Node, enum: type[E]) -> E:
    return Node(name, f"the key of {at.where}").member(enum)


def _discovery(node: Node) -> Discovery:
    return Discovery(
        target=node.get("target").text(),
        spec=node.get("spec").text(),
        finding=_finding(node),
        fingerprint=node.get("fingerprint").text(),
        case=node.get("case").case(),
        layout_kinds=tuple(kind.member(LayoutKind) for kind in node.get("layout_kinds").items()),
        seen=node.get("seen").count(),
        culprit=node.get("culprit").text(),
        related=tuple(_finding(related) for related in node.get("related").items()),
        minimal=node.get("minimal").boolean(),
        directory=node.get("directory").text(),
        options=tuple(option.text() for option in node.get("options").items()),
        known=node.get("known").text(),
        tool=node.get("tool").text(),
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
        path=node.get("path").integers(),
        steps=node.get("steps").count(),
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
