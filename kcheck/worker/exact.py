"""Placement under compute-sanitizer: each backing is an allocation of its own and of its exact size.

No red zones and no common buffer: the tools know allocations, not tensors. What no view covers (gaps), and outputs
before the run, hold *wild* values: whatever a kernel computes from them leads out of every allocation, or to NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from kcheck.case import Case, Role, View
from kcheck.dtypes import dtype_named
from kcheck.errors import CouldNotCheck
from kcheck.layout import Layout
from kcheck.worker.values import torch_dtype

# As an index of bytes it is 291 MiB away; multiplied by a small power of two and wrapped in 32 bits it does not come
# back to the first elements; and it is easy to recognise.
WILD = 0x12345678


@dataclass(slots=True)
class ExactPlacement:
    """A case's arguments as tensors, each backing in memory of its own.

    Attributes:
        tensors: Every view by its path; they keep the memory alive.
        addresses: Address of each backing; those of zero bytes have none.
        spans: ``(address, bytes)`` of each backing.
    """

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)


def place_exact(
    case: Case, contents: Mapping[str, torch.Tensor], device: str, *, unwritten: bool = False
) -> ExactPlacement:
    """Lay out a case and fill it.

    Args:
        case: What to place, roles set.
        contents: Values of every view, on the CPU.
        device: Where.
        unwritten: Leave outputs and scratch as the device gives them, so that a read of them is uninitialised.

    Raises:
        CouldNotCheck: The device has not so much memory.
    """
    placement = ExactPlacement()
    for name, backing in case.backings.items():
        views = {path: view for path, view in case.views.items() if view.backing == name}
        if not views:
            continue
        memory = _allocate(backing.nbytes, device)
        _fill(memory, views, contents, unwritten=unwritten)
        typed = memory.view(torch_dtype(backing.dtype))
        for path, view in views.items():
            placement.tensors[path] = typed.as_strided(view.layout.shape, view.layout.strides, view.layout.first)
        if backing.nbytes:
            placement.addresses[name] = memory.data_ptr()
            placement.spans.append((memory.data_ptr(), backing.nbytes))
    return placement


def wild_value(view: View) -> float | int:
    """What lies in gaps around a view: NaN, or an integer far beyond what addresses anything (as far as it fits)."""
    dtype = dtype_named(view.dtype)
    if dtype.is_float:
        return float("nan")
    return min(max(WILD, 2 * (view.bound or 0)), dtype.high)


def _allocate(nbytes: int, device: str) -> torch.Tensor:
    try:
        return torch.empty(nbytes, dtype=torch.uint8, device=device)
    except (RuntimeError, AssertionError) as error:  # the second where torch was built without CUDA
        raise CouldNotCheck(f"{device} gives no memory for a tensor of {nbytes:,} bytes: {error}") from None


def _fill(
    memory: torch.Tensor, views: Mapping[str, View], contents: Mapping[str, torch.Tensor], *, unwritten: bool
) -> None:
    """Write a backing: made on the CPU and copied, so that the tools see as few other kernels as possible."""
    view = next(iter(views.values()))
    size = dtype_named(view.dtype).itemsize
    numel = memory.numel() // size
    value = torch.tensor([wild_value(view)]).to(torch_dtype(view.dtype))
    image = value.view(torch.uint8).repeat(numel)
    written = torch.ones(numel, dtype=torch.bool)
    typed = image.view(value.dtype)
    for view in views.values():
        if unwritten and view.role in (Role.OUTPUT, Role.SCRATCH):
            _cells(written, view.layout).fill_(False)
    for path, view in views.items():
        if view.role not in (Role.OUTPUT, Role.SCRATCH):
            _cells(written, view.layout).fill_(True)
            _cells(typed, view.layout).copy_(contents[path][_once(view.layout)])
    if bool(written.all()):
        memory.copy_(image)
        return
    places = (written.nonzero() * size + torch.arange(size)).flatten()
    memory.index_copy_(0, places.to(memory.device), image[places].to(memory.device))


def _cells(elements: torch.Tensor, layout: Layout) -> torch.Tensor:
    """The view's elements in its backing, each once."""
    return elements.as_strided(layout.shape, layout.strides, layout.first)[_once(layout)]


def _once(layout: Layout) -> tuple[slice, ...]:
    """An index that cuts expanded dimensions to size 1."""
    return tuple(slice(0, 1) if dim.expanded else slice(None) for dim in layout.dims)
