"""Variants of a target on one case, side by side in one process: the same values? At what price?"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kcheck.case import Case
from kcheck.errors import CouldNotCheck
from kcheck.protocol import Measurement, Variant
from kcheck.target import Target
from kcheck.worker.arena import Arena, Placement, dense_values
from kcheck.worker.arguments import arguments
from kcheck.worker.backends.base import Backend, ContextLost
from kcheck.worker.call import invoke
from kcheck.worker.compare import Tolerance, differ
from kcheck.worker.host import on_host, place_on_host
from kcheck.worker.reference import identical
from kcheck.worker.run import Observation, run_target
from kcheck.worker.sharing import prepared
from kcheck.worker.trial import FIRST

HOST_REPEATS = 5  # calls timed by the host's clock; their median counts
Contents = Mapping[str, torch.Tensor]


def measure(
    targets: Sequence[Target], case: Case, backend: Backend, arena: Arena, *, timed: bool = True
) -> Measurement:
    """Run every variant on a case, compare their results, and measure what a call costs.

    Args:
        targets: The variants; the first one's tolerance decides.
        case: Their arguments.
        backend: Where kernels run.
        arena: Where tensors live.
        timed: Measure time, memory and launches; else only results and compiles.
    """
    try:
        contents = on_host(case, dense_values(case, backend.device))
        runs = [run_target(t, prepared(t, case), contents, backend, arena, style=FIRST) for t in targets]
        for target, run in zip(targets, runs, strict=True):
            if run.error is not None:
                quote = f"{type(run.error).__name__}: {run.error}"
                return Measurement(problem=f"{target.name} raised {quote}", fatal=isinstance(run.error, ContextLost))
            if run.watch.gaps:
                return Measurement(problem=run.watch.gaps[0])
        costs = _on_device if backend.device == "cuda" else _on_host
        variants = costs(targets, case, contents, backend, arena, runs) if timed else _compiles(runs)
    except CouldNotCheck as error:
        return Measurement(problem=str(error))
    first = targets[0]
    tolerance = Tolerance(first.exact, first.rtol, first.atol)
    pairs = [(runs[0].outputs, run.outputs) for run in runs[1:]]
    difference = next(filter(None, (_difference(a, b, tolerance) for a, b in pairs)), "")
    same = all(a.keys() == b.keys() and all(identical(a[name], b[name]) for name in a) for a, b in pairs)
    return Measurement(tuple(variants), same_bits=same, agree=not difference, difference=difference)


def _difference(a: Contents, b: Contents, tolerance: Tolerance) -> str:
    """The first result that differs, in words; ``""`` if none does."""
    if a.keys() != b.keys():
        return f"one gives {', '.join(a) or 'nothing'}, the other {', '.join(b) or 'nothing'}"
    for name in a:
        if a[name].shape != b[name].shape or a[name].dtype != b[name].dtype:
            says = (f"{tensor.dtype} {tuple(tensor.shape)}" for tensor in (a[name], b[name]))
            return f"{name} is {' in one and '.join(says)} in the other"
        wrong = differ(a[name], b[name], tolerance)
        if bool(wrong.any()):
            where = tuple(wrong.nonzero()[0].tolist())
            values = f"{a[name][where].item()} and {b[name][where].item()}"
            place = f"{name}[{', '.join(map(str, where))}]"
            return f"{place} is {values} ({int(wrong.sum()):,} of {wrong.numel():,} elements differ)"
    return ""


def _compiles(runs: Sequence[Observation]) -> list[Variant]:
    return [Variant(0.0, 0, compiles=len(run.watch.compiles)) for run in runs]


def _on_host(
    targets: Sequence[Target],
    case: Case,
    contents: Contents,
    backend: Backend,
    arena: Arena,
    runs: Sequence[Observation],
) -> list[Variant]:
    """By the host's clock, the variants in turn, so that a busy machine is as hard on the one as on the other."""
    seconds: list[list[float]] = [[] for _ in targets]
    for _ in range(HOST_REPEATS):
        for target, times in zip(targets, seconds, strict=True):
            again = run_target(target, prepared(target, case), contents, backend, arena, style=FIRST)
            times.append(again.seconds["target"])
    return [
        Variant(statistics.median(times), len(run.watch.launches)) for times, run in zip(seconds, runs, strict=True)
    ]


def _on_device(
    targets: Sequence[Target],
    case: Case,
    contents: Contents,
    backend: Backend,
    arena: Arena,
    runs: Sequence[Observation],
) -> list[Variant]:
    """By CUDA events, with a cold L2 cache; launches by the profiler, which sees torch's own kernels too."""
    variants = []
    for target, run in zip(targets, runs, strict=True):
        placement = arena.place(prepared(target, case), contents, FIRST)
        place_on_host(placement, contents)
        given = arguments(case, placement.tensors)

        def call(target: Target = target, given: dict[str, Any] = given, placement: Placement = placement) -> None:
            invoke(target, given, placement.tensors)

        variants.append(Variant(_event_seconds(call), _launches(call), _peak_bytes(call), len(run.watch.compiles)))
    return variants


def _event_seconds(call: Callable[[], None]) -> float:
    from triton.testing import do_bench  # it writes over the L2 cache between calls, which hides the launch's own time

    median_ms: float = do_bench(call, return_mode="median")
    return median_ms / 1e3


def _peak_bytes(call: Callable[[], None]) -> int:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated()) - int(before)


def _launches(call: Callable[[], None]) -> int:
    """What one call puts on the device: kernels, copies, fills."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    on_device = torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]
    return sum(event.device_type == on_device for event in profiler.events())
