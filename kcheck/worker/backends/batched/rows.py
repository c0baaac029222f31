"""Lanes that are active or not by whole rows: the last axis of a block, whose elements are neighbours in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kcheck.worker.backends.batched.footprint import Numbers, numbers_of
from kcheck.worker.backends.batched.places import Bools, Positions, windows
from kcheck.worker.backends.batched.programs import Programs
from kcheck.worker.backends.batched.values import Array, Sum

SHORTEST = 8  # lanes of a row


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The active rows of an access.

    Attributes:
        pointers: To their first elements; shape (n,).
        length: Lanes of each.
        numbers: Of their programs; shape (n,).
        active: Which rows these are; shape (programs, axes but the last).
    """

    pointers: Array
    length: int
    numbers: Numbers
    active: Bools


def rows_of(parts: Sum | None, mask: Any, width: int, programs: Programs) -> Rows | None:
    """The rows of pointers to elements of `width` bytes; None if they are none, or none is active."""
    if parts is None or mask is None or parts.wrapped:
        return None
    data, within = mask.data, parts.within
    length = within.shape[-1]
    if length < SHORTEST or data.ndim != within.ndim or (data.shape[-1] > 1 and data.strides[-1]):
        return None
    if (np.diff(within, axis=-1) != np.uint64(width)).any():
        return None
    heads = parts.across[..., 0] + within[..., 0]
    shape = (len(programs), *heads.shape[1:])
    active = np.broadcast_to(data[..., 0], shape)
    pointers = np.broadcast_to(heads, shape)[active]
    return Rows(pointers, length, numbers_of(programs.numbers, shape)[active], active) if pointers.size else None


def read(flat: Array, starts: Positions, rows: Rows, fallback: Any) -> tuple[Array, Array]:
    """Rows from memory.

    Args:
        flat: The memory.
        starts: First elements; shape (n,).
        rows: Which they are.
        fallback: What the other rows yield, in the shape of the block or to be stretched to it.

    Returns:
        The elements of the rows, shape (n * length,), and the whole block.
    """
    values: Array = windows(flat, rows.length)[starts].view(flat.dtype)
    made = np.array(np.broadcast_to(fallback, (*rows.active.shape, rows.length)), dtype=flat.dtype, order="C")
    made[rows.active] = values.reshape(-1, rows.length)
    return values, made


def are_apart(starts: Positions, length: int) -> bool:
    """Whether no two rows overlap."""
    return bool((np.diff(np.sort(starts)) >= length).all())
