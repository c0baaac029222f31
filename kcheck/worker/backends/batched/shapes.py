"""Handles in another shape or of another type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kcheck.worker.backends.batched.values import Array, Constant, Lanes, Sum, as_sequential, split


def retyped(handle: Any, dtype: Any) -> Any:
    """The handle of pointers as one of pointers to another type."""
    if isinstance(handle, Sum):
        return Sum(handle.across, handle.within, dtype, handle.flat, handle.wrapped)
    return Lanes(handle.data, dtype, None, getattr(handle, "wrapped", False))


def laid_out(handle: Any) -> Any:
    """The handle with its data where the sequential engine has it; see `as_sequential`."""
    return Lanes(as_sequential(handle.data), handle.dtype)


def width_of(pointer: Any) -> int:
    """Bytes of what a pointer type points to."""
    return max(1, int(pointer.element_ty.primitive_bitwidth) // 8)


def block_shape(handle: Any) -> tuple[int, ...]:
    """Shape of a handle's block."""
    if isinstance(handle, Constant):
        return handle.shape
    data = handle.within if isinstance(handle, Sum) else handle.data
    return tuple(data.shape[1:])


def reshaped(handle: Any, change: Any, shape: Sequence[int], *, stretch: bool = False) -> Any:
    """The handle with its block in another shape.

    Args:
        handle: Of a block.
        change: From an array and the length of its program axis to the new array.
        shape: The new shape of the block.
        stretch: Axes are stretched: what is one number per program stays so.
    """
    if isinstance(handle, Constant):
        return Constant(handle.value, shape, handle.dtype)
    if isinstance(handle, Sum):
        across = handle.across.reshape(handle.across.shape[0], *(1,) * len(shape))
        return Sum(across, change(handle.within, 1), handle.dtype, handle.flat, handle.wrapped)
    data = handle.data
    wrapped = getattr(handle, "wrapped", False)
    if stretch and data.dtype in (np.int32, np.int64, np.uint64):
        parts = split(handle)
        if parts is not None and data.shape[0] > 1:  # a block of one lane
            return Sum(parts.across, change(parts.within, 1), handle.dtype, parts.flat, wrapped)
    return Lanes(change(data, data.shape[0]), handle.dtype.scalar, getattr(handle, "bounds", None), wrapped)


def same_programs(*arrays: Array) -> list[Array]:
    """Arrays with program axes of the same length."""
    count = max(len(array) for array in arrays)
    return [array if len(array) == count else np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays]
