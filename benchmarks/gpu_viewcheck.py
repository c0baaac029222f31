"""What the view check costs on a GPU: milliseconds of kernels compiled without and with it, side by side.

    python benchmarks/gpu_viewcheck.py

Every launch is in a CUDA graph of ten; the two graphs are replayed in turn, the median of many counts.
"""

from __future__ import annotations

import datetime
import statistics

import torch
import triton
from viewcheck_kernels import WORKLOADS, Launch, Tensors

from kcheck.worker.backends.base import Region, Watch
from kcheck.worker.backends.cuda import CudaBackend

LAUNCHES, ROUNDS = 10, 40


def graph(launch: Launch) -> torch.cuda.CUDAGraph:
    """Ten launches, captured."""
    for _ in range(12):
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


def compared(tensors: Tensors, launch: Launch) -> tuple[float, float, Watch]:
    """Seconds a launch without and with the check, and what the check saw."""
    regions = [Region(name, tensor, True) for name, tensor in tensors.items()]
    spans = [(tensor.data_ptr(), tensor.nbytes) for tensor in tensors.values()]
    plain = graph(launch)
    backend = CudaBackend(view_check=True)
    with backend.watch(regions, spans=spans) as watch:
        checked = graph(launch)
        times = [(seconds(plain), seconds(checked)) for _ in range(ROUNDS)]
    without, with_check = (statistics.median(column) / LAUNCHES for column in zip(*times, strict=True))
    return without, with_check, watch


def main() -> None:
    versions = f"torch {torch.__version__}, triton {triton.__version__}"
    print(f"{datetime.date.today()}, {torch.cuda.get_device_name()}, {versions}")
    print(f"{'':32} {'plain ms':>9} {'checked':>9} {'ratio':>6}")
    for name, make in WORKLOADS.items():
        torch.manual_seed(0)
        without, with_check, watch = compared(*make())
        trouble = [f"{fault.access} of {fault.argument}" for fault in watch.faults] + watch.gaps
        print(
            f"{name:32} {1e3 * without:9.4f} {1e3 * with_check:9.4f} {with_check / without:6.2f}", *trouble, flush=True
        )


if __name__ == "__main__":
    main()
