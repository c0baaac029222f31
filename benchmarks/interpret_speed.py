"""Time per program: Triton's own interpreter against the interpret backend with the view check on.

Run it with ``python benchmarks/interpret_speed.py``. Triton's interpreter runs in a process of its own, since
TRITON_INTERPRET=1 changes what importing a kernel means; the two alternate, so that a busy machine is fair to both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl

ROUNDS = 3
PEER = "KCHECK_BENCHMARK_PEER"  # set in the process that runs Triton's own interpreter


@triton.jit
def paged_gather(out, cache, table, pages, stride, PAGE: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0)
    page = tl.program_id(1)
    block = tl.load(table + row * stride + page)
    offsets = tl.arange(0, PAGE)[:, None] * D + tl.arange(0, D)[None, :]
    values = tl.load(cache + block * (PAGE * D) + offsets)
    tl.store(out + (row * pages + page) * (PAGE * D) + offsets, values)


@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.load(x + offsets, mask=mask, other=0.0) * factor, mask=mask)


@triton.jit
def rms_norm(x, w, out, n, stride_x, stride_out, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride_x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
        total += v * v
    inverse = 1.0 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        v = tl.load(x + row * stride_x + offsets, mask=mask, other=0.0).to(tl.float32)
        gain = tl.load(w + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * stride_out + offsets, v * inverse * gain, mask=mask)


@triton.jit
def matmul(
    a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    pa = a + rows[:, None] * sam + depth[None, :] * sak
    pb = b + depth[:, None] * sbk + columns[None, :] * sbn
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(pa, mask=(rows[:, None] < M) & (depth[None, :] < K - k * BK), other=0.0)
        right = tl.load(pb, mask=(columns[None, :] < N) & (depth[:, None] < K - k * BK), other=0.0)
        total += tl.dot(left, right)
        pa += BK * sak
        pb += BK * sbk
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * scm + columns[None, :] * scn, total.to(c.dtype.element_ty), mask=inside)


Case = tuple[str, int, Callable[[], Any], dict[str, torch.Tensor]]


def cases() -> list[Case]:
    """Name, number of programs, the launch and its tensors."""
    torch.manual_seed(0)
    table = torch.randint(0, 64, (8, 64), dtype=torch.int32)[:, :16]
    cache, gathered = torch.randn(64, 16, 64), torch.zeros(128, 16, 64)
    x, y = torch.randn(64 * 1024), torch.zeros(64 * 1024)
    rows, weight, normed = torch.randn(16, 4096), torch.randn(4096), torch.zeros(16, 4096)
    a, b, c = torch.randn(64, 256), torch.randn(256, 64), torch.zeros(64, 64)
    return [
        (
            "paged gather", 128,
            lambda: paged_gather[(8, 16)](gathered, cache, table, 16, table.stride(0), PAGE=16, D=64),
            {"out": gathered, "cache": cache, "table": table},
        ),
        (
            "scale, 1024 lanes", 64,
            lambda: scale[(64,)](x, y, x.numel(), 2.0, BLOCK=1024),
            {"x": x, "y": y},
        ),
        (
            "rms norm, 4096", 16,
            lambda: rms_norm[(16,)](rows, weight, normed, 4096, rows.stride(0), normed.stride(0), 1e-6, BLOCK=1024),
            {"x": rows, "w": weight, "out": normed},
        ),
        (
            "matmul, 8 k-steps", 4,
            lambda: matmul[(2, 2)](
                a, b, c, 64, 64, 256, *a.stride(), *b.stride(), *c.stride(), BM=32, BN=32, BK=32
            ),
            {"a": a, "b": b, "c": c},
        ),
    ]  # fmt: skip


def measure() -> dict[str, float]:
    """Best microseconds per program of each case, in this process."""
    context: Callable[[dict[str, torch.Tensor]], Any] = lambda tensors: nullcontext()  # noqa: E731
    if PEER not in os.environ:
        from kcheck.worker.backends.base import Region
        from kcheck.worker.backends.interpret import InterpretBackend

        backend = InterpretBackend(engine="sequential")
        context = lambda tensors: backend.watch([Region(n, t, True) for n, t in tensors.items()])  # noqa: E731
    best = {}
    for name, programs, launch, tensors in cases():
        times = []
        for _ in range(4):
            start = time.perf_counter()
            with context(tensors):
                launch()
            times.append(time.perf_counter() - start)
        best[name] = min(times) / programs * 1e6
    return best


def measure_in_process(peer: bool) -> dict[str, float]:
    """`measure`, in a new process."""
    environment = os.environ | ({"TRITON_INTERPRET": "1", PEER: "1"} if peer else {})
    command = [sys.executable, __file__, "--measure"]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return result


def main() -> None:
    if "--measure" in sys.argv:
        print(json.dumps(measure()))
        return
    theirs: dict[str, float] = {}
    ours: dict[str, float] = {}
    for _ in range(ROUNDS):
        for times, peer in ((theirs, True), (ours, False)):
            for name, value in measure_in_process(peer).items():
                times[name] = min(value, times.get(name, value))
    print(
        f"microseconds per program, best of {ROUNDS} processes, triton {triton.__version__}, torch {torch.__version__}"
    )
    print(f"{'kernel':<20}{'triton':>12}{'kcheck':>12}{'ratio':>9}")
    for name in theirs:
        print(f"{name:<20}{theirs[name]:>12.0f}{ours[name]:>12.0f}{theirs[name] / ours[name]:>8.1f}x")


if __name__ == "__main__":
    main()
