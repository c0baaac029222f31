"""Source frames of the code under test: never Triton's, numpy's or this package's own."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType, TracebackType

import numpy as np

from kcheck.worker.backends.base import Frame
from kcheck.worker.backends.interpret.triton_seams import triton

_FOREIGN = tuple(os.path.dirname(os.path.abspath(path)) + os.sep for path in (__file__, triton.__file__, np.__file__))
_KNOWN = 4096  # code objects kept
LOOP = "run_programs"  # the function that calls the kernel, once per program: frames above it are not the kernel's


def is_foreign(code: CodeType) -> bool:
    """Whether code is Triton's, numpy's or this package's."""
    return code.co_filename.startswith(_FOREIGN) or code.co_filename.startswith("<frozen")


def _is_loop(code: CodeType) -> bool:
    return code.co_name == LOOP and code.co_filename.startswith(_FOREIGN[0])


def _frame(code: CodeType, line: int) -> Frame:
    source = linecache.getline(code.co_filename, line).strip()
    return Frame(file=code.co_filename, line=line, function=code.co_name, source=source)


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def kernel_chain() -> tuple[tuple[Frame, ...], int]:
    """Frames from the kernel's own line down to the line of the access that is being made, and its occurrence."""
    found: list[FrameType] = []
    for frame in _callers(sys._getframe(1)):
        if _is_loop(frame.f_code):
            break
        if not is_foreign(frame.f_code):
            found.append(frame)
    chain = tuple(_frame(frame.f_code, frame.f_lineno) for frame in reversed(found))
    occurrence = line_occurrence(found[0].f_code, found[0].f_lineno) if found else 0
    return chain, occurrence


_known: dict[int, tuple[CodeType, bool]] = {}  # by the id of a code object, which is held: whether it is foreign


def access_frame() -> FrameType | None:
    """The frame of the access that is being made; cheap."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        known = _known.get(id(code))
        if known is None:
            if len(_known) >= _KNOWN:
                _known.clear()
            known = _known[id(code)] = (code, is_foreign(code))
        if not known[1]:
            return frame
        frame = frame.f_back
    return None


def access_site() -> tuple[str, int]:
    """File and line of the access that is being made; cheap."""
    frame = access_frame()
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def frame_at(code: CodeType, instruction: int) -> Frame:
    """The line of an instruction.

    Args:
        code: Of the function.
        instruction: Its ``f_lasti`` while the instruction ran.
    """
    lines = [line for start, _, line in code.co_lines() if start <= instruction and line is not None]
    return _frame(code, lines[-1] if lines else code.co_firstlineno)


def launch_frame() -> Frame:
    """The line that launches the kernel: the innermost one that is neither Triton's nor this package's."""
    for frame in _callers(sys._getframe(1)):
        if not is_foreign(frame.f_code):
            return _frame(frame.f_code, frame.f_lineno)
    return Frame(file="", line=0, function="", source="")


def raised_in(traceback: TracebackType | None) -> Frame | None:
    """The kernel's innermost line on the way to an exception."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_foreign(code):
            found = _frame(code, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


@lru_cache(maxsize=4096)
def line_occurrence(code: CodeType, line: int) -> int:
    """How many earlier lines of the function read the same."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return 0
    stripped = [text.strip() for text in lines]
    position = line - first
    if not 0 <= position < len(stripped):
        return 0
    return stripped[:position].count(stripped[position])
