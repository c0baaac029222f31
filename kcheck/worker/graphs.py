"""CUDA graphs: a captured run, replayed with new contents in the same buffers, must give what an eager run gives."""

from __future__ import annotations

from dataclasses import replace

import torch

from kcheck.case import Case, View
from kcheck.errors import CouldNotCheck
from kcheck.fill import MASK
from kcheck.findings import Finding, Kind
from kcheck.worker import checks
from kcheck.worker.arena import Placement, dense_values
from kcheck.worker.arguments import arguments
from kcheck.worker.call import invoke
from kcheck.worker.compare import describe, differ
from kcheck.worker.host import on_host, place_on_host
from kcheck.worker.run import Observation, run_target
from kcheck.worker.trial import FIRST, Trial

ANOTHER_SEED = 0x51ED


def graph_findings(trial: Trial) -> list[Finding]:
    """Capture the target once, replay it with new contents, compare with an eager run on these.

    What a wrapper decides on the host (a length read back, a pointer, a size) is frozen in the graph.

    Args:
        trial: A case whose eager runs are right.

    Raises:
        CouldNotCheck: The target cannot be captured.
    """
    case = trial.case.map_views(_other_values)
    contents = on_host(case, dense_values(case, trial.arena.device))
    eager = run_target(trial.target, case, contents, trial.backend, trial.arena, style=FIRST, dense=trial.dense)
    if eager.error is not None:
        raise CouldNotCheck(f"the graph was not compared: the eager run with other contents raised {eager.error}")
    placement = trial.arena.place(trial.case, trial.contents, FIRST, trial.dense)
    place_on_host(placement, trial.contents)
    graph = _capture(trial, placement)
    trial.arena.refill(placement, contents, FIRST)
    graph.replay()
    torch.cuda.synchronize()
    return _compared(trial, case, eager, placement)


def _other_values(name: str, view: View) -> View:
    """Other values of the same kind; lengths and tables, which are given one by one, stay."""
    fill = view.fill
    if fill.kind != "hashed":
        return view
    return replace(view, fill=replace(fill, seed=(fill.seed + ANOTHER_SEED) & MASK))


def _capture(trial: Trial, placement: Placement) -> torch.cuda.CUDAGraph:
    """Capture one call; a call on a side stream before it lets allocations and compiles happen outside.

    Raises:
        CouldNotCheck: It cannot be captured.
    """
    given = arguments(trial.case, placement.tensors)
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.stream(side):
            invoke(trial.target, given, placement.tensors)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            invoke(trial.target, given, placement.tensors)
    except RuntimeError as error:
        first = str(error).strip().splitlines()[0]
        raise CouldNotCheck(f"{trial.target.name} cannot be captured in a CUDA graph: {first}") from None
    return graph


def _compared(trial: Trial, case: Case, eager: Observation, placement: Placement) -> list[Finding]:
    found = []
    for name, expected in eager.outputs.items():
        if name not in placement.tensors:
            continue  # a returned tensor lives in the graph's own memory
        replayed = placement.tensors[name]
        wrong = differ(replayed, expected, trial.tolerance)
        if name in trial.unwritten:
            wrong &= ~trial.unwritten[name]
        if not bool(wrong.any()):
            continue
        mismatch = describe(name, replayed, expected, wrong, torch.zeros_like(wrong, dtype=torch.float64), "eager run")
        message = f"{name} of a replayed CUDA graph differs from an eager run on the same new contents"
        found.append(
            checks.difference_finding(
                trial.target, Kind.GRAPH_VARIANCE, message, mismatch, wrong, trial.layouts, eager.watch.launches
            )
        )
    return found
