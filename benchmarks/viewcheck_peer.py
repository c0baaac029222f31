"""The view check beside triton-viz's sanitizer: time, and what each one says, on the same kernels.

Run it with ``python benchmarks/viewcheck_peer.py PYTHON``, where PYTHON is an interpreter that has triton-viz beside
torch and Triton. Every case runs in a process of its own: triton-viz ends the process at the first fault.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import interpret_speed
import torch
import triton
import triton.language as tl

LIMIT_S = 120


@triton.jit
def every_program(y, x, BLOCK: tl.constexpr):
    """All programs write the same block: a race."""
    lanes = tl.arange(0, BLOCK)
    tl.store(y + lanes, tl.load(x + tl.program_id(0) * BLOCK + lanes))


@triton.jit
def unmasked(y, x, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + lanes, tl.load(x + lanes, mask=lanes < n, other=0.0))


@triton.jit
def strided(y, x, n, step, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(y + lanes, tl.load(x + lanes * step, mask=lanes < n), mask=lanes < n)


Case = tuple[Callable[[], Any], dict[str, torch.Tensor]]


def gather(programs: int, wrong: bool) -> Case:
    rows = programs // 16
    table = torch.randint(0, 64, (rows, 64), dtype=torch.int32)[:, :16]
    cache, out = torch.randn(64, 16, 64), torch.zeros(programs, 16, 64)
    stride = table.shape[1] if wrong else table.stride(0)
    launch = lambda: interpret_speed.paged_gather[(rows, 16)](out, cache, table, 16, stride, PAGE=16, D=64)  # noqa: E731
    return launch, {"out": out, "cache": cache, "table": table}


def cases() -> dict[str, Callable[[], Case]]:
    torch.manual_seed(0)
    x, y = torch.randn(4096), torch.zeros(4096)
    speed = {name: (launch, tensors) for name, _, launch, tensors in interpret_speed.cases()}
    return {
        **{name: (lambda one=one: one) for name, one in speed.items()},
        "paged gather, 1024": lambda: gather(1024, False),
        "WRONG row stride": lambda: gather(128, True),
        "WRONG no mask": lambda: (lambda: unmasked[(4,)](y[:1000], x, 1000, BLOCK=256), {"y": y[:1000], "x": x}),
        "WRONG race": lambda: (lambda: every_program[(4,)](y[:256], x, BLOCK=256), {"y": y[:256], "x": x}),
        "right, x[::2]": lambda: (
            lambda: strided[(1,)](y[:64], x[:128:2], 64, 2, BLOCK=64),
            {"y": y[:64], "x": x[:128:2]},
        ),
        "WRONG x[::2], step 3": lambda: (
            lambda: strided[(1,)](y[:64], x[:128:2], 64, 3, BLOCK=64),
            {"y": y[:64], "x": x[:128:2]},
        ),
    }


def ours(case: Case) -> str:
    from kcheck.worker.backends.base import Conditions, Region
    from kcheck.worker.backends.interpret import InterpretBackend

    launch, tensors = case
    with InterpretBackend().watch([Region(n, t, True) for n, t in tensors.items()], conditions=Conditions()) as watch:
        launch()
    said = [f"{fault.access} {fault.argument}{list(fault.index)} by {fault.program}" for fault in watch.faults]
    said += [f"{one.kind} {one.argument}{list(one.index)} by {one.sides[-1].program}" for one in watch.hazards]
    return "; ".join(said) or "nothing"


def theirs(case: Case) -> str:
    import triton_viz

    for module in (interpret_speed, sys.modules[__name__]):
        for name, value in list(vars(module).items()):
            if isinstance(value, triton.JITFunction):
                setattr(module, name, triton_viz.trace("sanitizer")(value))
    case[0]()
    return "nothing"


def child(tool: str, name: str) -> None:
    case = cases()[name]()
    start = time.perf_counter()
    try:
        said = {"ours": ours, "theirs": theirs}[tool](case)
    except SystemExit:
        said = "stops at a fault"
    except Exception as error:
        said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    print(json.dumps([time.perf_counter() - start, said]))


def asked(python: str, tool: str, name: str) -> tuple[str, str]:
    try:
        run = subprocess.run(
            [python, __file__, tool, name], capture_output=True, text=True, timeout=LIMIT_S, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired:
        return f"> {LIMIT_S} s", ""
    try:
        seconds, said = json.loads(run.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return "", f"exit code {run.returncode}: {run.stderr.strip().splitlines()[-1:]}"
    if said == "stops at a fault":
        text = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout)
        found = re.findall(r"(?i)(?:line|tensor|address|offset|violation)[^\n]{0,70}", text)
        said = f"{said}: {'; '.join(found[:3])}"
    return f"{seconds * 1e3:.0f} ms", said


def main() -> None:
    if len(sys.argv) == 3:
        child(sys.argv[1], sys.argv[2])
        return
    for name in cases():
        for tool, python in (("ours", sys.executable), ("theirs", sys.argv[1])):
            seconds, said = asked(python, tool, name)
            label = "kcheck" if tool == "ours" else "triton-viz"
            print(f"{name if tool == 'ours' else '':<22}{label:<12}{seconds:>9}  {said}", flush=True)


if __name__ == "__main__":
    main()
