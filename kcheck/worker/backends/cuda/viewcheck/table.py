"""What the parameters of a launch may touch, as the words that instrumented kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.interpret.membership import View

MAX_SHADOW = 1 << 32  # bytes
Words = npt.NDArray[np.int64]
Views = tuple[tuple[View, bool], ...]  # and whether each may be written


@dataclass(frozen=True, slots=True)
class Slot:
    """What a parameter may touch.

    Attributes:
        number: Of the parameter, in the kernel's IR.
        address: Its value; 0 if there is none.
        views: What it may touch.
        memory: Where its memory begins.
        writers: Address of the words that say who wrote which granule of it; 0: races are not looked for.
        readers: The same for who read it.
        poison: Byte that fills it where nothing was written; None: it holds values.
    """

    number: int
    address: int
    views: Views
    memory: int = 0
    writers: int = 0
    readers: int = 0
    poison: int | None = None

    @property
    def first(self) -> int:
        """Where what it may touch begins; offsets in the log are from here."""
        held = [view.address for view, _ in self.views if view.extent]
        return min(held, default=self.views[0][0].address if self.views else 0)


class Shadows:
    """Shadows of views with gaps, kept: the runs of a case have their tensors at the same places.

    Args:
        device: Where they are.
    """

    def __init__(self, device: str = "cuda") -> None:
        self._device = device
        self._known: dict[object, torch.Tensor] = {}

    def of(self, views: Views, first: int, extent: int) -> torch.Tensor:
        """The shadow of some views; see `layout.WIDTHS`.

        Args:
            views: What may be touched.
            first: Address of the shadow's first byte.
            extent: How many bytes.

        Raises:
            TooLarge: There are too many.
        """
        key = (first, extent, *((view.address, view.itemsize, view.shape, view.stride, may) for view, may in views))
        if key not in self._known:
            if len(self._known) >= 64:
                self._known.pop(next(iter(self._known)))
            self._known[key] = _shadow(views, first, extent, self._device)
        return self._known[key]


class TooLarge(Exception):
    """A shadow would not fit into memory."""


def _shadow(views: Views, first: int, extent: int, device: str) -> torch.Tensor:
    if extent > MAX_SHADOW:
        raise TooLarge(f"views with gaps over {extent / 2**30:.1f} GiB cannot be checked")
    shadow = torch.zeros(extent, dtype=torch.uint8, device=device)
    for kind, chosen in enumerate((views, [one for one in views if one[1]])):
        cells = torch.zeros(extent, dtype=torch.bool, device=device)
        for view, _ in chosen:
            strides = (*(stride * view.itemsize for stride in view.stride), 1)
            cells.as_strided((*view.shape, view.itemsize), strides, view.address - first).fill_(True)
        for number, width in enumerate(layout.WIDTHS):
            shadow |= cells.to(torch.uint8) << (number + kind * len(layout.WIDTHS))
            following = torch.zeros_like(cells)  # so that the next width is known: this one, and as much behind it
            following[:-width] = cells[width:] if extent > width else False
            cells &= following
    return shadow


def table(slots: Sequence[Slot], shadows: Shadows, safe: tuple[int, int], records: int) -> Words:
    """Write the table of a launch.

    Args:
        slots: What its parameters, and pointers from elsewhere, may touch.
        shadows: Where shadows are kept.
        safe: Address and size of what is safe to read.
        records: Address of the launch's records.
    """
    words = np.zeros(layout.TABLE, np.uint64)
    words[layout.RECORDS] = records
    words[layout.SAFE_FIRST], words[layout.SAFE_SIZE] = safe
    for slot in slots:
        _slot(words[layout.SLOTS + slot.number * layout.SLOT :], slot, shadows)
    return words.view(np.int64)


def _slot(words: npt.NDArray[np.uint64], slot: Slot, shadows: Shadows) -> None:
    words[layout.MEMORY], words[layout.WRITERS], words[layout.READERS] = slot.memory, slot.writers, slot.readers
    words[layout.POISON] = 0 if slot.poison is None else slot.poison + 1
    views = tuple((view, may) for view, may in slot.views if view.extent)
    if not views:
        words[layout.ADDRESS] = slot.first
        return
    first = slot.first
    extent = max(view.address + view.extent for view, _ in views) - first
    words[layout.ADDRESS], words[layout.EXTENT] = first, extent
    if len(views) > 1 or not views[0][0].is_dense:
        words[layout.SHADOW] = shadows.of(views, first, extent).data_ptr()
        return
    may = words[layout.WRITABLE] = views[0][1]
    near, far = (first - slot.address) % 2**64, (first + extent - slot.address) % 2**64
    words[layout.READ_FIRST], words[layout.READ_END] = near, far
    if may:
        words[layout.WRITE_FIRST], words[layout.WRITE_END] = near, far
