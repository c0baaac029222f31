"""What only compute-sanitizer's log says: totals, nearest allocations, and why it checked nothing.

Lines as observed with 2025.2.1, 2025.3.1 and 2026.4.0, leaks and device refusals as the manual has them:
https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

_PREFIX = "========="
_LINE_BYTES = 1 << 16  # longer lines are read in pieces
_MAX_NEAREST = 10_000  # addresses whose nearest allocation is kept
_MAX_QUOTED = 8  # sentences of the tool that are quoted

_ERRORS = re.compile(r"ERROR SUMMARY: ([\d,]+) errors?$")
_UNLISTED = re.compile(r"SUMMARY: ([\d,]+) \w+ (?:were|was) not printed")
_RACES = re.compile(r"RACECHECK SUMMARY: ([\d,]+) hazards? displayed \(([\d,]+) errors?, ([\d,]+) warnings?\)")
_LEAKS = re.compile(r"LEAK SUMMARY: ([\d,]+) bytes? leaked in ([\d,]+) allocations?")
_ADDRESS = re.compile(r"(?:Access to|Address) 0x([0-9a-fA-F]+)\b")
_NEAREST = re.compile(r"the nearest allocation at 0x([0-9a-fA-F]+) of size ([\d,]+) bytes?")
_DEVICE_REPORT = re.compile(r"Error: (?:Race reported|Potential|\()")  # a finding of racecheck, not a refusal

# The tool's line, and the cause as a sentence; the first that is in a log says the most.
_REFUSALS = (
    (
        "Unable to find injection library",
        "compute-sanitizer does not find its own libraries; its installation is not complete.",
    ),
    (
        "Target application doesn't exist",
        "compute-sanitizer could not start the worker: the Python interpreter is not a program it can run.",
    ),
    ("Device not supported", "compute-sanitizer does not support this GPU."),
    ("Internal Sanitizer Error", "compute-sanitizer met an internal error."),
    (
        # 2026.4.0 itself crashes every program where libcuda.so.1 is missing (observed: SIGSEGV after looking for it).
        "process didn't terminate successfully",
        "the worker died from a signal before compute-sanitizer saw a CUDA call, as every program does under it on a "
        "machine without a CUDA driver (libcuda.so.1).",
    ),
    (
        "couldn't find exit code",
        "compute-sanitizer could not start the worker, as where its installation lacks TreeLauncherSubreaper.",
    ),
    (
        "Target application terminated before first instrumented API call",
        "the worker made no CUDA call, as on a machine without a CUDA GPU, so compute-sanitizer checked nothing.",
    ),
    (
        "Target application terminated before first instrumented kernel launch",
        "the worker launched no kernel, so compute-sanitizer checked nothing.",
    ),
    ("Results might be incorrect", "compute-sanitizer says that its own results might be incorrect."),
    ("errors were skipped", "compute-sanitizer lost errors, because its buffer ran over."),
)


@dataclass(frozen=True, slots=True)
class Nearest:
    """The allocation that the tool holds for the nearest to a faulty address.

    Attributes:
        address: Where it begins.
        nbytes: Its size.
    """

    address: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log says.

    Attributes:
        total: Errors counted, listed or not. None: there is no summary line.
        warnings: racecheck: how many of them are warnings.
        leaked_bytes: Bytes that were never freed, where leaks were asked for.
        leaks: Allocations that were never freed.
        refusals: Why nothing, or not everything, was checked; a sentence each, the most telling one first.
        quotes: Error lines of the tool that kcheck does not know, word for word.
        nearest: Faulty address → its nearest allocation.
    """

    total: int | None = None
    warnings: int = 0
    leaked_bytes: int = 0
    leaks: int = 0
    refusals: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    nearest: Mapping[int, Nearest] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """The tool came to its end: the summary line is its last act."""
        return self.total is not None


class _Reader:
    """Collects the facts of one log, line by line."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.warnings = self.leaked_bytes = self.leaks = 0
        self.seen: set[str] = set()
        self.quotes: list[str] = []
        self.nearest: dict[int, Nearest] = {}
        self._address: int | None = None

    def take(self, line: str) -> None:
        """Read one line, without the tool's prefix."""
        if match := _ERRORS.search(line):
            self.total = (self.total or 0) + _number(match[1])
        elif match := _RACES.search(line):
            self.total = (self.total or 0) + _number(match[1])
            self.warnings += _number(match[3])
        elif (match := _UNLISTED.search(line)) and line.startswith("RACECHECK"):
            self.total = (self.total or 0) + _number(match[1])  # it counts what is displayed, memcheck counts all
        elif match := _LEAKS.search(line):
            self.leaked_bytes += _number(match[1])
            self.leaks += _number(match[2])
        elif match := _NEAREST.search(line):
            if self._address is not None and len(self.nearest) < _MAX_NEAREST:
                self.nearest.setdefault(self._address, Nearest(int(match[1], 16), _number(match[2])))
        elif match := _ADDRESS.match(line):
            self._address = int(match[1], 16)
        else:
            self._complaint(line)

    def _complaint(self, line: str) -> None:
        known = next((words for words, _ in _REFUSALS if words in line), None)
        if known is not None:
            self.seen.add(known)
        elif line.startswith("Error: ") and not _DEVICE_REPORT.match(line) and len(self.quotes) < _MAX_QUOTED:
            self.quotes.append(line)


def read_log(path: Path) -> LogSummary:
    """Read a log, a line at a time; a file that is missing has nothing to say.

    Args:
        path: What ``--log-file`` named. Lines of other programs in it are passed over.
    """
    reader = _Reader()
    for line in _lines(path):
        if line.startswith(_PREFIX):
            reader.take(line.removeprefix(_PREFIX).strip())
    return LogSummary(
        total=reader.total,
        warnings=reader.warnings,
        leaked_bytes=reader.leaked_bytes,
        leaks=reader.leaks,
        refusals=tuple(sentence for words, sentence in _REFUSALS if words in reader.seen),
        quotes=tuple(reader.quotes),
        nearest=MappingProxyType(reader.nearest),
    )


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            while line := file.readline(_LINE_BYTES):
                yield line
    except OSError:
        return


def _number(text: str) -> int:
    return int(text.replace(",", "")[:20])
