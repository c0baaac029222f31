"""Where the lanes of an access are: runs of neighbours, or one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.batched.values import Array, Constant

Positions = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def lanes_of(pointer: Any, mask: Any) -> tuple[Array, Any]:
    """Pointers and active lanes as arrays of the same rank; None for all lanes."""
    if mask is None or (isinstance(mask, Constant) and mask.value):
        return pointer.data, None
    lanes = mask.data
    return pointer.data, None if lanes.all() else lanes


def heads(within: Array, width: int) -> tuple[Array, int]:
    """The first of each run of neighbours, and the length of the runs; runs of one where they are not all alike."""
    count = len(within)
    if count < 2:
        return within, 1
    breaks = np.flatnonzero(np.diff(within) != np.uint64(width)) + 1
    runs = len(breaks) + 1
    length, rest = divmod(count, runs)
    if length == 1 or rest or (breaks != np.arange(1, runs) * length).any():
        return within, 1
    return within[::length], length


def distinct(starts: Positions, length: int) -> bool:
    """Whether the runs of each program do not overlap."""
    if starts.shape[1] == 1:
        return True
    first = np.sort(starts[0])
    return bool((np.diff(first) >= length).all())


def place(flat: Array, starts: Positions, length: int) -> tuple[Array, Any]:
    """Where runs are: an array and an index into it, ``...`` if all of it is meant.

    An element of the array is one of `flat`, or a whole run as raw bytes, which numpy copies faster than its elements.
    """
    first = starts.reshape(-1)
    if (np.diff(first) == length).all():
        return flat[first[0] : first[0] + first.size * length].reshape(*starts.shape, length), ...
    return (flat, starts) if length == 1 else (windows(flat, length), starts)


def windows(flat: Array, length: int) -> Array:
    """Every run of `length` neighbours, as raw bytes."""
    shape, dtype = (len(flat) - length + 1,), np.dtype((np.void, length * flat.itemsize))
    return np.ndarray(shape, dtype, flat.data, 0, (flat.itemsize,))
