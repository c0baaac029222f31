"""Source frames of records: the user's own line of a launch, and the text of lines."""

from __future__ import annotations

import ast
import linecache
import os
import re
from functools import lru_cache
from pathlib import Path

import kcheck
from kcheck.findings import SourceFrame
from kcheck.sanitizer.records import Frame, Record

_MAX_SOURCE = 8 << 20  # bytes
_OWN = str(Path(kcheck.__file__).parent) + "/"
_BUILTIN_TARGETS = _OWN + "targets/"
# What stands between the user's line and the driver: Triton, torch and Python's own modules.
_MACHINERY = re.compile(
    r"^<|/triton/(runtime|backends|compiler|language|knobs)\b|/(site|dist)-packages/(torch|triton|cuda)/"
    r"|/lib/python3\.\d+/(?!(site|dist)-packages/)"
)


def launched_at(record: Record) -> SourceFrame | None:
    """The innermost Python frame of the launch, or of the failed call, that is the user's own."""
    return next((source_frame(frame) for frame in record.python_frames if not _is_machinery(frame.file)), None)


def caller_of_api(record: Record) -> Frame | None:
    """The host function that made the CUDA call, of a program without Python frames."""
    names = [frame.function for frame in record.host_frames]
    if not record.api or record.api not in names:
        return None
    return next((frame for frame in record.host_frames[names.index(record.api) + 1 :] if frame.function), None)


def _is_machinery(file: str) -> bool:
    return bool(_MACHINERY.search(file)) or (file.startswith(_OWN) and not file.startswith(_BUILTIN_TARGETS))


def source_frame(frame: Frame) -> SourceFrame:
    """A frame with the text of its line, ``""`` where the file is not here."""
    lines = _lines(frame.file)
    source = lines[frame.line - 1].strip() if 1 <= frame.line <= len(lines) else ""
    return SourceFrame(frame.file, frame.line, frame.function, source)


def _lines(file: str) -> list[str]:
    """Lines of a source file; none of anything else that a report may name, such as a device or a pipe."""
    is_source = os.path.isfile(file) and os.path.getsize(file) <= _MAX_SOURCE
    return linecache.getlines(file) if is_source else []


def occurrence(file: str, line: int) -> int:
    """How many earlier lines of the same Python function read the same; 0 for other languages."""
    lines = _lines(file) if file.endswith(".py") else []
    if not 1 <= line <= len(lines):
        return 0
    first = max((start for start, end in _functions(file) if start <= line <= end), default=line)
    text = lines[line - 1].strip()
    return sum(earlier.strip() == text for earlier in lines[first - 1 : line - 1])


@lru_cache(maxsize=64)
def _functions(file: str) -> tuple[tuple[int, int], ...]:
    """First line, decorators included, and last line of every function of a Python file."""
    try:
        tree = ast.parse("".join(_lines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return tuple(
        (min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in found
    )
