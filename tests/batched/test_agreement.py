"""Two engines, one answer: the same bytes in memory and the same findings, for random kernels and views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

KERNELS = 20  # of a module
PAIRS = 5  # of a kernel


@pytest.mark.parametrize("seed", range(5))
def test_random_kernels_and_views(random_kernels: Any, tmp_path: Path, seed: int) -> None:
    module = random_kernels.make_kernels(tmp_path, seed, KERNELS)
    random = Random(seed)
    together = 0
    for number in range(KERNELS):
        kernel = getattr(module, f"kernel{number}")
        for _ in range(PAIRS):
            pair = random_kernels.Pair.random(random)
            one, other = pair.run(kernel, "sequential"), pair.run(kernel, "batched")
            assert other.findings() == one.findings(), (kernel, pair)
            assert other.bytes == one.bytes, (kernel, pair)
            together += random_kernels.ran_together(other)
    assert together > KERNELS * PAIRS / 3  # else the test compares an engine with itself


def test_differences_are_noticed(random_kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that rounds otherwise, or that misses a fault, is found out."""
    from kcheck.worker.backends.batched import builder, memory

    modules = [random_kernels.make_kernels(tmp_path, seed, KERNELS) for seed in range(4)]

    def is_found(difference: Callable[[Any, Any], bool], kernels: int = len(modules) * KERNELS) -> bool:
        """Whether any pair shows a difference; the search ends with the first."""
        random = Random(0)
        return any(
            difference(*(pair.run(kernel, name) for name in ("sequential", "batched")))
            for number in range(kernels)
            for kernel in [getattr(modules[number // KERNELS], f"kernel{number % KERNELS}")]
            for pair in [random_kernels.Pair.random(random) for _ in range(2)]
        )

    assert not is_found(lambda one, other: one.bytes != other.bytes or one.findings() != other.findings(), 8)
    with monkeypatch.context() as patch:
        patch.setattr(builder.BatchedBuilder, "create_fadd", lambda self, a, b: self.binary_op(b, a, _careless))
        assert is_found(lambda one, other: one.bytes != other.bytes)
    with monkeypatch.context() as patch:
        patch.setattr(memory.Memory, "_outside", lambda self, argument, pointers, width: np.zeros(pointers.shape, bool))
        patch.setattr(memory.Memory, "check", lambda self: None)
        assert is_found(lambda one, other: one.findings() != other.findings())


def _careless(left: Any, right: Any) -> Any:
    return left + right * (1 + 2.0**-20)
