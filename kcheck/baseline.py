"""Baselines: findings that are known, each with the link of the issue that tracks it.

A baseline is a JSON file under version control. A known finding does not fail a run, a new one does, and one that is
gone does too, so that the list stays true. Each entry keeps the minimal case: a run tries it first, and only that case
can prove that the finding is gone. What ends the process (`CRASHES`) is not tried, and neither is any case that holds
its case (`holds`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kcheck.case import Case, Value, View
from kcheck.document import case_to_json
from kcheck.errors import InvalidDocument, UsageError
from kcheck.events import Discovery, Gone
from kcheck.findings import Finding, Kind, Severity
from kcheck.json_node import Node, read_node
from kcheck.layout import LayoutKind

BASELINE_SCHEMA = "kcheck.baseline/1"
CRASHES = frozenset({Kind.CRASH, Kind.TIMEOUT, Kind.DEVICE_ASSERT})
UNSTEADY = frozenset({Kind.NONDETERMINISM, Kind.SHARED_RACE})  # that a case does not show it once proves little
_ISSUE = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Known:
    """A finding that is known.

    Attributes:
        issue: Link of the issue that tracks it.
        target: As the user names it; a file relative to the current directory (in the file: to the file's folder).
        found_by: Backend, or tool of compute-sanitizer, that showed it.
        fingerprint: Identity, 12 hexadecimal digits.
        kind: What was proven.
        severity: How grave it is; the same finding in a graver form is new.
        kernel: Name of the kernel, ``""`` if none is to blame.
        argument: The target's argument.
        culprit: The argument whose layout alone decides, ``""`` for none.
        source: Text of the faulty line.
        message: One sentence that says what happened.
        case: The minimal case.
        related: Fingerprints of its effects that are findings of the same argument themselves.
        strict: It fails the run once it is gone.
    """

    issue: str
    target: str
    found_by: str
    fingerprint: str
    kind: Kind
    severity: Severity
    kernel: str
    argument: str
    culprit: str
    source: str
    message: str
    case: Case
    related: tuple[str, ...] = ()
    strict: bool = True

    @property
    def is_crash(self) -> bool:
        """Whether it ends the process, or never ends, and so is not launched."""
        return self.kind in CRASHES

    @property
    def title(self) -> str:
        """Kind, argument and fingerprint in words."""
        return f"{self.kind}{f' of {self.argument}' if self.argument else ''} ({self.fingerprint})"

    @property
    def gone(self) -> Gone:
        """What a run says that proved it to be gone."""
        message = f"{self.title} is in the baseline, and its case shows it no more; remove the entry"
        return Gone(self.fingerprint, self.issue, message)

    def covers(self, finding: Finding) -> bool:
        """Whether a finding of this fingerprint is no graver than what is known."""
        return finding.severity.rank >= self.severity.rank

    def tracked(self, found: Discovery) -> Discovery:
        """A run's own sight of the finding, with what is known of it."""
        return replace(found, culprit=self.culprit, minimal=found.case == self.case, known=self.issue)

    def unlaunched(self, target: str, spec: str, directory: str = "") -> Discovery:
        """The finding as a run reports it that did not launch its case.

        Args:
            target: Name of the target.
            spec: How the user named it in this run.
            directory: Where findings are kept, if it is not the usual place.
        """
        notes = ("known from the baseline, not launched in this run",)
        finding = Finding(
            self.kind, self.message, self.severity, kernel=self.kernel, argument=self.argument, notes=notes
        )
        found = Discovery(target, spec, finding, self.fingerprint, self.case, seen=0, directory=directory)
        return self.tracked(found)


def known_of(found: Discovery, backend: str) -> Known:
    """An entry for a finding; a new one has no issue yet.

    Args:
        found: The finding.
        backend: Of the run.
    """
    finding = found.finding
    return Known(
        issue=found.known,
        target=_here(found.spec, Path()),
        found_by=backend if backend.startswith(found.tool) else found.tool,
        fingerprint=found.fingerprint,
        kind=finding.kind,
        severity=finding.severity,
        kernel=finding.kernel,
        argument=finding.argument,
        culprit=found.culprit,
        source=finding.source,
        message=finding.message,
        case=found.case,
        related=tuple(
            sorted({one.fingerprint(found.target) for one in found.related if one.argument == found.culprit})
        ),
        strict=finding.kind not in UNSTEADY,
    )


def entries_of(known: Iterable[Known], spec: str) -> tuple[Known, ...]:
    """The entries of one target.

    Args:
        known: Entries.
        spec: The target as the user names it.
    """
    return tuple(one for one in known if one.target == _here(spec, Path()))


def holds(case: Case, least: Case) -> bool:
    """Whether a case holds another one: nowhere smaller, with its layouts, its types and its options.

    What ends the process with some sizes and layouts most probably does so in every case that holds them.
    """
    return all(name in case.args and _holds(case.args[name], value) for name, value in least.args.items())


def _holds(value: Value, least: Value) -> bool:
    if isinstance(least, View):
        if not isinstance(value, View) or (value.dtype, value.layout.rank) != (least.dtype, least.layout.rank):
            return False
        wanted = least.kinds - {LayoutKind.CONTIGUOUS}
        return wanted <= value.kinds and all(
            a >= b for a, b in zip(value.layout.shape, least.layout.shape, strict=True)
        )
    if isinstance(least, (list, tuple)):
        return isinstance(value, (list, tuple)) and len(value) == len(least) and all(map(_holds, value, least))
    if type(least) is int:
        return type(value) is int and value >= least
    return type(value) is type(least) and (isinstance(least, float) or value == least)


def read(path: Path, *, drafts: bool = False) -> tuple[Known, ...]:
    """Read a baseline.

    Args:
        path: The file.
        drafts: Take entries without an issue as well.

    Raises:
        UsageError: The file cannot be read.
        InvalidDocument: It is not a valid baseline; the error names the place.
    """
    document = read_node(path, "baseline")
    try:
        return _entries(document, path.parent, drafts)
    except InvalidDocument as error:
        raise InvalidDocument(f"{path}: {error.where}", error.problem) from None


def write(path: Path, known: Iterable[Known]) -> None:
    """Write a baseline, all of it or nothing: the same entries give the same bytes.

    Raises:
        UsageError: The file cannot be written.
    """
    ordered = sorted(known, key=lambda one: (one.target, one.kind, one.fingerprint, one.found_by))
    entries = ",\n".join(_entry_text(one, path.parent) for one in ordered)
    text = f'{{\n "schema": "{BASELINE_SCHEMA}",\n "known": [{chr(10) if entries else ""}{entries}'
    place = path.resolve()  # a link stays one
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        try:
            part.write_text(text + ("\n ]\n}\n" if entries else "]\n}\n"), encoding="utf-8")
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"the baseline {path} cannot be written: {error.strerror}") from None


def updated(before: Sequence[Known], found: Iterable[Known], gone: Iterable[str] = ()) -> list[Known]:
    """A baseline after a run: what was reviewed stays as it is, what is gone is left out, what is new has no issue.

    An entry that the run met in another case only takes that case. One that has become graver must be reviewed again.

    Args:
        before: The entries until now.
        found: An entry for each finding of the run.
        gone: Fingerprints of entries that the run proved to be gone.
    """
    kept = {_key(one): one for one in before if one.fingerprint not in set(gone)}
    for one in found:
        old = kept.get(_key(one))
        if old is None or one.severity.rank < old.severity.rank:
            kept[_key(one)] = replace(one, issue="")
        elif one.issue and one.case != old.case:
            kept[_key(one)] = replace(old, case=one.case)
    return list(kept.values())


def _key(known: Known) -> tuple[str, str, str]:
    return known.target, known.found_by, known.fingerprint


def _here(spec: str, folder: Path) -> str:
    """A target's name with its file, if it is in one, relative to the current directory instead of a folder."""
    place, colons, name = spec.partition("::")
    return f"{Path(os.path.relpath(folder / place)).as_posix()}{colons}{name}" if place.endswith(".py") else spec


def _from(spec: str, folder: Path) -> str:
    """The reverse of `_here`."""
    place, colons, name = spec.partition("::")
    return f"{Path(os.path.relpath(place, folder)).as_posix()}{colons}{name}" if place.endswith(".py") else spec


def _entry_text(known: Known, folder: Path) -> str:
    """One entry: a key a line, the case on one line, so that a review sees what matters."""
    names = (
        "fingerprint",
        "kind",
        "severity",
        "kernel",
        "argument",
        "culprit",
        "source",
        "message",
        "related",
        "strict",
    )
    fields = {"issue": known.issue, "target": _from(known.target, folder), "found_by": known.found_by}
    fields |= {name: getattr(known, name) for name in names} | {"case": case_to_json(known.case)}
    lines = (f"   {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return "  {\n" + ",\n".join(lines) + "\n  }"


def _entries(node: Node, folder: Path, drafts: bool) -> tuple[Known, ...]:
    schema = node.get("schema")
    if schema.value != BASELINE_SCHEMA:
        raise InvalidDocument("schema", f"is {schema.value!r:.60}; this kcheck reads {BASELINE_SCHEMA!r}")
    entries: dict[tuple[str, str, str], Known] = {}
    for at in node.get("known").items():
        one = _entry(at, folder, drafts)
        if _key(one) in entries:
            raise InvalidDocument(at.where, f"lists {one.fingerprint} again; leave one of the two out")
        entries[_key(one)] = one
    return tuple(entries.values())


def _entry(node: Node, folder: Path, drafts: bool) -> Known:
    fields: Mapping[str, Node] = dict(node.entries())
    unknown = [name for name in fields if name not in Known.__dataclass_fields__]
    if unknown:
        raise InvalidDocument(node.where, f"has the unknown key {unknown[0]!r}")
    issue = node.get("issue").text()
    if not _ISSUE.fullmatch(issue) and not (drafts and not issue):
        raise InvalidDocument(
            f"{node.where}.issue", f"is {issue!r:.60}; a known finding names the issue that tracks it, https://…"
        )
    return Known(
        issue=issue,
        target=_here(node.get("target").text(), folder),
        found_by=node.get("found_by").text(),
        fingerprint=node.get("fingerprint").text(),
        kind=node.get("kind").member(Kind),
        severity=node.get("severity").member(Severity),
        kernel=node.get("kernel").text(),
        argument=node.get("argument").text(),
        culprit=node.get("culprit").text(),
        source=node.get("source").text(),
        message=node.get("message").text(),
        case=node.get("case").case(),
        related=fields["related"].texts() if "related" in fields else (),
        strict=fields["strict"].boolean() if "strict" in fields else True,
    )
