"""Calling a target, or its oracle: forward, and backward where gradients are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from kcheck.errors import SpecError
from kcheck.objects import argument_of
from kcheck.target import GRAD_OUTPUT, Target

Tensors = Mapping[str, torch.Tensor]


def named_tensors(value: Any, name: str = "return") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors and numbers in a returned value, in order: ``return``, ``return[1]``, ``return['lse']``."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (bool, int, float)):
        yield name, torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from named_tensors(item, f"{name}[{i}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from named_tensors(item, f"{name}[{key!r}]")


def invoke(target: Target, given: Mapping[str, Any], tensors: Tensors) -> None:
    """Call a target, forward and backward, for its effects alone.

    Args:
        target: What to call.
        given: Its arguments, from `kcheck.worker.arguments.arguments`.
        tensors: The tensors in them, by path.
    """
    if target.grad:
        both_passes(target, target.function, given, tensors, lambda _: {})
    else:
        target.function(**given)


def both_passes(
    target: Target,
    function: Callable[..., Any],
    given: Mapping[str, Any],
    tensors: Tensors,
    keep: Callable[[Any], dict[str, torch.Tensor]],
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Call a function, then go back from what it returned to the gradients of its inputs.

    Args:
        target: Says which arguments have gradients.
        function: The target's, or its oracle.
        given: Arguments, and the incoming gradients.
        tensors: The tensors in them, by path.
        keep: Called with what the function returned, before the backward pass, which may overwrite it.

    Returns:
        What `keep` gave, and the gradients, ``x.grad`` for ``x``, dense; zeros where there is none.

    Raises:
        SpecError: The incoming gradients do not fit what was returned.
    """
    inputs = {
        path: tensor
        for path, tensor in tensors.items()
        if argument_of(path) in target.grad and tensor.dtype.is_floating_point
    }
    arguments = {name: value for name, value in given.items() if name != GRAD_OUTPUT}
    try:
        for tensor in inputs.values():
            tensor.requires_grad_(True)
        returned = function(**arguments)
        kept = keep(returned)
        ends = {name: tensor for name, tensor in named_tensors(returned) if tensor.requires_grad}
        incoming = _incoming(target, given.get(GRAD_OUTPUT), ends)
        torch.autograd.backward(list(ends.values()), incoming, inputs=list(inputs.values()))
        return kept, {f"{path}.grad": _gradient(tensor) for path, tensor in inputs.items()}
    finally:
        for tensor in inputs.values():
            tensor.requires_grad_(False)
            tensor.grad = None


def _gradient(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.grad is None:
        return torch.zeros_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
    return tensor.grad.detach().clone(memory_format=torch.contiguous_format)


def _incoming(target: Target, given: Any, ends: Tensors) -> list[torch.Tensor]:
    """The gradients that go in, one for each result that requires one."""
    incoming = [tensor for _, tensor in named_tensors(given)]
    have = [tuple(tensor.shape) for tensor in incoming]
    want = [tuple(tensor.shape) for tensor in ends.values()]
    if not want:
        raise SpecError(
            f"{target.file}:{target.line}: nothing that {target.name} or its oracle returns requires a gradient, but "
            f"grad names {', '.join(target.grad)}"
        )
    if have != want:
        shapes = ", ".join(f"{name} {shape}" for name, shape in zip(ends, want, strict=True))
        raise SpecError(
            f"{target.file}:{target.line}: {GRAD_OUTPUT} has the shapes {have}, but what requires a gradient is "
            f"{shapes}; give the case one tensor for each"
        )
    return incoming
