"""Where kernels run: the CPU interpreter, or a GPU."""

from __future__ import annotations

from kcheck.errors import UsageError
from kcheck.worker.backends.base import Backend

BACKENDS = ("interpret", "cuda")


def open_backend(name: str) -> Backend:
    """Import and make a backend. The device itself is not touched yet: workers are forked from here.

    Args:
        name: ``interpret`` or ``cuda``.

    Raises:
        UsageError: There is no backend of that name.
        CouldNotCheck: The machine has no device for it.
        UnsupportedVersion: The installed Triton is not one that it knows.
    """
    import torch

    torch.set_num_threads(1)  # a fork does not carry OpenMP's threads along; a worker would wait for them for ever
    if name == "interpret":
        from kcheck.worker.backends.interpret import InterpretBackend

        return InterpretBackend()
    if name == "cuda":
        from kcheck.worker.backends.cuda import CudaBackend

        return CudaBackend()
    raise UsageError(f"there is no backend {name!r}; use one of {', '.join(BACKENDS)}")
