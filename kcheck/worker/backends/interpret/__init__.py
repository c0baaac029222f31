"""The CPU backend: runs ordinary ``@triton.jit`` kernels on CPU tensors and checks every access against the views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kcheck.worker.backends.base import ProgramOrder, Region, Watch

__all__ = ["InterpretBackend"]


class InterpretBackend:
    """Runs kernels through Triton's interpreter, repaired, without ``TRITON_INTERPRET``.

    Args:
        max_programs: Run at most about this many programs of a launch, evenly chosen; outputs are then incomplete,
            which is noted in `Watch.gaps`. None runs all.
    """

    name = "interpret"
    device = "cpu"

    def __init__(self, max_programs: int | None = None) -> None:
        if max_programs is not None and max_programs < 1:
            raise ValueError(f"max_programs must be at least 1, got {max_programs}")
        self.max_programs = max_programs

    @contextmanager
    def watch(
        self,
        regions: Sequence[Region],
        *,
        spans: Sequence[tuple[int, int]] = (),
        decoy_seed: int = 0,
        order: ProgramOrder = "forward",
    ) -> Iterator[Watch]:
        """Observe every kernel launch until the context ends; see `kcheck.worker.backends.base.Backend.watch`."""
        # Triton is imported only here: a worker for another backend must not pay for it or depend on it.
        from kcheck.worker.backends.interpret import triton_seams

        triton_seams.check()
        from kcheck.worker.backends.interpret.scope import entered

        with entered(regions, spans, decoy_seed, order, self.max_programs) as watch:
            yield watch
