"""The ``.kcheck`` directory: findings, the case that is running, the example database, the workers' log."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import re
import tempfile
import weakref
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from kcheck.case import Case
from kcheck.document import case_from_json, case_text, case_to_json
from kcheck.errors import InvalidDocument, UsageError
from kcheck.events import Discovery
from kcheck.findings import Finding

FINDING_SCHEMA = "kcheck.finding/1"
DEFAULT_ROOT = ".kcheck"
MOST_NAME_BYTES = 200  # file systems take 255


@dataclass(frozen=True, slots=True)
class SavedCase:
    """A case read from a file, with what the file says about it.

    Attributes:
        spec: The target that it belongs to, ``""`` if the file does not say.
        case: The case.
        finding: The finding that it shows, if the file holds one.
        fingerprint: Of that finding, ``""`` without one.
        tool: The tool of compute-sanitizer that showed it, ``""`` if kcheck itself did.
    """

    spec: str
    case: Case
    finding: Finding | None = None
    fingerprint: str = ""
    tool: str = ""


class Store:
    """The directory. Several processes may share it: each has a log and a note of the running case of its own.

    Args:
        root: Its path; made on first use, with a ``.gitignore`` that keeps it out of version control.
    """

    def __init__(self, root: Path = Path(DEFAULT_ROOT)) -> None:
        self._given = root
        self.root = root.absolute()  # a target may change the current directory
        self._running: dict[Path, FileIO] = {}
        self._noted: dict[Path, int] = {}  # bytes of these files
        self._suffix = ""  # of files that no other process may write to meanwhile

    @property
    def unusual(self) -> str:
        """The path, if it is not the usual one; else ``""``."""
        return "" if self._given == Path(DEFAULT_ROOT) else str(self._given)

    def open(self, *, own_process: bool = True) -> Store:
        """Make the directory, and take names of its own in it.

        Args:
            own_process: The process is kcheck's own, so Hypothesis keeps its data here too. In a process of the
                user's it must not: the user's own tests may use Hypothesis.

        Raises:
            UsageError: It cannot be made.
        """
        try:
            for part in ("findings", "examples", "hypothesis"):
                (self.root / part).mkdir(parents=True, exist_ok=True)
            ignore = self.root / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            self._claim()
        except OSError as error:
            raise UsageError(
                f"cannot write to {self.root}: {error.strerror}; choose another place with --dir"
            ) from None
        if own_process:
            # Hypothesis keeps data of its own beside its examples; not in the user's directory.
            os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str((self.root / "hypothesis").absolute()))
        return self

    def _claim(self) -> None:
        """Take the first log that no other process has; it is free again when this object, or the process, is gone.

        The stack of a crashed worker is read from the log: it must be that of no other run.
        """
        for number in itertools.count():
            self._suffix = f"-{number}" if number else ""
            log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(log)
                continue
            except OSError:  # a file system without locks
                os.close(log)
                return
            weakref.finalize(self, os.close, log)
            return

    @property
    def log(self) -> Path:
        """File for what user code prints in workers: ``worker.log``, ``worker-1.log`` of a second process, …."""
        return self.root / f"worker{self._suffix}.log"

    def _note(self, *, waiting: bool) -> Path:
        return self.root / f"{'waiting' if waiting else 'running'}{self._suffix}.json"

    def examples(self, spec: str) -> Path:
        """Directory of Hypothesis's examples for one target."""
        name = re.sub(r"[^\w.-]+", "_", spec)
        if len(name.encode()) > MOST_NAME_BYTES:
            name = hashlib.sha256(spec.encode()).hexdigest()
        return self.root / "examples" / name

    def running(self, spec: str, case: Case, *, waiting: bool = False) -> None:
        """Note a case before it runs, so that nothing can lose it.

        The files stay open: making one costs up to a millisecond.

        Args:
            spec: Its target.
            case: What will run.
            waiting: Another case runs still, or did a moment ago; this one goes into ``waiting.json``.
        """
        path = self._note(waiting=waiting)
        head = json.dumps({"schema": FINDING_SCHEMA, "target": spec})
        text = f'{head[:-1]}, "case": {case_text(case)}}}'.encode()
        # Spaces cover the rest of a longer case before it: a second system call would cost as much as the first.
        size = max(self._noted.get(path, 0), len(text))
        try:
            if path not in self._running:
                self.root.mkdir(parents=True, exist_ok=True)  # a target may delete what it likes
                self._running[path] = path.open("wb", buffering=0)
            os.pwrite(self._running[path].fileno(), text.ljust(size), 0)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        self._noted[path] = size

    def idle(self) -> None:
        """No case is running any more."""
        for file in self._running.values():
            file.close()
        self._running.clear()
        self._noted.clear()
        for waiting in (False, True):
            self._note(waiting=waiting).unlink(missing_ok=True)

    def save(self, discovery: Discovery) -> Path:
        """Keep a finding for ``kcheck replay``.

        Returns:
            The file.
        """
        path = self._place(discovery)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "schema": FINDING_SCHEMA,
            "target": discovery.spec,
            "fingerprint": discovery.fingerprint,
            "finding": discovery.finding.to_json(),
            "case": case_to_json(discovery.case),
        } | ({"tool": discovery.tool} if discovery.tool else {})
        write_json(path, data)
        return path

    def _place(self, discovery: Discovery) -> Path:
        """The finding's file. The same kernel, copied, has the same fingerprint in targets of one name."""
        for number in itertools.count(1):
            suffix = f"-{number}" if number > 1 else ""
            path = self.root / "findings" / f"{discovery.fingerprint}{suffix}.json"
            if not path.exists() or _target_in(path) in ("", discovery.spec):
                return path
        raise AssertionError

    def find(self, name: str, spec: str = "") -> SavedCase:
        """Read a finding by its fingerprint (or the start of it), or any case file by its path.

        Args:
            name: What to find.
            spec: The target, where findings of several have this fingerprint.

        Raises:
            UsageError: There is no such finding or file.
            InvalidDocument: The file is malformed.
        """
        path = Path(name)
        if path.is_file():
            return read_case(path)
        known = sorted(p.stem for p in (self.root / "findings").glob("*.json"))
        matches = [stem for stem in known if stem.startswith(name)] if name else []
        if len(matches) > 1:
            of_target = [stem for stem in matches if _target_in(self.root / "findings" / f"{stem}.json") == spec]
            matches = of_target or [stem for stem in matches if stem == name] or matches
        if len(matches) == 1:
            return read_case(self.root / "findings" / f"{matches[0]}.json")
        problem = f"several findings start with {name!r}" if matches else f"no finding or file {name!r}"
        listed = f"; saved findings are {', '.join(known[:8])}" if known else f"; {self.root} holds no findings"
        raise UsageError(problem + listed)


def _target_in(path: Path) -> str:
    """The target that a finding's file names, ``""`` if it cannot be read."""
    try:
        return read_case(path).spec
    except UsageError:
        return ""


def write_json(path: Path, data: Any) -> None:
    """Write a JSON document so that a reader sees all of it or nothing.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, prefix=f".{path.name}.") as file:
            json.dump(data, file, indent=1, allow_nan=False, default=str)
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def read_case(path: Path) -> SavedCase:
    """Read a finding file, a ``running.json``, or a bare case.

    Raises:
        UsageError: The file cannot be read.
        InvalidDocument: It is not one of these.
    """
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidDocument(str(path), f"is not JSON: {error}") from None
    try:
        return _saved_case(data)
    except InvalidDocument as error:
        raise InvalidDocument(f"{path}: {error.where}", error.problem) from None


def _saved_case(data: Any) -> SavedCase:
    if not isinstance(data, dict) or data.get("schema") != FINDING_SCHEMA:
        return SavedCase("", case_from_json(data))
    case = case_from_json(data.get("case"))
    finding = None
    if data.get("finding") is not None:
        try:
            finding = Finding.from_json(data["finding"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidDocument("finding", f"is malformed: {error}") from None
    texts = (str(data.get(key, "")) for key in ("fingerprint", "tool"))
    return SavedCase(str(data.get("target", "")), case, finding, *texts)
