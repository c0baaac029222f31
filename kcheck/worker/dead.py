"""Dead elements: parts of an argument that must not influence the result, such as the tail of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from kcheck.case import Case, View
from kcheck.dtypes import dtype_named
from kcheck.errors import SpecError, quoted
from kcheck.objects import argument_of
from kcheck.target import GRAD_OUTPUT, Target
from kcheck.worker.arguments import arguments
from kcheck.worker.call import named_tensors
from kcheck.worker.decoys import decoy_bytes, decoy_range
from kcheck.worker.run import user_frame
from kcheck.worker.values import torch_dtype

Masks = dict[str, torch.Tensor]
NAN = 2  # in place of a set of decoys


def dead_masks(target: Target, case: Case, contents: Mapping[str, torch.Tensor]) -> Masks:
    """Which elements are dead, by view.

    Args:
        target: Its functions are asked.
        case: The arguments.
        contents: Values of every view.

    Raises:
        SpecError: A function raises, or gives no mask of its argument's shape.
    """
    found: Masks = {}
    for argument, function in target.dead.items():
        given = arguments(case, {name: tensor.clone() for name, tensor in contents.items()})
        given.pop(GRAD_OUTPUT, None)
        try:
            masks = [mask for _, mask in named_tensors(function(**given))]
        except Exception as error:
            file, line = user_frame(error, target)
            raise SpecError(f"{file}:{line}: the dead mask of {argument} raised {quoted(error)}") from None
        paths = [name for name in contents if argument_of(name) == argument]
        for path, mask in zip(paths, masks, strict=False):
            found[path] = mask.to(contents[path].device)
        wrong = len(masks) != len(paths) or any(
            found[path].dtype != torch.bool or found[path].shape != contents[path].shape for path in paths
        )
        if wrong:
            given_shapes = ", ".join(f"{mask.dtype} {tuple(mask.shape)}" for mask in masks)
            wanted = ", ".join(f"{path} {tuple(contents[path].shape)}" for path in paths)
            raise SpecError(
                f"{target.file}:{target.line}: the dead mask of {argument} is {given_shapes or 'no tensor'}; expected "
                f"torch.bool of the shape of {wanted}"
            )
    return found


def with_dead(
    case: Case, contents: Mapping[str, torch.Tensor], masks: Mapping[str, torch.Tensor], which: int
) -> dict[str, torch.Tensor]:
    """The contents with other values in dead elements.

    Args:
        case: The arguments.
        contents: Values of every view.
        masks: Dead elements.
        which: 0 or 1 for one of two sets of values that look valid; `NAN` for NaN, where the type has it.
    """
    changed = dict(contents)
    for name, mask in masks.items():
        changed[name] = torch.where(
            _whole(mask, case.views[name]), _values(case.views[name], mask, which), contents[name]
        )
    return changed


def _whole(mask: torch.Tensor, view: View) -> torch.Tensor:
    """An element that stands for several is dead if all of them are."""
    for axis, dim in enumerate(view.layout.dims):
        if dim.expanded:
            mask = mask.all(axis, keepdim=True).expand(mask.shape)
    return mask


def _values(view: View, mask: torch.Tensor, which: int) -> torch.Tensor:
    kind = dtype_named(view.dtype)
    if which == NAN and kind.is_float:
        return torch.full((), math.nan, device=mask.device).to(torch_dtype(view.dtype)).expand(mask.shape)
    sizes = [1 if dim.expanded else dim.size for dim in view.layout.dims]
    low, high = decoy_range(view)
    made = decoy_bytes(kind, low, high, math.prod(sizes) * kind.itemsize, which % 2, mask.device)
    return made.view(torch_dtype(view.dtype)).reshape(sizes).expand(mask.shape)
