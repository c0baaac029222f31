"""A stand-in for a GPU: wrappers that insist on one (``assert x.is_cuda``) run on the CPU as they are.

While it is entered, the tensors of a case are on ``cuda:0``, and questions about that GPU are answered as one
well-known model would (`kcheck.gpus`). A question without an answer is could-not-check, with the name of the call::

    @st.composite
    def cases(draw):
        return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("n", max_value=99)),))))

    @kcheck.target(cases=cases(), oracle=lambda x: x + 1)
    def increment(x):
        assert x.is_cuda and torch.cuda.get_device_capability(x.device) >= (8, 0)
        with torch.cuda.device(x.device):
            return x + torch.ones(1, device="cuda")
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType

from kcheck.gpus import Gpu
from kcheck.origin import is_user_code
from kcheck.worker.backends.base import Frame, KernelStopped, Unsupported
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.pretend_cuda import cuda_patches
from kcheck.worker.backends.interpret.pretend_driver import Driver
from kcheck.worker.backends.interpret.pretend_tensors import PretendedTensors, Unanswered
from kcheck.worker.backends.interpret.triton_seams import GPUTarget, triton_driver

# What torch, Triton and the system say where there is no GPU after all, and of calls that only a GPU can serve.
_NO_GPU = (
    "Torch not compiled with CUDA",
    "PyTorch is not linked with support for cuda",
    "Found no NVIDIA driver",
    "active drivers",
    "with arguments from the 'CPU' backend",
    "compiled without CUDA support",
    "type torch.cuda.",  # legacy types of tensors
    "'_OpNamespace'",  # operators of an extension that is not loaded
    "'torch._C' has no attribute '_cuda",
    "libcuda",
    "libnv",
    "nvidia-smi",
)


@contextmanager
def pretending(gpu: Gpu) -> Iterator[None]:
    """Stand in for a GPU until the context ends.

    Raises:
        Unsupported: Something that only a real GPU has was asked for.
    """
    unanswered, patches = _prepared(gpu)
    saved = dict(vars(triton_driver))
    patches.apply()
    triton_driver.set_active(Driver(gpu, unanswered, GPUTarget))
    try:
        with PretendedTensors(unanswered):
            yield
    except Exception as error:
        meant = _meant(error)
        if meant is error:
            raise
        raise meant from None
    finally:
        vars(triton_driver).clear()
        vars(triton_driver).update(saved)
        patches.withdraw()


def _meant(error: Exception) -> Exception:
    """The error, or `Unsupported` where it, or what led to it, says that there is no GPU or none of its packages."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        seen.append(cause)
        if isinstance(cause, KernelStopped):
            return cause
        if isinstance(cause, ImportError) or any(text in str(cause) for text in _NO_GPU):
            frame = _innermost(traceback.walk_tb(cause.__traceback__))
            where = f"`{frame.source}`" if frame else "the wrapper"
            says = (str(cause).strip() or type(cause).__name__).splitlines()[0]
            return Unsupported(f"{where} needs what a machine with a GPU has ({says}); use --backend cuda", frame)
        cause = cause.__cause__ or cause.__context__
    return error


@cache
def _prepared(gpu: Gpu) -> tuple[Unanswered, PatchSet]:
    def unanswered(call: str) -> Unsupported:
        reason = f"{call} has no answer on the CPU, which stands in for {gpu.arch} ({gpu.name}); use --backend cuda"
        return Unsupported(reason, _innermost(reversed(list(traceback.walk_stack(sys._getframe(1))))))

    return unanswered, cuda_patches(gpu, unanswered)


def _innermost(stack: Iterable[tuple[FrameType, int]]) -> Frame | None:
    """The innermost frame of user code; the stack is given from the outside in."""
    found = None
    for frame, line in stack:
        file = frame.f_code.co_filename
        if is_user_code(file):
            found = Frame(file, line, frame.f_code.co_name, linecache.getline(file, line).strip())
    return found
