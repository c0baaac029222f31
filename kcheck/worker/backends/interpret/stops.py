"""Stopping in a kernel: at an access that the view check refuses, or where a program begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kcheck.worker.backends.interpret import frames, launch
from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK, Argument
from kcheck.worker.backends.interpret.faults import FaultLog, Program
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import builder

OnFault = Callable[[FrameType, Program, str], None]
OnProgram = Callable[[str, Program], None]


@contextmanager
def stopping(on_fault: OnFault, on_program: OnProgram) -> Iterator[None]:
    """Call back while kernels run.

    Args:
        on_fault: Called at each refused access with the kernel's frame, the program, and what it does, as a sentence.
        on_program: Called with the kernel's name before each program.
    """
    patches = PatchSet()
    for name in ("stray", "read_only"):
        patches.put(FaultLog, name, _stopping(getattr(FaultLog, name), on_fault))
    patches.put(launch, "run_programs", _announcing(launch.run_programs, on_program))
    patches.apply()
    try:
        yield
    finally:
        patches.withdraw()


def _stopping(record: Callable[..., None], on_fault: OnFault) -> Callable[..., None]:
    def stopped(self: FaultLog, access: str, pointers: Any, bad: Any, argument: Argument | None, *width: int) -> None:
        record(self, access, pointers, bad, argument, *width)
        frame = _kernel_frame()
        if frame is not None:
            verb = {"read": "reads", "write": "writes", "atomic": "updates"}[access]
            on_fault(frame, _program(), f"{self.kernel} {verb} {_place(argument, pointers[bad].flat[0])}")

    return stopped


def _place(argument: Argument | None, pointer: Any) -> str:
    if argument is None:
        return "through a pointer that leads nowhere"
    index, between = argument.shown.locate(int(pointer & ADDRESS_MASK))
    name = f"{argument.name}[{', '.join(map(str, index))}]"
    return f"between the elements of {argument.name}, behind {name}" if between else name


def _program() -> Program:
    x, y, z = builder.grid_idx
    return (x, y, z)


def _kernel_frame() -> FrameType | None:
    """The innermost frame of the code under test."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frames.is_foreign(frame.f_code):
        frame = frame.f_back
    return frame


def _announcing(run: Callable[..., None], on_program: OnProgram) -> Callable[..., None]:
    def run_programs(function: Callable[..., Any], arguments: Any, programs: Any, started: Any, *rest: Any) -> None:
        def announced(**given: Any) -> Any:
            on_program(started.kernel, _program())
            return function(**given)

        run(announced, arguments, programs, started, *rest)

    return run_programs
