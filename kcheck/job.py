"""What the supervisor and a worker under compute-sanitizer say to each other: two files.

The *job* holds a target's name and cases. *Progress* is one JSON object a line, written as things happen: whatever
ends the process, the lines before it stand. No sockets, no fork: both are the tool's business too.
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kcheck.case import Case
from kcheck.document import case_from_json, case_to_json
from kcheck.errors import InvalidDocument

JOB_SCHEMA = "kcheck.job/1"


@dataclass(frozen=True, slots=True)
class Job:
    """Cases of one target for one process.

    Attributes:
        backend: Where kernels run.
        spec: Name of the target.
        cases: What to run, in order.
        unwritten: Outputs and scratch stay as the device gave them, instead of holding wild values.
        leaks: Give everything back and destroy the CUDA context at the end: leaks are counted then.
    """

    backend: str
    spec: str
    cases: tuple[Case, ...]
    unwritten: bool = False
    leaks: bool = False

    def write(self, path: Path) -> None:
        """Write the job file."""
        cases = [case_to_json(case) for case in self.cases]
        data = {"schema": JOB_SCHEMA, "backend": self.backend, "target": self.spec, "cases": cases}
        path.write_text(json.dumps(data | {"unwritten": self.unwritten, "leaks": self.leaks}))

    @staticmethod
    def read(path: Path) -> Job:
        """Read the job file.

        Raises:
            InvalidDocument: It is none.
        """
        try:
            data = json.loads(path.read_text())
            if data["schema"] != JOB_SCHEMA:
                raise InvalidDocument("schema", f"is {data['schema']!r}; this kcheck reads {JOB_SCHEMA!r}")
            cases = tuple(case_from_json(case) for case in data["cases"])
            return Job(data["backend"], data["target"], cases, data["unwritten"], data["leaks"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidDocument(str(path), f"is not a job: {error}") from None


class Status(enum.StrEnum):
    """How far a case came."""

    RUNNING = "running"
    DONE = "done"
    REJECTED = "rejected"  # the target declined it before any launch
    UNCHECKED = "unchecked"  # it could not be run, or the target raised
    LOST = "lost"  # it cost the process its CUDA context


@dataclass(slots=True)
class CaseProgress:
    """What is known of one case.

    Attributes:
        status: How far it came.
        reason: Why it is not DONE, a sentence; a rejection is quoted.
        addresses: Device address by backing, once it is placed.
        launches: Launches by kernel.
    """

    status: Status = Status.RUNNING
    reason: str = ""
    addresses: Mapping[str, int] = field(default_factory=dict)
    launches: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Progress:
    """What a worker wrote.

    Attributes:
        loaded: The target was imported.
        cases: By position in the job, in the order in which they started.
        ended: The end mark: the worker came to its own end, be it for a lost context.
        problem: Why it could not begin, a sentence.
    """

    loaded: bool = False
    cases: dict[int, CaseProgress] = field(default_factory=dict)
    ended: bool = False
    problem: str = ""


class ProgressFile:
    """The worker's side of the progress file.

    Args:
        path: Where it is; made anew.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)

    def loaded(self) -> None:
        """The target was imported."""
        self._write("loaded")

    def started(self, case: int) -> None:
        """A case begins."""
        self._write("started", case=case)

    def placed(self, case: int, addresses: Mapping[str, int]) -> None:
        """A case's tensors have their memory."""
        self._write("placed", case=case, addresses=dict(addresses))

    def finished(self, case: int, status: Status, reason: str, launches: Mapping[str, int]) -> None:
        """A case is over."""
        self._write("finished", case=case, status=status.value, reason=reason, launches=dict(launches))

    def failed(self, problem: str) -> None:
        """The worker cannot begin."""
        self._write("failed", problem=problem)

    def ended(self) -> None:
        """The worker is at its end."""
        self._write("ended")

    def _write(self, event: str, **data: Any) -> None:
        os.write(self._fd, json.dumps({"event": event} | data).encode() + b"\n")


def read_progress(path: Path) -> Progress:
    """Read a progress file as far as it goes; one that is missing says that nothing happened."""
    progress = Progress()
    for line in _lines(path):
        case = progress.cases.setdefault(line["case"], CaseProgress()) if "case" in line else CaseProgress()
        match line["event"]:
            case "loaded":
                progress.loaded = True
            case "placed":
                case.addresses = line["addresses"]
            case "finished":
                case.status, case.reason = Status(line["status"]), line["reason"]
                case.launches = line["launches"]
            case "failed":
                progress.problem = line["problem"]
            case "ended":
                progress.ended = True
    return progress


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):  # a process that is killed may leave half a line
            yield json.loads(line)
