"""Watching launches on a GPU, and telling a lost CUDA context from everything else that may go wrong."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

from kcheck.backend_spec import VIEWCHECK
from kcheck.errors import CouldNotCheck
from kcheck.findings import Kind
from kcheck.origin import is_user_code
from kcheck.worker.backends.base import (
    PLAIN,
    Backend,
    CompileFailed,
    Conditions,
    ContextLost,
    Frame,
    KernelStopped,
    Launch,
    OutOfMemory,
    ProgramOrder,
    Region,
    Watch,
)
from kcheck.worker.backends.cuda import triton_seams
from kcheck.worker.backends.cuda.compiles import CompileLog
from kcheck.worker.backends.cuda.viewcheck.compiled import CheckedKernels
from kcheck.worker.backends.cuda.viewcheck.tool import Launches, checked

# Parts of the messages of CUDA errors after which a context is lost (the CUDA driver API's error descriptions,
# https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html).
_FATAL = {
    "illegal memory access": (Kind.CRASH, "an illegal memory access"),
    "misaligned address": (Kind.MISALIGNED_ACCESS, "an access to a misaligned address"),
    "device-side assert": (Kind.DEVICE_ASSERT, "a failed device assert"),
    "unspecified launch failure": (Kind.CRASH, "a launch failure of unknown cause"),
    "illegal instruction": (Kind.CRASH, "an illegal instruction"),
    "invalid program counter": (Kind.CRASH, "a jump to an invalid address"),
    "hardware stack error": (Kind.CRASH, "a stack error"),
    "invalid address space": (Kind.CRASH, "an access to the wrong address space"),
}


class CudaBackend(Backend):
    """Runs kernels compiled, on the current CUDA device.

    Args:
        name: What it was asked for as.
        view_check: Compile kernels with checks of every access.

    Raises:
        CouldNotCheck: There is no such device.
        UnsupportedVersion: The installed Triton is not one that it knows.
    """

    device = "cuda"

    def __init__(self, name: str = "cuda", *, view_check: bool = False) -> None:
        if not torch.cuda.is_available():
            raise CouldNotCheck(
                f"torch {torch.__version__} sees no CUDA GPU here; use --backend interpret, or see kcheck doctor"
            )
        triton_seams.check()
        if view_check:
            triton_seams.check_compiling()
        self.name = name
        self._compiles = CompileLog()
        self._view_check = CheckedKernels(state=name == VIEWCHECK) if view_check else None

    @contextmanager
    def watch(
        self,
        regions: Sequence[Region],
        *,
        spans: Sequence[tuple[int, int]] = (),
        decoy_seed: int = 0,
        order: ProgramOrder = "forward",
        conditions: Conditions = PLAIN,
    ) -> Iterator[Watch]:
        """Observe every launch until the context ends; see `kcheck.worker.backends.base.Backend.watch`.

        Raises:
            KernelStopped: The kernel, or the device, failed; its subclass says how.
        """
        watch = Watch()
        jit_function, knobs = triton_seams.jit_function(), triton_seams.compilation()
        plain_run, listener = jit_function.run, knobs.listener
        compile_errors = triton_seams.compile_errors()

        def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            if warmup:
                return plain_run(self, *args, grid=grid, warmup=warmup, **kwargs)
            frame = _launching_frame()
            launch = Launch(self.__name__, (0, 0, 0), 0, frame)
            watch.launches.append(launch)
            try:
                if check is None:
                    return plain_run(self, *args, grid=_noting(grid, launch), warmup=False, **kwargs)
                compiled = partial(plain_run, self, *args, grid=_noting(grid, launch), **kwargs)
                return check.launch(self, (*args, *kwargs.values()), compiled)
            except compile_errors as error:
                raise CompileFailed(f"kernel {launch.kernel} does not compile: {_first_line(error)}", frame) from error

        checking: AbstractContextManager[Launches | None] = nullcontext()
        if self._view_check is not None:
            checking = checked(self._view_check, watch, regions, spans, conditions)
        try:
            with checking as check:
                jit_function.run, knobs.listener = run, self._compiles
                yield watch
                torch.cuda.synchronize()  # errors of a kernel come late
        except RuntimeError as error:
            known = classified(error, watch)
            if known is None:
                raise
            raise known from error
        finally:
            jit_function.run, knobs.listener = plain_run, listener
            watch.compiles += self._compiles.take()


def classified(error: BaseException, watch: Watch) -> KernelStopped | None:
    """A CUDA error in kcheck's words; None if it is no such error."""
    text = str(error)
    if isinstance(error, torch.OutOfMemoryError) or "out of memory" in text:
        return OutOfMemory(_first_line(error))
    last = watch.launches[-1] if watch.launches else None
    for part, (kind, says) in _FATAL.items():
        if part in text.lower():
            who = f"kernel {last.kernel}" if last else "the target"
            return ContextLost(kind, f"{who} made {says}; the CUDA context is lost", last.frame if last else None)
    return None


def _noting(grid: Any, launch: Launch) -> Any:
    """The grid, noted when Triton asks for it."""

    def note(size: Any) -> Any:
        dims = (*(int(n) for n in size), 1, 1)[:3]
        launch.grid = (dims[0], dims[1], dims[2])
        launch.programs = dims[0] * dims[1] * dims[2]
        return size

    if callable(grid):
        return lambda meta: note(grid(meta))
    return note(grid)


def _launching_frame() -> Frame:
    """The user's line that launches."""
    frame = inspect.currentframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if is_user_code(file):
            source = linecache.getline(file, frame.f_lineno).strip()
            return Frame(file, frame.f_lineno, frame.f_code.co_name, source)
        frame = frame.f_back
    return Frame("", 0, "", "")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
