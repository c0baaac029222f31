"""Many random launches in one process, with all checks on: does memory grow?

Run it with ``python benchmarks/viewcheck_soak.py [LAUNCHES]``; 100,000 if not given, about 5 minutes. It
ends with exit code 1 if the process holds more than 16 MiB more at the end than it did after a tenth of the launches.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from pathlib import Path

import torch
import triton
import triton.language as tl

from kcheck.worker.backends.base import Conditions, ProgramOrder, Region
from kcheck.worker.backends.interpret import InterpretBackend

ALLOWED = 16 << 20  # bytes
ORDERS: tuple[ProgramOrder, ...] = ("forward", "reverse", "shuffled")


@triton.jit
def wander(out, x, scratch, count, x_stride, offset, WRITE: tl.constexpr, TILE: tl.constexpr):
    """Reads a view, sometimes beside it; writes scratch and a result, sometimes the one of another program."""
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x + (lanes + offset) * x_stride, mask=lanes < count, other=0.0)
    tl.store(scratch + lanes, values, mask=lanes < count)
    tl.atomic_add(scratch, 1.0)
    if WRITE:
        tl.store(out + lanes, tl.load(scratch + lanes), mask=lanes < count)
    else:
        tl.store(out + tl.arange(0, TILE), values)


def launch(rng: random.Random, backend: InterpretBackend) -> None:
    count, step, tile = rng.randint(1, 40), rng.randint(1, 3), rng.choice([4, 8, 16])
    x = torch.randn(count * step + 8)[4 : 4 + count * step : step]
    out = torch.zeros(triton.cdiv(count, tile) * tile)
    conditions = Conditions(poison=0xA5, undefined=rng.choice(["zero", "wild"]))
    regions = [Region("out", out, True, True), Region("x", x, False)]
    with backend.watch(regions, order=rng.choice(ORDERS), conditions=conditions):
        scratch = torch.empty(out.numel())
        grid = (triton.cdiv(count, tile),)
        wander[grid](
            out, x, scratch, count, x.stride(0), rng.choice([0, 0, -1, 9]), WRITE=rng.random() < 0.7, TILE=tile
        )


def resident() -> int:
    """Bytes of memory that the process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def main() -> int:
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rng, backend = random.Random(0), InterpretBackend()
    began, base = time.monotonic(), 0
    for done in range(1, launches + 1):
        launch(rng, backend)
        if done % (launches // 10) == 0:
            gc.collect()
            base = base or resident()
            print(f"{done:>9,} launches  {time.monotonic() - began:6.0f} s  {resident() / 2**20:7.1f} MiB", flush=True)
    growth = resident() - base
    print(f"growth after the first tenth: {growth / 2**20:.1f} MiB")
    return int(growth > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
