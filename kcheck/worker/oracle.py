"""What the result should be: the target's oracle, on dense contiguous clones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kcheck.case import Case, DTypeValue, Role, distinct
from kcheck.dtypes import dtype_named
from kcheck.errors import KcheckError, SpecError, quoted
from kcheck.target import Target
from kcheck.worker.arguments import arguments
from kcheck.worker.call import both_passes, named_tensors
from kcheck.worker.compare import SUMMATION_FACTOR
from kcheck.worker.doing import doing
from kcheck.worker.run import user_frame
from kcheck.worker.values import hashed

SENSITIVITY_DRAWS = 4
_SAMPLE = 16  # elements


def output_names(target: Target, case: Case) -> tuple[str, ...]:
    """Paths of the views that the target writes: those it declares, in that order, then what was drawn as an output."""
    views = case.views
    declared = [n for output in target.outputs for n in views if n == output or n.startswith(f"{output}[")]
    drawn = [name for name, view in views.items() if view.role in (Role.OUTPUT, Role.INOUT)]
    return tuple(dict.fromkeys((*declared, *drawn)))


def expected(
    target: Target, case: Case, contents: Mapping[str, torch.Tensor], returned: Sequence[str]
) -> dict[str, torch.Tensor]:
    """Call the oracle.

    Args:
        target: With an oracle.
        case: Its arguments.
        contents: Values of every view; the oracle gets clones.
        returned: Names of the tensors that the target returned beside its outputs.

    Returns:
        Expected values by output path, and by the names in `returned`.

    Raises:
        SpecError: The oracle raised, or gives too few tensors.
    """
    return _call(target, case, {name: tensor.clone() for name, tensor in contents.items()}, returned)


def expected_precise(
    target: Target, case: Case, contents: Mapping[str, torch.Tensor], returned: Sequence[str]
) -> dict[str, torch.Tensor] | None:
    """The oracle in float64: on float64 copies of every floating-point tensor. None if it does not run so."""
    precise = {  # copies, also of what is float64 already: an oracle may write into its arguments
        n: t.to(torch.float64, copy=True) if t.dtype.is_floating_point else t.clone() for n, t in contents.items()
    }
    widened = {
        name: DTypeValue("float64") if isinstance(v, DTypeValue) and dtype_named(v.name).is_float else v
        for name, v in case.args.items()
    }
    try:
        return _call(target, Case.of(widened, case.backings), precise, returned)
    except SpecError:
        return None


def sensitivity(
    target: Target, case: Case, contents: Mapping[str, torch.Tensor], precise: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """How far results move when every floating-point input moves by a rounding error: a measure of what a sum loses.

    An input is multiplied by 1 + e·r, r random in [-1, 1), e the machine epsilon of float32 (of float64 where the
    result is that); in the first draw all r are 1. Where terms cancel, random moves are much larger than the result's
    own rounding error; where they do not, errors add up as moves in one direction do.

    Args:
        target: With an oracle that runs in float64.
        case: Its arguments.
        contents: Values of every view.
        precise: Results in float64, from `expected_precise`.

    Returns:
        By output, the largest move over a few draws; float64, of the output's shape.
    """
    moves = {name: torch.zeros_like(value) for name, value in precise.items() if value.dtype.is_floating_point}
    returned = [name for name in precise if name.startswith("return")]
    doubles = any(tensor.dtype == torch.float64 for tensor in contents.values())
    epsilon = torch.finfo(torch.float64 if doubles else torch.float32).eps
    for draw in range(SENSITIVITY_DRAWS):
        moved = expected_precise(target, case, _perturbed(contents, epsilon, draw), returned) or {}
        for name in moves.keys() & moved.keys():
            if moved[name].shape != precise[name].shape:
                continue
            step = (moved[name] - precise[name]).abs().nan_to_num(nan=0.0, posinf=0.0)
            moves[name] = torch.maximum(moves[name], step if draw else step * _repetition(case))
    return moves


def _repetition(case: Case) -> float:
    """How much more a sum of equal terms loses than one of different terms: its rounding errors all have one sign.

    K equal terms lose up to K/2 machine epsilons of the sum.
    """
    most = max((view.layout.numel // max(distinct(view.layout), 1) for view in case.views.values()), default=1)
    return max(1.0, most / (2 * SUMMATION_FACTOR))


def _perturbed(contents: Mapping[str, torch.Tensor], epsilon: float, draw: int) -> dict[str, torch.Tensor]:
    moved = {}
    for ordinal, (name, tensor) in enumerate(contents.items()):
        if tensor.dtype.is_floating_point:
            bits = hashed(draw * len(contents) + ordinal, 0, tensor.numel(), tensor.device)
            r = (bits.double() / 2**31 - 1).reshape(tensor.shape) if draw else 1.0
            tensor = tensor.double() * (1 + epsilon * r)
        moved[name] = tensor
    return moved


def _call(
    target: Target, case: Case, tensors: Mapping[str, torch.Tensor], returned: Sequence[str]
) -> dict[str, torch.Tensor]:
    if target.oracle is None:
        raise SpecError(f"{target.name} has no oracle")
    try:
        with doing("oracle"):
            given, grads = _results(target, target.oracle, arguments(case, tensors), tensors)
    except KcheckError:
        raise
    except BaseException as error:
        file, line = user_frame(error, target)
        raise SpecError(f"{file}:{line}: the oracle raised {quoted(error)}") from None
    outputs = output_names(target, case)
    wanted = [*outputs, *returned]
    if not given and outputs and not returned:
        return {name: tensors[name] for name in outputs} | grads
    if not wanted or len(given) != len(wanted):
        names = f"{len(wanted)} results ({', '.join(wanted)})" if wanted else "a target that gives none"
        raise SpecError(
            f"{target.file}:{target.line}: the oracle returned {len(given)} tensors for {names}; name what the target "
            "writes in outputs=[...], and have the oracle return one tensor for each of these, then one for each that "
            "the target returns, or return None and write its own outputs"
        )
    return dict(zip(wanted, given, strict=True)) | grads


def _results(
    target: Target, function: Callable[..., Any], given: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """What the oracle returns, and gradients by name."""
    if not target.grad:
        return [tensor for _, tensor in named_tensors(function(**given))], {}

    def keep(returned: Any) -> dict[str, torch.Tensor]:
        return {name: tensor.detach() for name, tensor in named_tensors(returned)}

    kept, grads = both_passes(target, function, given, tensors, keep)
    return list(kept.values()), grads


def check_shapes(
    target: Target, expected_values: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]
) -> None:
    """Check that oracle and target agree on shapes.

    Raises:
        SpecError: They do not.
    """
    for name, value in expected_values.items():
        if name in outputs and value.shape != outputs[name].shape:
            raise SpecError(
                f"{target.file}:{target.line}: the oracle gives {name} the shape {tuple(value.shape)}, the target "
                f"{tuple(outputs[name].shape)}; make the oracle return what the target writes"
            )


def constant_value(values: Mapping[str, torch.Tensor]) -> str | None:
    """The one value that all elements of all results have, as text (``nan`` for all NaN).

    Returns:
        None if they differ; ``""`` if no result has two elements to tell by.
    """
    seen: set[str] = set()
    for tensor in values.values():
        if tensor.numel() < 2:
            continue
        sample = tensor.flatten()[:_SAMPLE].double().tolist()
        if len({str(value + 0.0) for value in sample}) > 1:  # one look, where all of it would take many
            return None
        first = tensor.flatten()[0].double()
        same = tensor.double().isnan() if first.isnan() else tensor.double() == first
        if not bool(same.all()):
            return None
        seen.add(str(float(first) + 0.0))  # so that -0.0 is 0.0
    if len(seen) > 1:
        return None
    return seen.pop() if seen else ""
