"""Reads a JSON report back. A malformed one is refused with the place of the first bad value."""

from __future__ import annotations

from pathlib import Path

from kcheck.errors import InvalidDocument
from kcheck.events import CaseVerdict, Cell, Discovery, Gone, Shard, TargetResult
from kcheck.evidence import Compiled, Evidence
from kcheck.findings import Finding, Kind, Mismatch, Severity, SourceFrame
from kcheck.json_node import E, Node, read_node
from kcheck.layout import LayoutKind
from kcheck.reports.json_report import REPORT_SCHEMA
from kcheck.reports.record import RunRecord
from kcheck.shard import MOST_SHARDS


def read_report(path: Path) -> RunRecord:
    """Read a report that `render_json` wrote.

    Keys that this kcheck does not know are passed over.

    Args:
        path: The file.

    Raises:
        UsageError: The file cannot be read.
        InvalidDocument: It is not a valid report; the error names the place.
    """
    document = read_node(path, "report")
    try:
        return _report(document)
    except RecursionError:
        raise InvalidDocument("document", "holds lists in lists that are too deep") from None


def _report(node: Node) -> RunRecord:
    schema = node.get("schema")
    if schema.value != REPORT_SCHEMA:
        raise InvalidDocument("schema", f"is {schema.value!r:.60}; this kcheck reads {REPORT_SCHEMA!r}")
    shard = _shard(node.get("shard")) if "shard" in node.value else None
    return RunRecord(
        backend=node.get("backend").text(),
        seed=node.get("seed").count(),
        versions={name: version.text() for name, version in node.get("versions").entries()},
        targets=node.get("selected").texts(),
        results=tuple(read_target(target) for target in node.get("targets").items()),
        interrupted=node.get("interrupted").boolean(),
        seconds=node.get("seconds").seconds(),
        shard=shard,
        joined=_joined(node.get("joined"), shard.of) if shard and "joined" in node.value else (),
        identity=_texts(node.get("run")) if "run" in node.value else {},
    )


def _shard(node: Node) -> Shard:
    shard = Shard(node.get("index").integer(), node.get("of").integer())
    if not 1 <= shard.index <= shard.of <= MOST_SHARDS:
        raise InvalidDocument(node.where, f"is {shard}; expected an index from 1, and at most {MOST_SHARDS:,} shards")
    return shard


def _joined(node: Node, of: int) -> tuple[int, ...]:
    indices = node.integers()
    if list(indices) != sorted(set(indices)) or not all(1 <= index <= of for index in indices):
        raise InvalidDocument(node.where, f"is {node.value!r:.60}; expected different indices from 1 to {of}, in order")
    return indices


def read_target(node: Node) -> TargetResult:
    """What came out of one target.

    Raises:
        InvalidDocument: The node holds something else.
    """
    return TargetResult(
        name=node.get("name").text(),
        verdict=node.get("verdict").member(CaseVerdict),
        reasons=node.get("reasons").texts(),
        notes=node.get("notes").texts(),
        cases={_key(name, at, CaseVerdict): at.count() for name, at in node.get("cases").entries()},
        seconds=node.get("seconds").seconds(),
        matrix={
            argument: {_key(name, at, LayoutKind): at.member(Cell) for name, at in row.entries()}
            for argument, row in node.get("matrix").entries()
        },
        discoveries=tuple(read_discovery(found) for found in node.get("findings").items()),
        launches=_counts(node.get("launches")),
        gone=tuple(_gone(gone) for gone in node.get("gone").items()),
        allowed=node.get("allowed").boolean(),
        evidence=None if node.get("evidence").value is None else _evidence(node.get("evidence")),
    )


def _evidence(node: Node) -> Evidence:
    swept = node.get("swept")
    if len(swept.integers()) != 2:
        raise InvalidDocument(swept.where, f"has {len(swept.integers())} entries; expected cases that ran, and planned")
    return Evidence(
        shards=node.get("shards").count(),
        failures=node.get("failures").texts(),
        interrupted=node.get("interrupted").boolean(),
        settled=_texts(node.get("settled")),
        kernels=node.get("kernels").texts(),
        exempt=node.get("exempt").count(),
        rejections=_counts(node.get("rejections")),
        unchecked=_counts(node.get("unchecked")),
        constants=_counts(node.get("constants")),
        varied=node.get("varied").count(),
        accepted=node.get("accepted").texts(),
        declined=_texts(node.get("declined")),
        left_out=_counts(node.get("left_out")),
        swept=(swept.integers()[0], swept.integers()[1]),
        kernel_notes=_texts(node.get("kernel_notes")),
        unseen=_texts(node.get("unseen")),
        known_notes=node.get("known_notes").texts(),
        compiles={kernel: _compiled(at) for kernel, at in node.get("compiles").entries()},
    )


def _compiled(node: Node) -> Compiled:
    return Compiled(
        fresh=node.get("fresh").count(),
        cached=node.get("cached").count(),
        seconds=node.get("seconds").seconds(),
        causes=_counts(node.get("causes")),
    )


def _counts(node: Node) -> dict[str, int]:
    return {key: at.count() for key, at in node.entries()}


def _texts(node: Node) -> dict[str, str]:
    return {key: at.text() for key, at in node.entries()}


def _gone(node: Node) -> Gone:
    return Gone(node.get("fingerprint").text(), node.get("issue").text(), node.get("message").text())


def _key(name: str, at: Node, enum: type[E]) -> E:
    return Node(name, f"the key of {at.where}").member(enum)


def read_discovery(node: Node) -> Discovery:
    """One bug.

    Raises:
        InvalidDocument: The node holds something else.
    """
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
