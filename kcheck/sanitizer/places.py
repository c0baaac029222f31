"""Turns a device address back into a tensor, an index of it, and a distance from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcheck.layout import Layout
from kcheck.sanitizer.log import Nearest

_NEAR = 4096  # bytes: an access this close to a tensor is held for that tensor's


@dataclass(frozen=True, slots=True)
class Allocation:
    """A tensor argument in device memory.

    Attributes:
        name: The argument.
        address: Device address of the backing's first byte.
        nbytes: Size of the backing.
        layout: Where the view is in its backing.
        itemsize: Bytes an element.
    """

    name: str
    address: int
    nbytes: int
    layout: Layout
    itemsize: int

    def distance(self, address: int) -> int:
        """Bytes from the allocation to an address: positive behind the end, negative in front, 0 if it is inside.

        The first byte behind the end is 1 away.
        """
        if address < self.address:
            return address - self.address
        return max(0, address - (self.address + self.nbytes) + 1)

    def fits(self, address: int, size: int) -> bool:
        """An access of `size` bytes there could be one of whole elements of this tensor."""
        return size % self.itemsize == 0 and (address - self.address) % self.itemsize == 0


@dataclass(frozen=True, slots=True)
class Place:
    """What an address is, seen from the tensors.

    Attributes:
        text: In words: ``k_cache[3, 0]``, ``36 GiB past the end of k_cache, index 1048576 of 512 in dimension 0``.
        argument: The tensor that was meant, ``""`` if that is a guess.
        index: Logical index in that tensor, which may be out of range. Empty if the address is none of its elements.
        cells: Backing elements of it that were accessed. May be negative or beyond the backing.
    """

    text: str
    argument: str = ""
    index: tuple[int, ...] = ()
    cells: tuple[int, ...] = ()


def place(address: int, size: int, allocations: Sequence[Allocation], nearest: Nearest | None) -> Place:
    """Say what an address is.

    Args:
        address: Of the access.
        size: Bytes accessed, at least 1.
        allocations: The tensor arguments.
        nearest: The allocation that the tool names; it may be one that the wrapper under test made.
    """
    inside = [allocation for allocation in allocations if allocation.distance(address) == 0]
    if inside:
        return _inside(inside, address, size)
    fitting = [allocation for allocation in allocations if allocation.fits(address, size)]
    candidates = sorted(fitting or allocations, key=lambda allocation: abs(allocation.distance(address)))
    known = nearest is None or any(allocation.address == nearest.address for allocation in allocations)
    if candidates:
        closest = candidates[0]
        sure = (known and len(fitting) == 1) or abs(closest.distance(address)) <= _NEAR
        if sure or known:
            return _outside(closest, address, size, sure=sure)
    if nearest is not None:
        distance = Allocation("", nearest.address, nearest.nbytes, Layout(()), 1).distance(address)
        other = " that is no argument" if allocations else ""
        return Place(f"{_away(distance)} an allocation of {bytes_text(nearest.nbytes)}{other}")
    return Place(f"address {address:#x}")


def _inside(inside: Sequence[Allocation], address: int, size: int) -> Place:
    """Of several views over one allocation, the one that has the element."""
    owner = next((view for view in inside if view.layout.index_at(_element(view, address)) is not None), inside[0])
    element = _element(owner, address)
    index = owner.layout.index_at(element)
    beyond = address + size - (owner.address + owner.nbytes)
    text = f"{owner.name}{_brackets(index)}" if index is not None else f"a gap of {owner.name}, element {element} of it"
    if beyond > 0:
        text += f", the last {bytes_text(beyond)} of the access past its end"
    return Place(text, owner.name, index or (), _cells(owner, address, size))


def _outside(closest: Allocation, address: int, size: int, *, sure: bool) -> Place:
    index, dimension = index_beyond(closest.layout, _element(closest, address))
    text = f"{_away(closest.distance(address))} {closest.name}"
    if not sure:
        return Place(f"{text}, the nearest tensor")
    if dimension is not None and not 0 <= index[dimension] < closest.layout.shape[dimension]:
        text += f", index {index[dimension]} of {closest.layout.shape[dimension]} in dimension {dimension}"
    exact = closest.layout.numel > 0 and closest.layout.offset_of(index) == _element(closest, address)
    return Place(text, closest.name, index if exact else (), _cells(closest, address, size))


def index_beyond(layout: Layout, element: int) -> tuple[tuple[int, ...], int | None]:
    """Logical index of a backing element that may lie outside the backing, and the dimension that runs out of range.

    The dimension with the largest stride takes all that is too much: that is how a wrong page id, or row number, gets
    there. The index is the last one at or before the element where the view has no cell there.

    Args:
        layout: The view.
        element: Counted from the start of the backing.
    """
    strides, dims = layout.strides, layout.dims
    walk = [i for i in range(layout.rank) if strides[i] and dims[i].size and dims[i].free_stride is None]
    walk.sort(key=lambda i: (strides[i], dims[i].size), reverse=True)
    index, rest = [0] * layout.rank, element - layout.first
    for i in walk:
        index[i], rest = divmod(rest, strides[i])
        if i != walk[0] and index[i] >= dims[i].size:
            index[i], rest = dims[i].size - 1, 0
    return tuple(index), walk[0] if walk else None


def bytes_text(nbytes: int) -> str:
    """A size: ``1 byte``, ``4,000 bytes``, ``26.7 GiB``."""
    if nbytes < 1 << 20:
        return f"{nbytes:,} byte{'' if nbytes == 1 else 's'}"
    value, exponent = float(nbytes), 0
    while value >= 1024 and exponent < 5:
        value, exponent = value / 1024, exponent + 1
    return f"{value:.1f}".removesuffix(".0") + " " + ("KiB", "MiB", "GiB", "TiB", "PiB")[exponent - 1]


def _away(distance: int) -> str:
    return f"{bytes_text(abs(distance))} {'past the end of' if distance > 0 else 'in front of'}"


def _element(allocation: Allocation, address: int) -> int:
    return (address - allocation.address) // allocation.itemsize


def _cells(allocation: Allocation, address: int, size: int) -> tuple[int, ...]:
    return tuple(range(_element(allocation, address), _element(allocation, address + size - 1) + 1))


def _brackets(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""
