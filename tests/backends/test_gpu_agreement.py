"""The interpret backend against a real GPU: the same kernels on the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton.language as tl

from kcheck.worker.backends.interpret import InterpretBackend

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

Arguments = tuple[Any, ...]


def _special() -> torch.Tensor:
    """float32 values at and around every edge of the smaller formats."""
    inf, nan = float("inf"), float("nan")
    edges = [0.0, -0.0, inf, -inf, nan, 448.0, 464.0, 465.0, 57344.0, 61440.0, 61441.0, 65504.0, 65520.0, 3.4e38, 1e-45]
    edges += [2.0**-9, 2.0**-10, 1.5 * 2.0**-10, 2.0**-16, 2.0**-17, 2.0**-24, 2.0**-25, 2.0**31, -(2.0**31), 3e9, -3e9]
    random = torch.randn(1024, generator=torch.Generator().manual_seed(0))
    values = torch.cat([torch.tensor(edges), random, random * 300, random * 2.0**-12, random * 60000])
    return torch.cat([values, -values])[:4096].contiguous()


def _both(
    kernel: Any, grid: tuple[int, ...], tensors: list[torch.Tensor], rest: Arguments, options: dict[str, Any]
) -> Any:
    """The tensors after a run on the CPU, and after one on the GPU."""
    on_cpu, on_gpu = [t.clone() for t in tensors], [t.cuda() for t in tensors]
    with InterpretBackend().watch([]) as watch:
        kernel[grid](*on_cpu, *rest, **options)
    assert not watch.faults
    kernel[grid](*on_gpu, *rest, **options)
    return on_cpu, [t.cpu() for t in on_gpu]


def _same(ours: torch.Tensor, theirs: torch.Tensor, tolerance: float = 0.0) -> None:
    wide = torch.float64 if ours.dtype.is_floating_point else torch.int64
    torch.testing.assert_close(ours.to(wide), theirs.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("target", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int32])
@pytest.mark.parametrize("source", [torch.float32, torch.float16, torch.bfloat16])
def test_casts(features: Any, source: torch.dtype, target: torch.dtype) -> None:
    x = _special().to(source)
    out = torch.zeros(x.numel()).to(target)
    ours, theirs = _both(features.cast_to_output, (4,), [x, out], (x.numel(),), {"B": 1024})
    bad = [
        (value, a, b)
        for value, a, b in zip(x.float().tolist(), ours[1].double().tolist(), theirs[1].double().tolist(), strict=True)
        if a != b and not (a != a and b != b)
    ]
    assert not bad, bad[:10]


@pytest.mark.parametrize("kind", [tl.float8e4nv, tl.float8e5])
def test_fp8_values(features: Any, kind: Any) -> None:
    tensors = [torch.arange(256).to(torch.uint8), torch.zeros(256)]
    ours, theirs = _both(features.bitcast_bytes, (1,), tensors, (256, kind), {})
    _same(ours[1], theirs[1])


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def _integers(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int32)


Make = Callable[[], tuple[list[torch.Tensor], Arguments, dict[str, Any]]]
CASES: list[tuple[str, tuple[int, ...], float, Make]] = [
    ("add", (4,), 0, lambda: ([_random(1000).bfloat16()] * 2 + [torch.zeros(1000).bfloat16()], (1000,), {"B": 256})),
    ("row_sum", (4,), 1e-5, lambda: ([_random(4, 100), torch.zeros(4)], (100, 100), {"B": 32})),
    ("softmax", (4,), 1e-6, lambda: ([_random(4, 100), torch.zeros(4, 100)], (100, 100), {"B": 128})),
    ("math_functions", (1,), 1e-5, lambda: ([_random(64), torch.zeros(64)], (), {"B": 64})),
    ("grow_bfloat16", (1,), 2**-7, lambda: ([_random(64).bfloat16(), torch.zeros(64).bfloat16()], (), {"B": 64})),
    ("nan_maximum", (1,), 0, lambda: ([torch.tensor([1, float("nan"), 3, 0]), torch.zeros(2)], (), {"B": 4})),
    ("division", (1,), 0, lambda: ([_random(8), torch.zeros(8), _integers(8), _integers(8)], (), {"B": 8})),
    ("extremes", (1,), 0, lambda: ([torch.tensor([1.0, 5, -2, 5, -2, 0, 3, 4]), _integers(3)], (), {"B": 8})),
    ("recurrence", (1,), 1e-5, lambda: ([_random(16), _random(16), torch.zeros(16), torch.zeros(1)], (), {"B": 16})),
    ("wrapping", (1,), 0, lambda: ([torch.zeros(1, dtype=torch.int64)], (1,), {})),
    ("annotated", (1,), 0, lambda: ([torch.zeros(2, dtype=torch.int64)], (65536, 65536), {})),
    ("float_argument", (1,), 0, lambda: ([torch.ones(16).half(), torch.zeros(16)], (1 + 2**-20,), {"B": 16})),
    ("libdevice_functions", (1,), 1e-5, lambda: ([_random(16), torch.zeros(16)], (), {"B": 16})),
    ("atomics", (1,), 1e-5, lambda: ([_random(16), torch.zeros(12)], (), {"B": 16})),
    ("atomic_add_only", (1,), 0, lambda: ([torch.ones(16).bfloat16(), torch.zeros(4).bfloat16()], (), {"B": 16})),
    ("rand", (1,), 0, lambda: ([torch.zeros(64)], (), {"B": 64})),
    ("histogram", (1,), 0, lambda: ([torch.arange(64, dtype=torch.int32) % 8, _integers(8)], (64, 8), {})),
    ("sort", (1,), 0, lambda: ([_random(16), torch.zeros(16)], (), {"B": 16})),
    ("reshaping", (1,), 1e-6, lambda: ([_random(16), torch.zeros(16)], (), {"B": 16})),
    ("constant_short_cut", (1,), 0, lambda: ([torch.ones(1), torch.zeros(2)], (), {"HAS": True})),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "grid", "tolerance", "make"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_kernels(features: Any, name: str, grid: tuple[int, ...], tolerance: float, make: Make) -> None:
    tensors, rest, options = make()
    ours, theirs = _both(getattr(features, name), grid, tensors, rest, options)
    # A GPU combines lanes in an order of its own, so the reduction of `recurrence` is left out: it does not commute.
    count = 3 if name == "recurrence" else len(ours)
    for mine, other in zip(ours[:count], theirs[:count], strict=True):
        _same(mine, other, tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int8])
def test_dot(features: Any, dtype: torch.dtype) -> None:
    a, b = _random(16, 32).mul(3).to(dtype), _random(32, 16).mul(3).to(dtype)
    c = torch.zeros(16, 16, dtype=torch.int32 if dtype == torch.int8 else torch.float32)
    ours, theirs = _both(features.dot, (1,), [a, b, c], (16, 16, 32), {})
    _same(ours[2], theirs[2], 1e-3)


def test_and_evaluates_both_sides(features: Any) -> None:
    """A load on the right of ``and`` is made even where the left is false: the reason why its fault is reported."""
    compiled = features.both_sides_evaluated[(1,)](torch.ones(4).cuda(), torch.zeros(8).cuda(), 4)
    ttir = compiled.asm["ttir"]
    assert ttir.index("tt.load") < ttir.index("scf.if" if "scf.if" in ttir else "cf.cond_br")
