"""What a lost worker leaves: how it ended, where it was, and what that makes of its case."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Kind
from kcheck.origin import is_user_code
from kcheck.protocol import Judgement

MOST_LOG_BYTES = 1 << 26  # what user code prints must not fill the disk
_STACK_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
Place = tuple[str, int]  # file and line; ``("", 0)``: not known


class Lost(Exception):
    """A worker is gone.

    Args:
        code: Its exit code; negative: the signal that killed it.
        in_oracle: It was running the oracle.
    """

    def __init__(self, code: int, *, in_oracle: bool) -> None:
        self.signal_number = -code if code < 0 else 0
        self.code = code
        self.in_oracle = in_oracle

    def __str__(self) -> str:
        if self.signal_number:
            return f"it was killed by {signal.Signals(self.signal_number).name}"
        return f"it exited with code {self.code}"


@dataclass(frozen=True, slots=True)
class WorkerLog:
    """What workers print, and the stacks that they write when they crash. The target may delete it.

    Attributes:
        path: The file.
        start: Where this run begins in it; what is before is of earlier runs.
    """

    path: Path
    start: int

    def size(self) -> int:
        """Bytes in the log; one that has grown too large begins anew."""
        try:
            size = self.path.stat().st_size
            if size > MOST_LOG_BYTES:
                os.truncate(self.path, 0)  # who writes to it appends
                size = 0
        except OSError:
            return 0
        return size

    def stack(self, mark: int) -> Place:
        """Innermost frame of user code in what was written since the log had `mark` bytes."""
        try:
            with self.path.open("rb") as log:
                log.seek(mark)
                text = log.read(1 << 16).decode(errors="replace")
        except OSError:
            return "", 0
        for found in _STACK_LINE.finditer(text):
            if is_user_code(found["file"]):
                return found["file"], int(found["line"])
        return "", 0

    def last_line(self) -> str:
        """The last line of this run, ``""`` if there is none."""
        try:
            text = self.path.read_bytes()[self.start :].decode(errors="replace")
        except OSError:
            return ""
        return "".join(text.strip().splitlines()[-1:])


def in_oracle(pid: int) -> bool:
    """Whether a worker, alive or dead and not yet waited for, was last running the oracle (`worker.doing`)."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "kcheck oracle"
    except OSError:
        return False


def timed_out(place: Place, seconds: float, *, in_oracle: bool) -> Judgement:
    """What is to be said of a case that a worker was killed over.

    Args:
        place: Where it was.
        seconds: What the case was given.
        in_oracle: It was running the oracle.
    """
    where = f"; it was at {place[0]}:{place[1]}" if place[0] else ""
    if in_oracle:
        return Judgement(CaseVerdict.COULD_NOT_CHECK, f"the oracle did not end within {seconds:.3g} s{where}")
    return _found(Kind.TIMEOUT, f"the case did not end within {seconds:.3g} s{where}", place)


def crashed(place: Place, lost: Lost) -> Judgement:
    """What is to be said of a case that a worker died over.

    Args:
        place: Where it was.
        lost: How it ended.
    """
    where = f" at {place[0]}:{place[1]}" if place[0] else ""
    if lost.in_oracle:
        return Judgement(CaseVerdict.COULD_NOT_CHECK, f"the worker process died in the oracle{where}: {lost}")
    return _found(Kind.CRASH, f"the worker process died{where}: {lost}", place)


def _found(kind: Kind, message: str, place: Place) -> Judgement:
    file, line = place
    finding = Finding(kind=kind, message=message, file=file, line=line, source=_source_line(file, line))
    return Judgement(CaseVerdict.FINDINGS, findings=(finding,))


def _source_line(file: str, line: int) -> str:
    try:
        return Path(file).read_text().splitlines()[line - 1].strip()
    except (OSError, IndexError, UnicodeDecodeError):
        return ""
