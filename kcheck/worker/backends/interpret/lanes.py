"""Lanes of one access: which are active, where they are in a backing, what they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.interpret.arguments import Argument
from kcheck.worker.backends.interpret.membership import Addresses, Bools

Array = npt.NDArray[Any]


def all_lanes(pointers: Addresses, mask: Array | None) -> Bools:
    """The mask of an access in its shape."""
    if mask is None:
        return np.ones(pointers.shape, bool)
    return np.array(np.broadcast_to(mask, pointers.shape), dtype=bool)


def element_index(argument: Argument, pointers: Addresses, width: int) -> npt.NDArray[np.int64]:
    """Position of each element in the flat backing. Exact: a pointer that no cast made is aligned to its elements."""
    offsets = pointers - argument.backing_pointer
    if width > 1:
        offsets >>= np.uint64(width.bit_length() - 1)
    return offsets.view(np.int64)


def partial(mask: Any) -> Array | None:
    """The mask of an access, None if it masks nothing off."""
    if mask is None:
        return None
    mask = np.asarray(mask)  # up to 3.8, block pointers and descriptors pass a memoryview
    return None if mask.all() else mask


def active(mask: Array | None, index: Array, values: Array) -> tuple[Array, Array]:
    """Positions and values of the active lanes, each of shape (n,)."""
    if mask is None:
        return index.reshape(-1), values.reshape(-1)
    active = np.broadcast_to(mask, index.shape)
    return index[active], values[active]


def gather(argument: Argument, index: Array, mask: Array | None, other: Array | None, dtype: np.dtype[Any]) -> Array:
    """What is at positions of a backing; `other` (None: zero) where they are masked off."""
    flat = argument.backing.flat(dtype)
    if not flat.size:  # all lanes are masked off
        fallback = np.zeros(1, dtype) if other is None else other
        return np.array(np.broadcast_to(fallback, index.shape), dtype=dtype)
    values = flat.take(index, mode="clip")  # lanes that are masked off may point anywhere
    if mask is None:
        return values
    return np.where(mask, values, dtype.type(0) if other is None else other)
