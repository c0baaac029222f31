"""What each tensor argument of a launch may touch, and the tagged pointers that tell arguments apart.

A pointer is ``tag << 48 | address``: pointer arithmetic keeps the tag, so an address computed from ``x`` that lands in
``y`` is still known to come from ``x``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.base import Region
from kcheck.worker.backends.interpret.membership import Addresses, Bools, View

if TYPE_CHECKING:
    from kcheck.worker.backends.interpret.shadow import Shadow

TAG_SHIFT = 48
TAG_SHIFT_U64 = np.uint64(TAG_SHIFT)
ADDRESS_MASK = np.uint64((1 << TAG_SHIFT) - 1)
# Odd, so that tags differ, and large, so that an offset beyond 2**48 bytes rarely turns one tag into another in use.
_TAG_STEP = 40503

# The method under torch.Tensor.data_ptr, which is replaced while a watch is entered.
data_ptr = torch._C.TensorBase.data_ptr


class _Bytes:
    """Memory in the form that numpy adopts without a copy.

    Not a `Backing`, which keeps the arrays: numpy's arrays take no part in the search for cycles.
    """

    def __init__(self, address: int, size: int, owner: object) -> None:
        self._owner = owner  # keeps the memory alive
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}


class Backing:
    """The storage of a tensor as plain memory."""

    def __init__(self, address: int, size: int, owner: object) -> None:
        self.address = address
        self.size = size
        self._owner = owner
        self._flat: dict[Any, npt.NDArray[Any]] = {}

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Backing:
        """The storage under `tensor`."""
        storage = tensor.untyped_storage()
        return cls(storage.data_ptr(), storage.nbytes(), storage)

    def flat(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """The memory as a flat array of whole elements, from its first byte."""
        array = self._flat.get(dtype)
        if array is None:
            whole = self.size // dtype.itemsize * dtype.itemsize
            raw = np.asarray(_Bytes(self.address, self.size, self._owner)) if self.size else np.empty(0, np.uint8)
            array = self._flat[dtype] = raw[:whole].view(dtype)
        return array

    def holds(self, address: int, width: int) -> bool:
        """Whether `width` bytes at `address` all lie in this memory."""
        return self.address <= address and address + width <= self.address + self.size


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A region with its cells and its memory worked out."""

    region: Region
    view: View
    backing: Backing

    @classmethod
    def of(cls, region: Region) -> Cells:
        """Work out a region."""
        return cls(region, view_of(region.tensor), Backing.of(region.tensor))


def view_of(tensor: torch.Tensor) -> View:
    """The cells of a tensor."""
    return View(data_ptr(tensor), tensor.element_size(), tensor.shape, tensor.stride())


class Argument:
    """One tensor argument of one launch.

    Args:
        number: Position among the tensor arguments of the launch, from 1.
        name: Name of the region, or the kernel's parameter for a tensor that the wrapper made.
        parameter: The kernel's parameter.
        tensor: What the wrapper passed.
        views: What may be touched.
        writable: Which of `views` may be written; kept as `may_write`.
        shown: The view whose indices name a stray access.
        backing: The storage.

    Attributes:
        shadow: Who touched its memory, where that is followed.
    """

    shadow: Shadow | None = None

    def __init__(
        self, number: int, name: str, parameter: str, tensor: torch.Tensor, views: Sequence[View],
        writable: Sequence[bool], shown: View, backing: Backing,
    ) -> None:  # fmt: skip
        self.tag = number * _TAG_STEP & 0xFFFF
        self.name = name
        self.parameter = parameter
        self.dtype = tensor.dtype
        self.views = tuple(views)
        self.shown = shown
        self.backing = backing
        self.may_write = tuple(writable)
        self.writable = all(writable)
        self._writable_views = [view for view, allowed in zip(views, writable, strict=True) if allowed]
        high = self.tag << TAG_SHIFT
        self.pointer = np.uint64(high | data_ptr(tensor))
        self.backing_pointer = np.uint64(high | backing.address)
        self._first = views[0]
        self.first_pointer = np.uint64(high | self._first.address)
        self._others = [(np.uint64(high | view.address), view) for view in views[1:]]

    def outside(self, pointers: Addresses, width: int) -> Bools:
        """Which tagged pointers reach `width` bytes that are not all cells of one of the views."""
        bad = self._first.outside(pointers - self.first_pointer, width)
        for pointer, view in self._others:
            bad &= view.outside(pointers - pointer, width)
        return bad

    def writes_refused(self, pointers: Addresses, width: int) -> Bools:
        """Which tagged pointers reach cells of no view that may be written."""
        refused = np.ones(pointers.shape, bool)
        for view in self._writable_views:
            refused &= view.outside((pointers & ADDRESS_MASK) - np.uint64(view.address), width)
        return refused

    def first_bad_byte(self, address: int, width: int) -> int:
        """Address of the first byte of a stray access that belongs to no view."""
        span = range(address, address + width)
        return next((byte for byte in span if not any(view.owns(byte) for view in self.views)), address)


def match(tensor: torch.Tensor, parameter: str, number: int, regions: Sequence[Cells]) -> Argument:
    """Find what a tensor that was passed to a kernel may touch.

    A tensor over the storage of a region may touch the cells of that region, not merely its own: wrappers pass slices
    and walk from them. One with another storage was made by the wrapper and may touch all of its storage.
    """
    backing = Backing.of(tensor)
    sharing = [cells for cells in regions if _same_storage(tensor, backing, cells)]
    if not sharing:
        whole = View(backing.address, 1, (backing.size,), (1,))
        return Argument(number, parameter, parameter, tensor, [whole], [True], view_of(tensor), backing)
    chosen = _narrow(tensor, sharing) if len(sharing) > 1 else sharing
    named = next((cells for cells in chosen if cells.region.name == parameter.removesuffix("_ptr")), chosen[0])
    return Argument(
        number, named.region.name, parameter, tensor, [cells.view for cells in chosen],
        [cells.region.writable for cells in chosen], named.view, named.backing,
    )  # fmt: skip


def _same_storage(tensor: torch.Tensor, backing: Backing, cells: Cells) -> bool:
    if backing.size == 0 or cells.backing.size == 0:  # all empty storages have the same address
        return tensor is cells.region.tensor
    return backing.address == cells.backing.address


def _narrow(tensor: torch.Tensor, sharing: Sequence[Cells]) -> Sequence[Cells]:
    """Of several regions over one storage: the identical ones, else those that contain the tensor, else all."""
    own = view_of(tensor)
    identical = [
        cells
        for cells in sharing
        if (cells.view.address, cells.view.shape, cells.view.stride) == (own.address, own.shape, own.stride)
        and cells.view.itemsize == own.itemsize
    ]
    if identical or tensor.numel() == 0:
        return identical or sharing
    reach = sum(step * (count - 1) for count, step in zip(own.shape, own.stride, strict=True)) * own.itemsize
    ends = (own.address, own.address + reach)
    containing = [cells for cells in sharing if all(cells.view.owns(end, own.itemsize) for end in ends)]
    return containing or sharing
