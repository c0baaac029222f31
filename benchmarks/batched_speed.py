"""Time per program of 1,024 programs: Triton's interpreter, the sequential engine, the batched engine.

Run it with ``python benchmarks/batched_speed.py``. The engines alternate in one process, so that a busy machine is fair
to both; Triton's interpreter runs between them in processes of its own, with fewer programs. The view check and the
race check are on in both engines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
import triton.language as tl
from interpret_speed import PEER, matmul, paged_gather, rms_norm, scale

PROGRAMS = 1024
ROUNDS = 5
PEER_PROGRAMS = 32

Launch = tuple[Callable[[], Any], dict[str, torch.Tensor]]


def cases(programs: int) -> Iterator[tuple[str, Launch]]:
    """Name, launch and tensors of each kernel, with about as many programs."""
    torch.manual_seed(0)
    side = max(1, int(programs**0.5))
    requests = max(1, programs // 16)
    table = torch.randint(0, 64, (requests, 64), dtype=torch.int32)[:, :16]
    cache, gathered = torch.randn(64, 16, 64), torch.zeros(requests * 16, 16, 64)
    yield (
        "paged gather",
        (
            lambda: paged_gather[(requests, 16)](gathered, cache, table, 16, table.stride(0), PAGE=16, D=64),
            {"out": gathered, "cache": cache, "table": table},
        ),
    )
    x, y = torch.randn(programs * 1024), torch.zeros(programs * 1024)
    yield "scale, 1024 lanes", (lambda: scale[(programs,)](x, y, x.numel(), 2.0, BLOCK=1024), {"x": x, "y": y})
    rows, weight, normed = torch.randn(programs, 4096), torch.randn(4096), torch.zeros(programs, 4096)
    yield (
        "rms norm, 4096",
        (
            lambda: rms_norm[(programs,)](rows, weight, normed, 4096, 4096, 4096, 1e-6, BLOCK=1024),
            {"x": rows, "w": weight, "out": normed},
        ),
    )
    size = side * 32
    a, b, c = torch.randn(size, 256), torch.randn(256, size), torch.zeros(size, size)
    yield (
        "matmul, 8 k-steps",
        (
            lambda: matmul[(side, side)](
                a, b, c, size, size, 256, *a.stride(), *b.stride(), *c.stride(), BM=32, BN=32, BK=32
            ),
            {"a": a, "b": b, "c": c},
        ),
    )


@triton.jit
def ragged(x, starts, out, B: tl.constexpr):
    row = tl.program_id(0)
    first, last = tl.load(starts + row), tl.load(starts + row + 1)
    total = tl.zeros((B,), tl.float32)
    for at in range(first, last, B):
        lanes = at + tl.arange(0, B)
        total += tl.load(x + lanes, mask=lanes < last, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))


def import_kcheck() -> None:
    """Not in a process for another tool."""
    from kcheck.worker.backends.interpret import scope  # noqa: F401


def seconds(launch: Launch, engine: str) -> float:
    """Time of one launch in an engine, or in Triton's interpreter if this is its process."""
    from kcheck.worker.backends.base import Region
    from kcheck.worker.backends.interpret import InterpretBackend

    run, tensors = launch
    regions = [Region(name, tensor, True) for name, tensor in tensors.items()]
    with InterpretBackend(engine=engine).watch(regions) as watch:
        began = time.process_time()  # on a busy machine the wall clock tells more about others
        run()
        took = time.process_time() - began
    assert not watch.faults
    assert not watch.hazards
    assert not watch.sequential
    return took


def of_triton() -> dict[str, float]:
    """Seconds per program in Triton's interpreter, by kernel, in a process of its own."""
    command = [sys.executable, __file__, "--triton"]
    found = subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1", PEER: "1"}, check=True, stdout=-1)
    result: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return result


def print_of_triton() -> None:
    times = {}
    for name, (run, _) in cases(PEER_PROGRAMS):
        run()
        began = time.process_time()
        run()
        programs = int(PEER_PROGRAMS**0.5) ** 2 if "matmul" in name else PEER_PROGRAMS
        times[name] = (time.process_time() - began) / programs
    print(json.dumps(times))


def compare() -> None:
    best: dict[tuple[str, str], float] = {}

    def keep(key: tuple[str, str], value: float) -> None:
        best[key] = min(value, best.get(key, value))

    for _ in range(ROUNDS):
        for name, value in of_triton().items():
            keep((name, "triton"), value)
        for name, launch in cases(PROGRAMS):
            for engine in ("batched", "batched", "sequential", "batched", "batched"):
                keep((name, engine), seconds(launch, engine) / PROGRAMS)
    print(f"microseconds per program, {PROGRAMS:,} programs, best of {ROUNDS}")
    print(f"{'kernel':<20}{'triton':>10}{'sequential':>12}{'batched':>10}{'ratios':>16}")
    for name, _ in cases(16):
        peer, one, all_ = (best[name, engine] * 1e6 for engine in ("triton", "sequential", "batched"))
        print(f"{name:<20}{peer:>10.0f}{one:>12.0f}{all_:>10.1f}{peer / all_:>9.0f}x{one / all_:>5.0f}x")


def ragged_sums(lengths: torch.Tensor) -> Launch:
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(torch.int32)
    x, out = torch.randn(int(starts[-1])), torch.zeros(len(lengths))
    return lambda: ragged[(len(lengths),)](x, starts, out, B=64), {"x": x, "starts": starts, "out": out}


def main() -> None:
    if "--triton" in sys.argv:
        print_of_triton()
        return
    torch.set_num_threads(1)
    print(f"triton {triton.__version__}, torch {torch.__version__}")
    compare()


if __name__ == "__main__":
    main()
