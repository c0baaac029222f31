"""What lies where nobody should look: decoys around views, poison in what is to be written.

Decoys are valid-looking values, different in every element between two runs of unlike `Style`, so that a read of them
shows in the result and nothing crashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch

from kcheck.case import View
from kcheck.dtypes import DType, dtype_named
from kcheck.worker.exact import wild_value
from kcheck.worker.values import floats, hashed, torch_dtype

WILD = 2  # in place of a set of decoys
DECOY_SEED = 0xDEC0
DECOY_BYTES = 1 << 16  # made at once; most cases need no more
DECOY_KINDS = 64  # kept


@dataclass(frozen=True, slots=True)
class Style:
    """What must not matter, and so differs between two runs of a case.

    Attributes:
        decoys: 0 or 1: which of two sets of decoys lies in gaps and red zones; `WILD`: values that lead far away.
        poison: Byte that outputs and scratch are filled with before the run.
        only: The one backing that `decoys` is for; the others have set 0. ``""``: all.
        dead: 0, 1 or 2: what lies in elements that the target calls dead; 2 is NaN.
        dead_only: The one view that `dead` is for; the others have 0. ``""``: all.
        undefined: What lanes hold that a kernel masks off without ``other``, where the backend can choose.
        stale: The line, as ``(file, line)``, whose reads yield what was there before the launch where they race, if the
            backend can choose.
        hinted: The line, as ``(file, line)``, whose hints to the compiler are made true, if the backend can choose.
        undefined_at: The one line that `undefined` is for, as ``(file, line)``. None: all.
    """

    decoys: int = 0
    poison: int = 0xA5
    only: str = ""
    dead: int = 0
    dead_only: str = ""
    undefined: Literal["zero", "wild"] = "zero"
    undefined_at: tuple[str, int] | None = None
    stale: tuple[str, int] | None = None
    hinted: tuple[str, int] | None = None

    def decoys_of(self, backing: str) -> int:
        """Which set of decoys lies around the views of a backing."""
        return self.decoys if self.only in ("", backing) else 0


class Decoys:
    """Decoys on a device, made once for each data type and range.

    Args:
        device: Where.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._made: dict[tuple[str, int, int, int], torch.Tensor] = {}

    def of(self, view: View, nbytes: int, which: int) -> torch.Tensor:
        """Bytes to lie around the views of a backing that holds this view: uint8, shape (nbytes,)."""
        if which == WILD:
            value = torch.tensor([wild_value(view)]).to(torch_dtype(view.dtype)).to(self._device)
            return value.view(torch.uint8).repeat(-(-nbytes // value.element_size()))[:nbytes]
        low, high = decoy_range(view)
        key = (view.dtype, low, high, which)
        made = self._made.get(key)
        if made is None or made.numel() < nbytes:
            if len(self._made) >= DECOY_KINDS:
                self._made.clear()
            room = max(DECOY_BYTES, 1 << (nbytes - 1).bit_length())  # so that growing cases rarely need more
            made = decoy_bytes(dtype_named(view.dtype), low, high, room, which, self._device)
            self._made[key] = made
        return made[:nbytes]


def decoy_bytes(
    dtype: DType, low: int, high: int, nbytes: int, which: int, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """Decoys of a data type.

    Args:
        dtype: Data type.
        low: Smallest integer that looks valid.
        high: Largest.
        nbytes: Bytes wanted.
        which: 0 or 1; the two sets differ in every element (of integers, where there are two valid ones).
        device: Where.

    Returns:
        A tensor of uint8, shape (nbytes,).
    """
    count = -(-nbytes // dtype.itemsize)
    bits = hashed(DECOY_SEED, 0, count, device)
    if dtype.is_float:
        typed = floats(bits ^ (which << 31), dtype, 0)  # the top bit moves every value by 1
    else:
        size = high - low + 1
        shift = which * (1 + hashed(DECOY_SEED + 1, 0, count, device) % max(size - 1, 1))
        typed = (low + (bits % size + shift) % size).to(torch_dtype(dtype.name))
    return typed.view(torch.uint8)[:nbytes]


def decoy_range(view: View) -> tuple[int, int]:
    """Values that look valid where this view's do: a power of two of them, so that cases can share decoys."""
    fill = view.fill
    if view.bound is not None:
        low, high = 0, max(view.bound - 1, 0)
    elif fill.kind == "hashed":
        low, high = fill.low, fill.high
    else:
        numbers = [int(value) for value in fill.values] or [0]
        low, high = min(numbers), max(numbers)
    return low, low + (1 << (high - low + 1).bit_length() - 1) - 1


def poison(tensor: torch.Tensor, byte: int) -> None:
    """Fill every byte of a view's elements."""
    if tensor.dtype == torch.bool:  # 0 and 1 are the only valid bytes
        byte &= 1
    tensor.copy_(_poisoned_element(tensor.dtype, byte, tensor.device).expand(tensor.shape))


@lru_cache(maxsize=64)
def _poisoned_element(dtype: torch.dtype, byte: int, device: torch.device) -> torch.Tensor:
    return torch.full((dtype.itemsize,), byte, dtype=torch.uint8, device=device).view(dtype).reshape(())
