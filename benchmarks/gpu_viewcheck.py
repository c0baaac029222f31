"""What the view check costs on a GPU: milliseconds of kernels compiled without and with checks, side by side.

    python benchmarks/gpu_viewcheck.py

Every launch is in a CUDA graph of ten; the graphs are replayed in turn, the median of many counts. For comparison: how
much longer a launch takes under memcheck, by the host's clock.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import triton
from viewcheck_kernels import WORKLOADS, Launch, Tensors

from kcheck.backend_spec import VIEWCHECK
from kcheck.errors import CouldNotCheck
from kcheck.sanitizer.locate import locate
from kcheck.worker.backends.base import Region, Watch
from kcheck.worker.backends.cuda import CudaBackend

LAUNCHES, ROUNDS = 10, 40


def graph(launch: Launch) -> torch.cuda.CUDAGraph:
    """Ten launches, captured."""
    for _ in range(30):  # more than the view check watches one by one, and than it takes for a kernel to be hot
        launch()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(LAUNCHES):
            launch()
    return captured


def seconds(captured: torch.cuda.CUDAGraph) -> float:
    """GPU time of a replay."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    captured.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def compared(tensors: Tensors, launch: Launch) -> tuple[list[float], list[Watch]]:
    """Seconds a launch: plain, with the view check, with races and unwritten reads too; and what the checks saw."""
    regions = [Region(name, tensor, True) for name, tensor in tensors.items()]
    spans = [(tensor.data_ptr(), tensor.nbytes) for tensor in tensors.values()]
    plain = graph(launch)
    medians, watches = [], []
    for name in ("cuda", VIEWCHECK):
        with CudaBackend(name, view_check=True).watch(regions, spans=spans) as watch:
            checked = graph(launch)
            times = [(seconds(plain), seconds(checked)) for _ in range(ROUNDS)]
        medians.append([statistics.median(column) / LAUNCHES for column in zip(*times, strict=True)])
        watches.append(watch)
    return [medians[0][0], medians[0][1], medians[1][1]], watches


def by_host_clock() -> dict[str, float]:
    """Seconds a launch of each workload."""
    found = {}
    for name, make in WORKLOADS.items():
        torch.manual_seed(0)
        _, launch = make()
        launch()
        times = []
        for _ in range(5):
            torch.cuda.synchronize()
            began = time.perf_counter()
            launch()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        found[name] = statistics.median(times)
    return found


def under(*command: str) -> dict[str, float]:
    """`by_host_clock` in a process of its own."""
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run(
        [*command, sys.executable, __file__, "--host-clock"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("{")), "{}")
    return dict(json.loads(line))


def memcheck() -> None:
    """Print how much slower a launch is under memcheck."""
    try:
        sanitizer = locate()
    except CouldNotCheck as error:
        print(f"memcheck: {error}")
        return
    plain, checked = under(), under(str(sanitizer.path), "--tool", "memcheck")
    for name in plain.keys() & checked.keys():
        print(f"{name:32} memcheck {checked[name] / plain[name]:8.1f} times, host clock {1e3 * plain[name]:.3f} ms")


def main() -> None:
    if "--host-clock" in sys.argv:
        print(json.dumps(by_host_clock()))
        return
    versions = f"torch {torch.__version__}, triton {triton.__version__}"
    print(f"{datetime.date.today()}, {torch.cuda.get_device_name()}, {versions}")
    print(f"{'':32} {'plain ms':>9} {'checked':>9} {'ratio':>6} {'races too':>10} {'ratio':>6}")
    for name, make in WORKLOADS.items():
        torch.manual_seed(0)
        (plain, checked, state), watches = compared(*make())
        trouble = [f"{fault.access} of {fault.argument}" for watch in watches for fault in watch.faults]
        trouble += [f"{hazard.kind.value} of {hazard.argument}" for watch in watches for hazard in watch.hazards]
        trouble += ["lanes are suspected" for watch in watches if watch.suspected]
        ratios = f"{1e3 * checked:9.4f} {checked / plain:6.2f} {1e3 * state:10.4f} {state / plain:6.2f}"
        print(f"{name:32} {1e3 * plain:9.4f} {ratios}", *dict.fromkeys(trouble), flush=True)
    memcheck()


if __name__ == "__main__":
    main()
