"""Where kernels run: the CPU interpreter, or a GPU."""

from __future__ import annotations

from kcheck.errors import UsageError
from kcheck.worker.backends.base import Backend

BACKENDS = ("interpret",)


def open_backend(name: str) -> Backend:
    """Import and make a backend.

    Args:
        name: ``interpret``.

    Raises:
        UsageError: There is no backend of that name.
        UnsupportedVersion: The installed Triton is not one that it knows.
    """
    if name != "interpret":
        raise UsageError(f"there is no backend {name!r}; use one of {', '.join(BACKENDS)}")
    import torch

    from kcheck.worker.backends.interpret import InterpretBackend

    torch.set_num_threads(1)  # a fork does not carry OpenMP's threads along; a worker would wait for them for ever
    return InterpretBackend()
