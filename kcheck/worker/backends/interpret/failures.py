"""What an exception inside a kernel means: a reason to stop, and which one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kcheck.worker.backends.base import CompileFailed, Frame, KernelStopped, Unsupported
from kcheck.worker.backends.interpret import binding, frames


@contextmanager
def stopping(kernel: Any, values: dict[str, Any]) -> Iterator[None]:
    """Turn what a kernel raises into a `KernelStopped`. No Python of the target itself may run in here.

    Args:
        kernel: The ``JITFunction``.
        values: Its arguments, from `binding.bind`.
    """
    try:
        yield
    except KernelStopped:
        raise
    except Exception as error:
        frame = frames.raised_in(error.__traceback__)
        name = kernel.fn.__name__
        constant = _converted_constant(error, frame, kernel, values)
        if constant:
            reason = (
                f"kernel {name} does not compile when {constant} is 1: Triton makes it a constant, which has no .to"
            )
            raise CompileFailed(reason, frame) from error
        refused = _refused_anywhere(error)
        if refused:
            raise CompileFailed(f"kernel {name} does not compile: {refused}", frame) from error
        what = f"`{frame.source}`" if frame else "a feature"
        cause = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        reason = f"kernel {name} uses {what}, which the CPU interpreter cannot run ({cause})"
        raise Unsupported(reason, frame) from error


def _refused_anywhere(error: Exception) -> str:
    """Why the compiler refuses the kernel too, for what is certain to be so; ``""`` otherwise."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return f"module {error.obj.__name__} has no {error.name}"
    text = str(error.__cause__ or error)
    return text if "range must be a power of 2" in text else ""


def _converted_constant(error: Exception, frame: Frame | None, kernel: Any, values: dict[str, Any]) -> str:
    """The argument of 1 whose ``.to`` the kernel itself calls: a compile error on a GPU, too."""
    if not isinstance(error, AttributeError) or error.name != "to" or type(error.obj) is not int or frame is None:
        return ""
    if frame.function != kernel.fn.__name__:
        return ""
    constants = [one.name for one in kernel.params if binding.is_constant_one(one, values[one.name])]
    return next((name for name in constants if f"{name}.to(" in frame.source), "")
