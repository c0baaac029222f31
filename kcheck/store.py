"""The ``.kcheck`` directory: findings, the case that is running, the example database, the workers' log."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import json
import os
import re
import shlex
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

from kcheck.case import Case
from kcheck.document import case_text, case_to_json
from kcheck.errors import UsageError
from kcheck.events import Discovery
from kcheck.saved_case import FINDING_SCHEMA, SavedCase, read_case

DEFAULT_ROOT = ".kcheck"
_NOTE = re.compile(r"running(-\d+)?\.json", re.ASCII)
MOST_NAME_BYTES = 200  # file systems take 255
MOST_FINDINGS = 1000  # of all runs
MOST_FINDING_BYTES = 1 << 28


class Store:
    """The directory. Several processes may share it: each has a log and a note of the running case of its own.

    Args:
        root: Its path; made on first use, with a ``.gitignore`` that keeps it out of version control.
        database: Folder of Hypothesis's examples, which other directories may share; None: in this one.

    Attributes:
        trouble: Why something could not be kept, a sentence that ends with what it means; ``""`` if all was.
    """

    def __init__(self, root: Path = Path(DEFAULT_ROOT), database: Path | None = None) -> None:
        self._given = root
        self._database = None if database is None else database.absolute()
        self.root = root.absolute()  # a target may change the current directory
        self.trouble = ""
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
            place = "--dir" if own_process else "pytest's --kcheck-dir, or start in a folder that can be written to"
            raise UsageError(
                f"cannot write to {self.root}: {error.strerror}; choose another place with {place}"
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

    @property
    def case_note(self) -> Path:
        """File of the case that is running."""
        return self._note(waiting=False)

    def keep_left(self) -> None:
        """Keep the notes of cases that were running when a run was killed, before this run writes its own."""
        for waiting in (False, True):
            note = self._note(waiting=waiting)
            with contextlib.suppress(OSError):
                note.replace(self._left(note.name))

    def left(self, name: str) -> str:
        """How to replay the case that was noted in a file when a run was killed, ``""`` if none is kept.

        Args:
            name: Of the file, `case_note`.
        """
        if _NOTE.fullmatch(name) is None:
            return ""
        commands = []
        for path in (self._left(name), self._left(name.replace("running", "waiting"))):
            with contextlib.suppress(UsageError):
                spec = read_case(path).spec
                target = "" if spec.startswith("builtin:") else f" --target {shlex.quote(spec)}"
                commands.append(f"kcheck replay {shlex.quote(os.path.relpath(path))}{target}")
        return ", or the one that waited: ".join(commands)

    def _left(self, name: str) -> Path:
        return self.root / f"left-{name}"

    def _note(self, *, waiting: bool) -> Path:
        return self.root / f"{'waiting' if waiting else 'running'}{self._suffix}.json"

    def examples(self, spec: str) -> Path:
        """Directory of Hypothesis's examples for one target."""
        name = re.sub(r"[^\w.-]+", "_", spec)
        if len(name.encode()) > MOST_NAME_BYTES:
            name = hashlib.sha256(spec.encode()).hexdigest()
        return (self._database or self.root / "examples") / name

    def running(self, spec: str, case: Case, *, waiting: bool = False) -> None:
        """Note a case before it runs, so that nothing can lose it. That it cannot be noted does not stop the run.

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
            if os.pwrite(self._running[path].fileno(), text.ljust(size), 0) < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._noted[path] = size
        except OSError as error:
            self.trouble = (
                f"cannot write {path}: {error.strerror}; the run goes on, and if it is killed its case is lost"
            )
            self._noted.pop(path, None)
            if path in self._running:
                with contextlib.suppress(OSError):  # half a case, or another one, must not stand there
                    self._running[path].truncate(0)

    def idle(self) -> None:
        """No case is running any more."""
        for file in self._running.values():
            file.close()
        self._running.clear()
        self._noted.clear()
        for waiting in (False, True):
            self._note(waiting=waiting).unlink(missing_ok=True)

    def keep(self, discovery: Discovery) -> Discovery:
        """Keep a finding for ``kcheck replay``, if the disk takes it.

        Returns:
            The finding; one that cannot be saved has a note that says so.
        """
        try:
            self.save(discovery)
        except UsageError as error:
            note = f"its case could not be saved for the replay command: {error}"
            return replace(discovery, finding=replace(discovery.finding, notes=(*discovery.finding.notes, note)))
        return discovery

    def save(self, discovery: Discovery) -> Path:
        """Keep a finding for ``kcheck replay``.

        Returns:
            The file.

        Raises:
            UsageError: It cannot be written.
        """
        path = self._place(discovery)
        data = {
            "schema": FINDING_SCHEMA,
            "target": discovery.spec,
            "fingerprint": discovery.fingerprint,
            "finding": discovery.finding.to_json(),
            "case": case_to_json(discovery.case),
        } | ({"tool": discovery.tool} if discovery.tool else {})
        write_json(path, data)
        self._prune(path)
        return path

    def _prune(self, saved: Path) -> None:
        """Remove the oldest findings where there are too many, of how many runs ever; `saved` stays."""
        left = MOST_FINDING_BYTES
        for number, (_, size, path) in enumerate(sorted(_files(saved.parent), reverse=True)):
            left -= size
            if path != saved and (number >= MOST_FINDINGS or left < 0):
                with contextlib.suppress(OSError):
                    path.unlink()

    def saved(self, discovery: Discovery) -> SavedCase | None:
        """What is saved of a finding, by this run or an earlier one; None if nothing that can be read."""
        try:
            return read_case(self._place(discovery))
        except UsageError:
            return None

    def _place(self, discovery: Discovery) -> Path:
        """The finding's file. The same kernel, copied, has the same fingerprint in targets of one name."""
        for number in itertools.count(1):
            suffix = f"-{number}" if number > 1 else ""
            path = self.root / "findings" / f"{discovery.saved_as}{suffix}.json"
            if not path.exists() or _peek(path).spec in ("", discovery.spec):
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
            matches = self._narrowed(matches, name, spec)
        if len(matches) == 1:
            return read_case(self.root / "findings" / f"{matches[0]}.json")
        problem = f"several findings start with {name!r}" if matches else f"no finding or file {name!r}"
        listed = f"; saved findings are {', '.join(known[:8])}" if known else f"; {self.root} holds no findings"
        raise UsageError(problem + listed)

    def _narrowed(self, stems: list[str], name: str, spec: str) -> list[str]:
        """Of several files those of the target; of these the one of that very name, or what no sanitizer has shown."""
        of_target = [stem for stem in stems if self._peek(stem).spec == spec] or stems
        exact = [stem for stem in of_target if stem == name]
        return exact or [stem for stem in of_target if not self._peek(stem).tool] or of_target

    def _peek(self, stem: str) -> SavedCase:
        return _peek(self.root / "findings" / f"{stem}.json")


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Age in seconds since the epoch, size in bytes, and path of each file."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another run has removed it
            known = path.stat()
            yield known.st_mtime, known.st_size, path


def _peek(path: Path) -> SavedCase:
    """A finding's file, an empty case if it cannot be read."""
    try:
        return read_case(path)
    except UsageError:
        return SavedCase("", Case())


def write_json(path: Path, data: Any) -> None:
    """Write a JSON document so that a reader sees all of it or nothing.

    Raises:
        UsageError: The file cannot be written.
    """
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, prefix=f".{path.name}.") as file:
            part = Path(file.name)
            json.dump(data, file, indent=1, allow_nan=False, default=str)
        part.chmod(0o644)
        part.replace(path)
    except OSError as error:
        if part is not None:
            part.unlink(missing_ok=True)  # it takes the last of the room
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
