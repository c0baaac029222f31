"""A case under the debugger: it stops in the kernel, with the target's arguments by name."""

from __future__ import annotations

import bdb
import functools
import pdb
import sys
from collections.abc import Mapping
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any

from kcheck.backend_spec import BackendSpec
from kcheck.case import Case
from kcheck.errors import CouldNotCheck
from kcheck.findings import Finding
from kcheck.target import Target
from kcheck.worker.arena import Arena, dense_values
from kcheck.worker.backends import open_backend
from kcheck.worker.backends.interpret.stops import stopping
from kcheck.worker.host import on_host
from kcheck.worker.run import run_target
from kcheck.worker.sharing import prepared
from kcheck.worker.trial import FIRST

Program = tuple[int, int, int]
_INTERNAL = ("kcheck.worker.*", "triton.*", "numpy.*", "torch.*", "contextlib", "functools")


def debug_case(target: Target, case: Case, backend: str, finding: Finding | None, program: Program | None) -> None:
    """Run a case in this process and stop in its kernel.

    Where the finding is a refused access it stops at such accesses, else at the first line of a program.

    Args:
        target: What to call.
        case: Its arguments.
        backend: The CPU backend, as `kcheck.backend_spec` writes it.
        finding: What the case shows; None if it is not known.
        program: Where to stop. None: wherever an access is refused, or in the first program.

    Raises:
        CouldNotCheck: Nothing came by to stop at, or the target raised before.
    """
    refused = finding is not None and bool(finding.program)
    kernel = finding.kernel if finding is not None else ""
    case = prepared(target, case)
    debugger = _Debugger()

    def on_fault(frame: FrameType, where: Program, sentence: str) -> None:
        if refused and program in (None, where):
            debugger.at_access(frame, f"{sentence}, in program {where}")

    def on_program(name: str, where: Program) -> None:
        if not refused and kernel in ("", name) and where == (program or (0, 0, 0)):
            debugger.at_next_line(f"{name} begins program {where}")

    @functools.wraps(target.function)
    def named(**given: Any) -> Any:
        debugger.names = given
        return target.function(**given)

    runner = open_backend(str(replace(BackendSpec.parse(backend), engine="sequential")))
    contents = on_host(case, dense_values(case))
    try:
        with stopping(on_fault, on_program):
            run = run_target(replace(target, function=named), case, contents, runner, Arena(), style=FIRST)
    finally:
        sys.settrace(None)
    if run.error is not None and not isinstance(run.error, _Left):
        raise CouldNotCheck(f"{target.name} raised {type(run.error).__name__}: {run.error}")
    if not debugger.stops:
        what = "makes no access that is refused" if refused else "never ran"
        raise CouldNotCheck(
            f"program {program or 'of the finding'} {what} in this case; leave --program out to stop anywhere"
        )


class _Left(BaseException):
    """The user left the debugger."""


class _Debugger(pdb.Pdb):
    """Python's debugger, which knows the target's arguments and steps over what interprets the kernel.

    Attributes:
        names: The target's arguments; a kernel's own variables go first.
        stops: How often it has stopped.
    """

    def __init__(self) -> None:
        super().__init__(skip=_INTERNAL, nosigint=True)
        self.names: Mapping[str, Any] = {}
        self.stops = 0
        self.prompt = "(kcheck) "

    def at_access(self, frame: FrameType, sentence: str) -> None:
        """Stop in the middle of a line."""
        self._tell(sentence)
        self.reset()
        self.interaction(frame, None)
        if self.quitting:
            raise _Left
        if getattr(self, "stoplineno", -1) != -1:  # next, step, return: not continue
            self._trace(frame)

    def at_next_line(self, sentence: str) -> None:
        """Stop at the next line of the kernel."""
        self._tell(sentence)
        self.reset()
        self.set_step()
        self._trace(sys._getframe(1))

    def _tell(self, sentence: str) -> None:
        self.stops += 1
        self.message(f"\n{sentence}\narguments of the target: {', '.join(self.names)}")

    def _trace(self, frame: FrameType | None) -> None:
        while frame is not None:
            frame.f_trace = self.trace_dispatch
            self.botframe = frame
            frame = frame.f_back
        sys.settrace(self.trace_dispatch)

    def setup(self, f: FrameType | None, tb: TracebackType | None) -> None:
        """Make the names known where the debugger evaluates."""
        super().setup(f, tb)
        known: Any = self.curframe_locals
        for name, value in self.names.items():
            known.setdefault(name, value)

    def dispatch_line(self, frame: FrameType) -> Any:
        """As in `bdb`, but leaving is no error of the target."""
        try:
            return super().dispatch_line(frame)
        except bdb.BdbQuit:
            raise _Left from None
