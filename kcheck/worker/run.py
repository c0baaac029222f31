"""One run of a target: arguments placed, kernels observed, results read."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from kcheck.case import Case, Role
from kcheck.errors import KcheckError
from kcheck.origin import is_user_code
from kcheck.target import Target
from kcheck.worker.arena import Arena, Placement
from kcheck.worker.arguments import arguments
from kcheck.worker.backends.base import Backend, Conditions, ProgramOrder, Region, Traced, Watch
from kcheck.worker.call import both_passes, named_tensors
from kcheck.worker.decoys import Style
from kcheck.worker.host import place_on_host
from kcheck.worker.modes import kept
from kcheck.worker.poisoned import PoisonedMemory


@dataclass(slots=True)
class Observation:
    """What one run of the target did.

    Attributes:
        placement: Its arguments, as the run left them.
        watch: Launches and invalid accesses.
        outputs: Values of the outputs (by path), dense, and what was returned (``return``, ``return[1]``, …).
        error: What the target raised, None if it returned.
        returned: Addresses of the memory of what it returned.
        forward: Launches of the forward pass, where a backward pass was begun.
        seconds: Time for ``arena`` (placing and filling) and ``target`` (the call, and waiting for the device).
    """

    placement: Placement
    watch: Watch
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    error: BaseException | None = None
    returned: frozenset[int] = frozenset()
    forward: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def run_target(
    target: Target,
    case: Case,
    contents: Mapping[str, torch.Tensor],
    backend: Backend,
    arena: Arena,
    *,
    style: Style,
    order: ProgramOrder = "forward",
    dense: frozenset[str] = frozenset(),
    named: Sequence[str] = (),
    traced: Traced = frozenset(),
    exact: bool = False,
) -> Observation:
    """Place a case, call the target under observation, read its results.

    Args:
        target: What to call.
        case: Its arguments, roles set.
        contents: Values of every view.
        backend: Where kernels run.
        arena: Where tensors live; the observation's tensors are valid until its next use.
        style: Decoys and poison.
        order: Of the programs.
        dense: Views made contiguous.
        named: Kernels that are no Triton functions, to be looked for by name (CUDA only).
        traced: Accesses whose path to take down.
        exact: Say which accesses are invalid, also where that is slow.

    Raises:
        CouldNotCheck: The case cannot be placed.
    """
    began = time.perf_counter()
    placement = arena.place(case, contents, style, dense)
    place_on_host(placement, contents)
    views = case.views
    regions = [
        Region(name, placement.tensors[name], view.role.writable, view.role in (Role.OUTPUT, Role.SCRATCH))
        for name, view in views.items()
    ]
    conditions = Conditions(style.poison, style.undefined, style.undefined_at, traced, style.stale, style.hinted, exact)
    observation = Observation(placement, Watch())
    written = [name for name, view in views.items() if view.role in (Role.OUTPUT, Role.INOUT)]
    returned: Any = None
    results: dict[str, torch.Tensor] = {}
    placed = time.perf_counter()
    try:
        with backend.watch(
            regions, spans=placement.spans, decoy_seed=style.decoys, order=order, conditions=conditions
        ) as watch:
            observation.watch = watch
            with _seen_by_name(named, watch), PoisonedMemory(style.poison), kept():
                given = arguments(case, placement.tensors)
                if target.grad:
                    results = _both_passes(target, given, observation, written)
                else:
                    returned = target.function(**given)
                    observation.returned = _memory(returned)
    except KcheckError:
        raise
    except BaseException as error:  # also SystemExit: a target must not end the worker
        observation.error = error
    observation.seconds = {"arena": placed - began, "target": time.perf_counter() - placed}
    if observation.error is None:
        for name in written:
            observation.outputs[name] = placement.tensors[name].clone(memory_format=torch.contiguous_format)
        observation.outputs |= results or _returned(returned, [placement.tensors[name] for name in written])
    return observation


def _both_passes(
    target: Target, given: Mapping[str, Any], observation: Observation, written: Iterable[str]
) -> dict[str, torch.Tensor]:
    """Forward and backward; gives what was returned, and gradients."""
    tensors = observation.placement.tensors

    def keep(returned: Any) -> dict[str, torch.Tensor]:
        observation.forward = len(observation.watch.launches)
        observation.returned = _memory(returned)
        return _returned(returned, [tensors[name] for name in written])

    kept, grads = both_passes(target, target.function, given, tensors, keep)
    return kept | grads


def _seen_by_name(names: Sequence[str], watch: Watch) -> AbstractContextManager[None]:
    if not names:
        return nullcontext()
    from kcheck.worker.backends.cuda.profiler import launches_by_name

    return launches_by_name(names, watch.launches)


def _returned(value: Any, outputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returned tensors, copied; an output that is returned is compared already."""
    return {
        name: tensor.detach().clone(memory_format=torch.contiguous_format)
        for name, tensor in named_tensors(value)
        if not any(_is_same(tensor, output) for output in outputs)
    }


def _memory(value: Any) -> frozenset[int]:
    """Addresses of the memory of returned tensors."""
    return frozenset(tensor.untyped_storage().data_ptr() for _, tensor in named_tensors(value))


def _is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """The same elements in memory."""
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype


def user_frame(error: BaseException, target: Target) -> tuple[str, int]:
    """``(file, line)`` where user code raised: the innermost frame outside of torch, Triton and kcheck's worker.

    Args:
        error: With its traceback.
        target: Its definition is the answer where no such frame is left.
    """
    frames = traceback.extract_tb(error.__traceback__)
    outside = [f for f in frames if is_user_code(f.filename)]
    return (outside[-1].filename, outside[-1].lineno or 0) if outside else (target.file, target.line)
