"""The arena: guarded memory that a case's tensors live in.

Each backing sits between red zones. Red zones and gaps (bytes that no view reaches) hold *decoys*, so that a read of
them shows in the result. What changes outside of writable views is found by comparing the memory before and after.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from kcheck.case import Case, Role
from kcheck.dtypes import dtype_named
from kcheck.errors import CouldNotCheck
from kcheck.layout import Layout
from kcheck.worker.decoys import Decoys, Style, poison
from kcheck.worker.values import torch_dtype, values

ALIGNMENT = 256  # bytes; torch's CUDA allocator gives no less
RED_ZONE = 512  # bytes on either side of a backing
SPARSE_BYTES = 1 << 28  # from this size on a backing is reserved, not filled
MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
MOST_ELEMENTS = 1 << 29  # of one view; values are made as int64


@dataclass(frozen=True, slots=True)
class Slot:
    """One backing, placed.

    Attributes:
        memory: Its bytes, a tensor of uint8 with a storage of its own.
        start: Where they begin in the arena's buffer, red zone not counted; -1 for a sparse backing, which has none.
    """

    memory: torch.Tensor
    start: int = -1

    @property
    def sparse(self) -> bool:
        """Reserved memory without red zones, too large to fill or compare."""
        return self.start < 0

    @property
    def guarded(self) -> slice:
        """The backing with both red zones, in the arena's buffer."""
        return slice(self.start - RED_ZONE, self.start + self.memory.numel() + RED_ZONE)


@dataclass(slots=True)
class Placement:
    """A case's arguments as tensors in guarded memory.

    Attributes:
        case: The case.
        layouts: Layout of every view as placed (contiguous where the case was made dense).
        homes: Backing of every view as placed.
        slots: Backings by name.
        buffer: The arena's bytes that hold the backings, sparse ones excepted.
        tensors: Every view by its path.
        before: `buffer` before the run.
        writable: Bytes of `buffer` that some writable view covers, as a mask.
    """

    case: Case
    layouts: dict[str, Layout]
    homes: dict[str, str]
    slots: dict[str, Slot]
    buffer: torch.Tensor
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    before: torch.Tensor | None = None
    writable: torch.Tensor | None = None

    @property
    def spans(self) -> list[tuple[int, int]]:
        """``(address, bytes)`` that are safe to read: backings with their red zones."""
        found = []
        for slot in self.slots.values():
            memory = slot.memory if slot.sparse else self.buffer[slot.guarded]
            found.append((memory.data_ptr(), memory.numel()))
        return found

    def views_of(self, backing: str) -> list[str]:
        """Paths of the views over a backing."""
        return [name for name, home in self.homes.items() if home == backing]

    def disturbed(self) -> dict[str, torch.Tensor]:
        """Bytes that changed although no writable view covers them.

        Returns:
            By backing, offsets from its first byte: int64 of shape (count,), negative in the red zone in front.
        """
        if self.before is None or self.writable is None:
            return {}
        changed = (self.buffer != self.before) & ~self.writable
        if not bool(changed.any()):
            return {}
        found = {}
        for name, slot in self.slots.items():
            if not slot.sparse and bool(changed[slot.guarded].any()):
                found[name] = changed[slot.guarded].nonzero().flatten().cpu() - RED_ZONE
        return found


def dense_values(case: Case, device: str = "cpu") -> dict[str, torch.Tensor]:
    """The values of every view, dense, of the view's shape (expanded dimensions are repeated).

    Raises:
        CouldNotCheck: A view is too large.
    """
    made = {}
    for name, view in case.views.items():
        if view.layout.numel > MOST_ELEMENTS:
            raise CouldNotCheck(f"{name} has {view.layout.numel:,} elements; kcheck fills at most {MOST_ELEMENTS:,}")
        if view.role is Role.OUTPUT:  # nobody sees what was there: a run starts with poison
            made[name] = torch.zeros(view.layout.shape, dtype=torch_dtype(view.dtype), device=device)
            continue
        compact = tuple(min(dim.size, 1) if dim.expanded else dim.size for dim in view.layout.dims)
        made[name] = values(view.fill, view.dtype, compact, device).expand(view.layout.shape).contiguous()
    return made


class Arena:
    """Places cases on a device; one buffer serves all cases of a worker.

    Args:
        device: Where; ``cpu`` has sparse memory for backings that are too large to fill.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._buffer = torch.empty(0, dtype=torch.uint8, device=device)
        self._decoys = Decoys(device)
        self._kept: Placement | None = None  # the last one: the runs of a case differ in what lies there, not where

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
        layouts = {n: Layout.contiguous(v.layout.shape) if n in dense else v.layout for n, v in case.views.items()}
        homes = {n: f"{n} (dense)" if n in dense else v.backing for n, v in case.views.items()}
        if self._kept is not None and self._kept.case is case and self._kept.homes == homes:
            slots, buffer, writable = self._kept.slots, self._kept.buffer, self._kept.writable
        else:
            (slots, buffer), writable = self._allot(case, layouts, homes), None
        placement = Placement(case, layouts, homes, slots, buffer, writable=writable)
        for name, view in case.views.items():
            typed = slots[homes[name]].memory.view(torch_dtype(view.dtype))
            placement.tensors[name] = typed.as_strided(
                layouts[name].shape, layouts[name].strides, typed.storage_offset() + layouts[name].first
            )
        self.refill(placement, contents, style)
        self._kept = None if any(slot.sparse for slot in slots.values()) else placement
        return placement

    def _allot(
        self, case: Case, layouts: Mapping[str, Layout], homes: Mapping[str, str]
    ) -> tuple[dict[str, Slot], torch.Tensor]:
        """Give every backing its memory, between red zones."""
        sizes = {homes[n]: layouts[n].backing_numel * dtype_named(v.dtype).itemsize for n, v in case.views.items()}
        starts, end = {}, 0
        for name, nbytes in sizes.items():
            if nbytes < SPARSE_BYTES:
                starts[name] = end + RED_ZONE
                end = -(-(starts[name] + nbytes + RED_ZONE) // ALIGNMENT) * ALIGNMENT
        buffer = self._reserve(end)
        slots = {}
        for name, nbytes in sizes.items():
            start = starts.get(name, -1)
            memory = _sparse(nbytes, self.device) if start < 0 else _own_storage(buffer[start : start + nbytes])
            slots[name] = Slot(memory, start)
        return slots, buffer

    def _reserve(self, nbytes: int) -> torch.Tensor:
        """That many bytes, aligned.

        Raises:
            CouldNotCheck: There is not so much memory.
        """
        if self._buffer.numel() < nbytes + ALIGNMENT:
            try:
                self._buffer = torch.empty(nbytes + ALIGNMENT, dtype=torch.uint8, device=self.device)
            except RuntimeError as error:
                raise CouldNotCheck(f"no memory for a case of {nbytes / 2**20:.0f} MiB: {error}") from None
        start = -self._buffer.data_ptr() % ALIGNMENT
        return self._buffer[start : start + nbytes]

    def refill(self, placement: Placement, contents: Mapping[str, torch.Tensor], style: Style) -> None:
        """Fill the memory of a placement, as before its first run."""
        views = placement.case.views
        guarded, decoys = [], []
        for name, slot in placement.slots.items():
            if not slot.sparse:
                view = views[placement.views_of(name)[0]]
                guarded.append(placement.buffer[slot.guarded])
                decoys.append(self._decoys.of(view, guarded[-1].numel(), style.decoys_of(name)))
        if guarded:
            torch._foreach_copy_(guarded, decoys)  # one kernel on a GPU
        for name, view in views.items():
            tensor, layout = placement.tensors[name], placement.layouts[name]
            if view.role in (Role.OUTPUT, Role.SCRATCH):
                poison(tensor, style.poison)
            else:
                _distinct(tensor, layout).copy_(_distinct(contents[name], layout))
        placement.before = placement.buffer.clone()
        if placement.writable is None:
            placement.writable = _writable_bytes(placement)


def _own_storage(part: torch.Tensor) -> torch.Tensor:
    """The same bytes as a tensor whose storage they are: code under test may ask for the size of its storage."""
    if not part.numel():
        return torch.empty(0, dtype=torch.uint8, device=part.device)
    if part.device.type == "cpu":
        return torch.from_numpy(part.numpy())
    return torch.as_tensor(_DeviceBytes(part), device=part.device)


class _DeviceBytes:
    """Device memory in the form that torch adopts without a copy (the CUDA array interface, version 3)."""

    def __init__(self, part: torch.Tensor) -> None:
        self._part = part  # keeps the buffer alive
        self.__cuda_array_interface__ = {
            "shape": (part.numel(),),
            "typestr": "|u1",
            "data": (part.data_ptr(), False),
            "version": 3,
        }


def _distinct(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """The view without its repetitions: expanded dimensions cut to size 1."""
    for axis, dim in enumerate(layout.dims):
        if dim.expanded and dim.size > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _writable_bytes(placement: Placement) -> torch.Tensor:
    mask = torch.zeros_like(placement.buffer, dtype=torch.bool)
    for name, view in placement.case.views.items():
        slot, layout = placement.slots[placement.homes[name]], placement.layouts[name]
        if view.role.writable and not slot.sparse:
            size = dtype_named(view.dtype).itemsize
            strides = (*(stride * size for stride in layout.strides), 1)
            mask.as_strided((*layout.shape, size), strides, slot.start + layout.first * size).fill_(True)
    return mask


def _sparse(nbytes: int, device: str) -> torch.Tensor:
    """Memory of zero bytes without red zones: on the CPU it costs nothing until it is touched.

    Raises:
        CouldNotCheck: There is not so much memory.
    """
    size = f"{nbytes / 2**30:.1f} GiB"
    if device != "cpu":
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        if nbytes > free // 2:  # the target needs some, too
            raise CouldNotCheck(f"no {size} for a far layout on {device}; run far layouts with --backend interpret")
        return torch.zeros(nbytes, dtype=torch.uint8, device=device)
    try:
        memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    except (OSError, ValueError, OverflowError) as error:
        raise CouldNotCheck(f"the system gives no sparse memory of {size}: {error}") from None
    return torch.frombuffer(memory, dtype=torch.uint8)
