"""Where kernels run: the CPU interpreter, or a GPU."""

from __future__ import annotations

from kcheck.backend_spec import DEFAULT_ENGINE, VIEWCHECK, BackendSpec
from kcheck.errors import UsageError
from kcheck.gpus import DEFAULT
from kcheck.worker.backends.base import Backend

BACKENDS = ("interpret", "cuda")
MAX_PROGRAMS = 2000  # of one launch in a view check: some seconds


def open_backend(name: str) -> Backend:
    """Import and make a backend. The device itself is not touched yet: workers are forked from here.

    Args:
        name: ``interpret``, ``viewcheck`` or ``cuda``, with its options; see `kcheck.backend_spec`.

    Raises:
        UsageError: There is no backend of that name.
        CouldNotCheck: The machine has no device for it.
        UnsupportedVersion: The installed Triton is not one that it knows.
    """
    import torch

    torch.set_num_threads(1)  # a fork does not carry OpenMP's threads along; a worker would wait for them for ever
    spec = BackendSpec.parse(name)
    if spec.name in ("interpret", VIEWCHECK) and not spec.on_gpu:
        from kcheck.worker.backends.interpret import InterpretBackend

        most = MAX_PROGRAMS if spec.name == VIEWCHECK else None
        engine = spec.engine or DEFAULT_ENGINE
        return InterpretBackend(most, spec.pretend or DEFAULT, spec.all_configs, spec.name, engine)
    if spec.name == "cuda" or spec.on_gpu:
        from kcheck.worker.backends.cuda import CudaBackend

        return CudaBackend(spec.name, view_check=spec.checked or spec.on_gpu)
    raise UsageError(f"there is no backend {name!r}; use one of {', '.join(BACKENDS)}")
