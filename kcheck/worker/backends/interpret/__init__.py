"""The CPU backend: runs ordinary ``@triton.jit`` kernels on CPU tensors and checks every access against the views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from kcheck.backend_spec import DEFAULT_ENGINE
from kcheck.gpus import DEFAULT, gpu_named
from kcheck.worker.backends.base import PLAIN, Backend, Conditions, ProgramOrder, Region, Watch

__all__ = ["InterpretBackend"]


class InterpretBackend(Backend):
    """Runs kernels through Triton's interpreter, repaired, without ``TRITON_INTERPRET``.

    Args:
        max_programs: Run at most about this many programs of a launch, evenly chosen, and no launch after it; outputs
            are then incomplete, which is noted in `Watch.partial`. None runs all.
        pretend: Architecture of the GPU that it stands in for; see `kcheck.gpus`.
        all_configs: A case is judged once for each configuration of its autotuned kernels.
        name: What it was asked for as.
        engine: ``sequential`` runs one program after the other, ``batched`` all of a launch together where it can,
            ``auto`` does that for launches of several programs.

    Raises:
        UsageError: There is no such GPU.
    """

    device = "cpu"

    def __init__(
        self,
        max_programs: int | None = None,
        pretend: str = DEFAULT,
        all_configs: bool = False,
        name: str = "interpret",
        engine: str = DEFAULT_ENGINE,
    ) -> None:
        if max_programs is not None and max_programs < 1:
            raise ValueError(f"max_programs must be at least 1, got {max_programs}")
        self.max_programs = max_programs
        self.name = name
        self.engine = engine
        self.all_configs = all_configs
        self._gpu = gpu_named(pretend)

    def surroundings(self) -> AbstractContextManager[None]:
        """Where an oracle runs: it sees the same GPU as the target."""
        from kcheck.worker.backends.interpret.pretend import pretending

        return pretending(self._gpu)

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
        """Observe every kernel launch until the context ends; see `kcheck.worker.backends.base.Backend.watch`."""
        # Triton is imported only here: a worker for another backend must not pay for it or depend on it.
        from kcheck.worker.backends.interpret import triton_seams

        triton_seams.check()
        from kcheck.worker.backends.interpret import autotune
        from kcheck.worker.backends.interpret.scope import entered

        entering = entered(regions, spans, decoy_seed, order, self.max_programs, conditions, self.engine)
        with entering as watch, self.surroundings():
            autotune.choose(self.config, watch.tuned)
            yield watch
