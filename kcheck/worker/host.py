"""Tensors in host memory, told from those on the device where both are memory of the CPU."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kcheck.case import Case
from kcheck.worker.arena import Placement

_MARK = "_kcheck_host"


def mark_host(tensor: torch.Tensor) -> torch.Tensor:
    """Mark a tensor as lying in host memory; gives the same tensor."""
    setattr(tensor, _MARK, True)
    return tensor


def is_host(tensor: torch.Tensor) -> bool:
    """Whether a tensor was marked."""
    return _MARK in tensor.__dict__


def on_host(case: Case, contents: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The values of all views, those of host tensors in host memory."""
    hosts = {name for name, view in case.views.items() if view.host}
    return {n: t.cpu() if n in hosts else t for n, t in contents.items()} if hosts else contents


def place_on_host(placement: Placement, contents: Mapping[str, torch.Tensor]) -> None:
    """Put the host tensors of a placement into host memory, where they are not there already."""
    for name, view in placement.case.views.items():
        if view.host and placement.tensors[name].device.type != "cpu":
            layout = placement.layouts[name]
            backing = torch.zeros(layout.backing_numel, dtype=contents[name].dtype)
            placement.tensors[name] = backing.as_strided(layout.shape, layout.strides, layout.first)
            _copy(placement.tensors[name], contents[name])


def _copy(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Element by element: the elements of an expanded tensor are one, and so are their values."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] > 1:
            tensor, values = tensor.narrow(axis, 0, 1), values.narrow(axis, 0, 1)
    tensor.copy_(values)
