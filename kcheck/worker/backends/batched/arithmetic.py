"""Sums, differences, multiples and comparisons of integers, on the two parts of a sum where that is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kcheck.worker.backends.batched.values import (
    Array,
    Bounds,
    Constant,
    Lanes,
    Sum,
    bounds_of,
    joined,
    limits,
    split,
)
from kcheck.worker.backends.interpret.triton_seams import tl

Operation = Callable[[Any, Any], Any]

_LIMITS = {np.dtype(kind): np.iinfo(kind) for kind in (np.int32, np.int64)}


def _sum(left: Bounds, right: Bounds) -> Bounds:
    return left[0] + right[0], left[1] + right[1]


def _difference(left: Bounds, right: Bounds) -> Bounds:
    return left[0] - right[1], left[1] - right[0]


def _product(left: Bounds, right: Bounds) -> Bounds:
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


_BOUNDS: dict[Operation, Callable[[Bounds, Bounds], Bounds]] = {
    np.add: _sum,
    np.subtract: _difference,
    np.multiply: _product,
}


def _fits(bounds: Bounds, dtype: np.dtype[Any]) -> bool:
    return bool(_LIMITS[dtype].min <= bounds[0] and bounds[1] <= _LIMITS[dtype].max)


def is_linear(left: Any, right: Any) -> bool:
    """Whether these are handles that `linear` takes."""
    return left.dtype is right.dtype and (left.dtype is tl.int32 or left.dtype is tl.int64)


def linear(operation: Operation, left: Any, right: Any) -> Any:
    """Sum, difference or product of two handles of int32 or int64."""
    wrapped = getattr(left, "wrapped", False) or getattr(right, "wrapped", False)
    dtype = np.dtype(np.int32) if left.dtype is tl.int32 else np.dtype(np.int64)
    if isinstance(left, Sum) or isinstance(right, Sum) or left.data.shape[0] != right.data.shape[0]:
        made = _by_parts(operation, left, right, dtype, wrapped)
        if made is not None:
            return made
    data = operation(left.data, right.data)
    bounds = _BOUNDS[operation](bounds_of(left), bounds_of(right))
    if not _fits(bounds, dtype):
        if dtype == np.int32 and not wrapped:
            exact = operation(left.data.astype(np.int64), right.data.astype(np.int64))
            wrapped = bool((exact != data).any())
        bounds = limits(data)
    return Lanes(data, left.dtype, bounds, wrapped)


def _by_parts(operation: Operation, left: Any, right: Any, dtype: np.dtype[Any], wrapped: bool) -> Any:
    """The result as a sum; None where it has no such form or might wrap."""
    a, b = split(left), split(right)
    if a is None or b is None:
        return None
    if operation is np.multiply:
        if not b.flat or (b.across.size > 1 and not a.flat):
            a, b = b, a
        if not b.flat or (b.across.size > 1 and not a.flat):
            return None
        parts = _product(a.parts[0], b.parts[0]), _product(a.parts[1], b.parts[0])
        if not all(_fits(one, dtype) for one in (*parts, _sum(*parts))):
            return None
        shared = _wider(a.within, b.within) if a.flat else a.within * (b.across + b.within)
        return _with_bounds(joined(a.across * b.across, shared, left.dtype, a.flat, wrapped), parts)
    combine = _BOUNDS[operation]
    parts = combine(a.parts[0], b.parts[0]), combine(a.parts[1], b.parts[1])
    if not all(_fits(one, dtype) for one in (*parts, _sum(*parts))):
        return None
    flat = a.flat and b.flat
    shared = _wider(a.within, b.within) if flat else operation(a.within, b.within)
    return _with_bounds(joined(operation(a.across, b.across), shared, left.dtype, flat, wrapped), parts)


def _wider(left: Array, right: Array) -> Array:
    """Of two blocks of zeros the one in the shape and layout of their sum."""
    return left + right if left.ndim > 2 else left if left.size >= right.size else right


def _with_bounds(made: Any, parts: tuple[Bounds, Bounds]) -> Any:
    if isinstance(made, Sum):
        made.parts = parts
    else:
        made.bounds = _sum(*parts)
    return made


def advanced(pointer: Any, offset: Any, size: int) -> Any:
    """A pointer handle plus an offset in elements of `size` bytes; modulo 2**64, as on a GPU."""
    wrapped = getattr(pointer, "wrapped", False) or getattr(offset, "wrapped", False)
    scale = np.uint64(size)
    if (
        isinstance(pointer, Sum)
        or isinstance(offset, Sum)
        or pointer.data.shape[0] != offset.data.shape[0]
        or pointer.data.size == pointer.data.shape[0]
    ):
        base, shift = split(pointer), split(offset)
        if base is not None and shift is not None:
            across = base.across + shift.across.astype(np.uint64) * scale
            if shift.flat:
                within = base.within
            elif base.flat:
                within = shift.within.astype(np.uint64) * scale
            else:
                within = base.within + shift.within.astype(np.uint64) * scale
            return joined(across, within, pointer.dtype, base.flat and shift.flat, wrapped)
    data = pointer.data + scale * offset.data.astype(np.uint64)
    return Lanes(data, pointer.dtype, None, wrapped)


def widened(source: Any, target: Any, dtype: np.dtype[Any]) -> Sum | None:
    """A sum as one of a wider integer type, None if it is no sum."""
    if not isinstance(source, Sum):
        return None
    made = Sum(source.across.astype(dtype), source.within.astype(dtype), target.scalar, source.flat, source.wrapped)
    made.parts = source.parts
    return made


def compared(operation: Operation, left: Any, right: Any) -> Any:
    """A comparison of two handles of int32 or int64, decided by intervals where they allow it; None otherwise.

    ``a + u < b + v`` is ``a - b < v - u``, and the two sides are small.
    """
    if not (isinstance(left, Sum) or isinstance(right, Sum)):
        return None
    a, b = split(left), split(right)
    if a is None or b is None:
        return None
    shape = np.broadcast_shapes(a.within.shape, b.within.shape)[1:]
    decided = _decided(operation, left, right)
    if decided is not None and (len(shape) < 2 or operation(a.within, b.within).flags.c_contiguous):
        return Constant(decided, shape, tl.int1)
    across = a.across.astype(np.int64) - b.across
    if a.flat and b.flat and len(shape) < 2:
        return Lanes(np.broadcast_to(operation(across, 0), (across.shape[0], *shape)), tl.int1)
    within = b.within.astype(np.int64) - a.within
    low, high = min(across.min(), within.min()), max(across.max(), within.max())
    if low >= -(2**31) and high < 2**31:
        across, within = across.astype(np.int32), within.astype(np.int32)
    return Lanes(operation(across, within), tl.int1)


def _decided(operation: Operation, left: Any, right: Any) -> bool | None:
    low, high = _difference(bounds_of(left), bounds_of(right))
    if operation is np.equal or operation is np.not_equal:
        return operation is np.not_equal if low > 0 or high < 0 else None
    answers = {bool(operation(low, 0)), bool(operation(high, 0))}
    return answers.pop() if len(answers) == 1 else None
