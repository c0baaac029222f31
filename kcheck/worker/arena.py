"""The arena: guarded memory that a case's tensors live in.

Each backing sits between red zones. Red zones and gaps (bytes that no view reaches) hold *decoys*: valid-looking
values, different in every element between two runs of unlike `Style`, so that a read of them shows in the result.
What changes outside of writable views is found by comparing the memory before and after.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from kcheck.case import Case, DTypeValue, Role, Value, View
from kcheck.dtypes import dtype_named
from kcheck.errors import CouldNotCheck
from kcheck.layout import Layout
from kcheck.worker.values import floats, hashed, torch_dtype, values

ALIGNMENT = 256  # bytes; torch's CUDA allocator gives no less
RED_ZONE = 512  # bytes on either side of a backing
SPARSE_BYTES = 1 << 28  # from this size on a backing is reserved, not filled
MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
DECOY_SEED = 0xDEC0


@dataclass(frozen=True, slots=True)
class Style:
    """What must not matter, and so differs between two runs of a case.

    Attributes:
        decoys: 0 or 1: which of two sets of decoys lies in gaps and red zones.
        poison: Byte that outputs and scratch are filled with before the run.
    """

    decoys: int = 0
    poison: int = 0xA5


@dataclass(slots=True)
class Slot:
    """One backing, placed.

    Attributes:
        name: Of the backing.
        memory: Its bytes, a tensor of uint8 whose storage they are.
        guarded: The same with both red zones; shares memory. Equal to `memory` where there are none (sparse).
        writable: Byte mask over `guarded`: what some writable view covers. None for a sparse backing.
        before: Bytes of `guarded` before the run. None for a sparse backing.
    """

    name: str
    memory: torch.Tensor
    guarded: torch.Tensor
    writable: torch.Tensor | None = None
    before: torch.Tensor | None = None

    @property
    def sparse(self) -> bool:
        """Reserved memory without red zones, too large to fill or compare."""
        return self.guarded is self.memory

    def disturbed(self) -> torch.Tensor:
        """Bytes that changed although no writable view covers them.

        Returns:
            Offsets relative to the backing's first byte, int64 of shape (count,); negative in the red zone in front.
        """
        if self.before is None or self.writable is None:
            return torch.empty(0, dtype=torch.int64)
        changed = (self.guarded != self.before) & ~self.writable
        return changed.nonzero().flatten() - RED_ZONE


@dataclass(slots=True)
class Placement:
    """A case's arguments as tensors in guarded memory.

    Attributes:
        args: Arguments of the target.
        tensors: Every view by its path.
        layouts: Layout of every view as placed (contiguous where the case was made dense).
        slots: Backings by name.
    """

    args: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    layouts: dict[str, Layout]
    slots: dict[str, Slot] = field(default_factory=dict)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """``(address, bytes)`` that are safe to read: backings with their red zones."""
        return [(slot.guarded.data_ptr(), slot.guarded.numel()) for slot in self.slots.values()]


def dense_values(case: Case, device: str = "cpu") -> dict[str, torch.Tensor]:
    """The values of every view, dense, of the view's shape (expanded dimensions are repeated)."""
    made = {}
    for name, view in case.views.items():
        compact = tuple(min(dim.size, 1) if dim.expanded else dim.size for dim in view.layout.dims)
        made[name] = values(view.fill, view.dtype, compact, device).expand(view.layout.shape).contiguous()
    return made


def resolve(value: Value, name: str, tensors: Mapping[str, torch.Tensor]) -> Any:
    """An argument with its views replaced by tensors and its data types by torch's."""
    if isinstance(value, View):
        return tensors[name]
    if isinstance(value, DTypeValue):
        return torch_dtype(value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(resolve(item, f"{name}[{i}]", tensors) for i, item in enumerate(value))
    return value


def arguments(case: Case, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """All arguments of a case over these tensors (by path)."""
    return {name: resolve(value, name, tensors) for name, value in case.args.items()}


class Arena:
    """Places cases on the CPU; one buffer serves all cases of a worker."""

    def __init__(self) -> None:
        self._buffer = torch.empty(0, dtype=torch.uint8)

    def place(
        self, case: Case, contents: Mapping[str, torch.Tensor], style: Style, dense: frozenset[str] = frozenset()
    ) -> Placement:
        """Lay out a case and fill it.

        Args:
            case: What to place.
            contents: Values of every view, from `dense_values`.
            style: Decoys and poison.
            dense: Views to be made contiguous, each in memory of its own.

        Raises:
            CouldNotCheck: The system does not give the memory.
        """
        layouts = {
            name: Layout.contiguous(view.layout.shape) if name in dense else view.layout
            for name, view in case.views.items()
        }
        homes = {name: f"{name} (dense)" if name in dense else view.backing for name, view in case.views.items()}
        placement = Placement({}, {}, layouts)
        self._allot(case, placement, homes)
        for name, view in case.views.items():
            slot, layout = placement.slots[homes[name]], layouts[name]
            typed = slot.memory.view(torch_dtype(view.dtype))
            placement.tensors[name] = typed.as_strided(layout.shape, layout.strides, layout.first)
        self._fill(case, placement, contents, style, homes)
        placement.args = arguments(case, placement.tensors)
        return placement

    def _allot(self, case: Case, placement: Placement, homes: Mapping[str, str]) -> None:
        """Give every backing its memory, between red zones."""
        sizes = {}
        for name, view in case.views.items():
            sizes[homes[name]] = placement.layouts[name].backing_numel * dtype_named(view.dtype).itemsize
        small = {name: nbytes for name, nbytes in sizes.items() if nbytes < SPARSE_BYTES}
        pitch = {name: -(-nbytes // ALIGNMENT) * ALIGNMENT + 2 * RED_ZONE for name, nbytes in small.items()}
        buffer = self._reserve(sum(pitch.values()))
        start = 0
        for name, nbytes in sizes.items():
            if name not in small:
                memory = _sparse(nbytes)
                placement.slots[name] = Slot(name, memory, memory)
                continue
            guarded = buffer[start : start + nbytes + 2 * RED_ZONE]
            # Through numpy, so that the backing has a storage of its own: code under test may ask for its size.
            memory = torch.from_numpy(guarded.numpy()[RED_ZONE : RED_ZONE + nbytes])
            placement.slots[name] = Slot(name, memory, guarded)
            start += pitch[name]

    def _reserve(self, nbytes: int) -> torch.Tensor:
        """At least that many bytes, aligned."""
        if self._buffer.numel() < nbytes + ALIGNMENT:
            self._buffer = torch.empty(nbytes + ALIGNMENT, dtype=torch.uint8)
        start = -self._buffer.data_ptr() % ALIGNMENT
        return self._buffer[start : start + nbytes]

    def _fill(
        self,
        case: Case,
        placement: Placement,
        contents: Mapping[str, torch.Tensor],
        style: Style,
        homes: Mapping[str, str],
    ) -> None:
        owners = {homes[name]: view for name, view in case.views.items()}
        for name, slot in placement.slots.items():
            if not slot.sparse:
                slot.guarded.copy_(decoy_bytes(owners[name], slot.guarded.numel(), style.decoys))
        for name, view in case.views.items():
            tensor = placement.tensors[name]
            if view.role in (Role.OUTPUT, Role.SCRATCH):
                poison(tensor, style.poison)
            else:
                _distinct(tensor, placement.layouts[name]).copy_(_distinct(contents[name], placement.layouts[name]))
        for slot in placement.slots.values():
            if not slot.sparse:
                slot.before = slot.guarded.clone()
                slot.writable = _writable_bytes(case, placement, homes, slot)


def decoy_bytes(view: View, nbytes: int, which: int) -> torch.Tensor:
    """Decoys of a view's data type.

    Args:
        view: A view of the backing; its bound says which indices look valid.
        nbytes: Bytes wanted; the red zone's size is a multiple of every itemsize.
        which: 0 or 1; the two sets differ in every element (for an index, where its bound is at least 2).

    Returns:
        A tensor of uint8, shape (nbytes,).
    """
    dtype = dtype_named(view.dtype)
    count = -(-nbytes // dtype.itemsize)
    bits = hashed(DECOY_SEED, 0, count)
    if dtype.is_float:
        bits = bits ^ (which << 31)  # moves every value by 1
        typed = floats(bits, dtype, 0)
    else:
        low, high = _decoy_range(view)
        size = high - low + 1
        shift = which * (1 + hashed(DECOY_SEED + 1, 0, count) % max(size - 1, 1))
        typed = (low + (bits % size + shift) % size).to(torch_dtype(dtype.name))
    return typed.view(torch.uint8)[:nbytes]


def _decoy_range(view: View) -> tuple[int, int]:
    """Values that look valid where this view's do."""
    if view.bound is not None:
        return 0, max(view.bound - 1, 0)
    fill = view.fill
    if fill.kind == "hashed":
        return fill.low, fill.high
    numbers = [int(value) for value in fill.values] or [0]
    return min(numbers), max(numbers)


def poison(tensor: torch.Tensor, byte: int) -> None:
    """Fill every byte of a view's elements."""
    pattern = torch.full((tensor.element_size(),), byte, dtype=torch.uint8)
    if tensor.dtype == torch.bool:  # 0 and 1 are the only valid bytes
        pattern = pattern & 1
    tensor.copy_(pattern.view(tensor.dtype).expand(tensor.shape))


def _distinct(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """The view without its repetitions: expanded dimensions cut to size 1."""
    for axis, dim in enumerate(layout.dims):
        if dim.expanded and dim.size > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _writable_bytes(case: Case, placement: Placement, homes: Mapping[str, str], slot: Slot) -> torch.Tensor:
    mask = torch.zeros(slot.guarded.numel(), dtype=torch.bool)
    inner = mask[RED_ZONE : RED_ZONE + slot.memory.numel()]
    for name, view in case.views.items():
        if homes[name] != slot.name or not view.role.writable:
            continue
        layout, size = placement.layouts[name], dtype_named(view.dtype).itemsize
        strides = (*(stride * size for stride in layout.strides), 1)
        inner.as_strided((*layout.shape, size), strides, inner.storage_offset() + layout.first * size).fill_(True)
    return mask


def _sparse(nbytes: int) -> torch.Tensor:
    """Memory that costs nothing until it is touched; zero bytes, no red zones.

    Raises:
        CouldNotCheck: The system refuses.
    """
    try:
        memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    except (OSError, ValueError, OverflowError) as error:
        raise CouldNotCheck(f"the system gives no sparse memory of {nbytes / 2**30:.1f} GiB: {error}") from None
    return torch.frombuffer(memory, dtype=torch.uint8)
