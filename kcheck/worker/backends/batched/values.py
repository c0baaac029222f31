"""Values of many programs at once.

Floats must round as in the sequential engine, and numpy takes the layout of operands in memory for the layout of the
result and for the order of sums. So the axes of blocks lie in memory as they do there, and splats of two and more
dimensions are written out: where operands differ in their order of axes, numpy prefers that of C.

The data of a handle has the program axis first, of length P, or of length 1 where all programs have the same; the axes
of the block follow. A scalar therefore has the shape ``(P,)`` or ``(1,)``, the latter as in Triton's interpreter.
Integers and pointers may be held as a sum ``across + within`` of one number per program and one block that all
programs share: P + B numbers for P * B lanes, which is what most addresses and masks are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.interpret.types import BlockType, Handle, PointerType, block_type, new

Array = npt.NDArray[Any]
Bounds = tuple[int, int]

_ZERO: dict[Any, Array] = {}
_ZEROS: dict[tuple[Any, tuple[int, ...]], Array] = {}
_MOST_ZEROS = 64


class NotBatched(Exception):
    """What runs here cannot go on in this engine: the launch goes to the sequential one.

    Args:
        reason: The feature, as the end of "the kernel uses …"; ``""`` if it is a finding that the sequential engine
            has to make.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class TooWide(NotBatched):
    """Blocks of so many programs are larger than is fast: fewer are to run together."""


class Lanes(Handle):  # type: ignore[misc]
    """A handle around an array.

    Args:
        data: See the module.
        dtype: Triton's element type.
        bounds: Least and largest value, if known; for integers.
        wrapped: Some value is not what exact arithmetic gives.
    """

    def __init__(self, data: Array, dtype: Any, bounds: Bounds | None = None, wrapped: bool = False) -> None:
        self.data = data
        self.dtype = dtype
        self.attr: dict[str, Any] = {}
        self.bounds = bounds
        self.wrapped = wrapped


class Sum(Handle):  # type: ignore[misc]
    """A handle of integers or pointers held as ``across + within``; the sum of integers never wraps.

    Args:
        across: One number per program: shape ``(P, 1, ...)``.
        within: One block: shape ``(1, ...)``.
        dtype: Triton's element type.
        flat: `within` is zero everywhere.
        wrapped: Some value is not what exact arithmetic gives.
    """

    def __init__(self, across: Array, within: Array, dtype: Any, flat: bool = False, wrapped: bool = False) -> None:
        self.across = across
        self.within = within
        self.dtype = dtype
        self.attr: dict[str, Any] = {}
        self.flat = flat
        self.wrapped = wrapped

    @cached_property
    def data(self) -> Array:
        """The sum, written out."""
        if self.flat and not any(self.within.strides):
            return np.broadcast_to(self.across, (self.across.shape[0], *self.within.shape[1:]))
        result: Array = self.across + self.within
        return result

    @cached_property
    def parts(self) -> tuple[Bounds, Bounds]:
        """Bounds of `across` and of `within`."""
        return limits(self.across), (0, 0) if self.flat else limits(self.within)

    @property
    def bounds(self) -> Bounds:
        """Least and largest value."""
        (low, high), (first, last) = self.parts
        return low + first, high + last


class Constant(Handle):  # type: ignore[misc]
    """A mask that is the same in every lane of every program.

    Args:
        value: What it is.
        shape: Of the block.
        dtype: Triton's ``int1``.
    """

    def __init__(self, value: bool, shape: Sequence[int], dtype: Any) -> None:
        self.value = value
        self.shape = tuple(shape)
        self.dtype = dtype
        self.attr: dict[str, Any] = {}

    @property
    def data(self) -> Array:
        """The mask, written out."""
        return np.full((1, *self.shape), self.value)


def limits(array: Array) -> Bounds:
    """Least and largest value; zeros if there is none."""
    if array.size == 1:
        only = int(array.item())
        return only, only
    return (int(array.min()), int(array.max())) if array.size else (0, 0)


def zeros(dtype: np.dtype[Any], rank: int) -> Array:
    """A zero of `rank` axes."""
    zero = _ZERO.get(dtype)
    if zero is None:
        zero = _ZERO[dtype] = np.zeros((), dtype)
    return zero.reshape((1,) * rank)


def zero_block(dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Zeros of shape ``(1, *shape)``, not to be written to."""
    if len(shape) < 2:
        return np.broadcast_to(zeros(dtype, len(shape) + 1), (1, *shape))
    key = dtype, tuple(shape)
    block = _ZEROS.get(key)
    if block is None:
        if len(_ZEROS) >= _MOST_ZEROS:
            _ZEROS.clear()
        block = _ZEROS[key] = np.zeros((1, *shape), dtype)
        block.setflags(write=False)
    return block


def split(handle: Any) -> Sum | None:
    """An integer or pointer handle as a sum, if it is one without being written out."""
    if isinstance(handle, Sum):
        return handle
    data = handle.data
    wrapped = getattr(handle, "wrapped", False)
    if data.size == data.shape[0]:  # one number per program
        return Sum(data, zeros(data.dtype, data.ndim), handle.dtype, True, wrapped)
    if data.shape[0] == 1:
        if data.dtype == np.uint64:  # the base belongs to `across`, which tells the argument
            base = data.reshape(-1)[:1].reshape((1,) * data.ndim)
            return Sum(base, data - base, handle.dtype, False, wrapped)
        return Sum(zeros(data.dtype, data.ndim), data, handle.dtype, False, wrapped)
    return None


def joined(across: Array, within: Array, dtype: Any, flat: bool, wrapped: bool) -> Any:
    """The handle of a sum, written out where that costs nothing."""
    if within.size == 1 and not (flat and within.ndim > 1):
        return Lanes(across if flat else across + within, dtype, None, wrapped)
    return Sum(across, within, dtype, flat, wrapped)


def bounds_of(handle: Any) -> Bounds:
    """Least and largest value of an integer handle."""
    found = getattr(handle, "bounds", None)
    if found is None:
        found = limits(handle.data)
        if isinstance(handle, Lanes):
            handle.bounds = found
    return found


def as_sequential(array: Array) -> Array:
    """The array laid out in memory as the sequential engine has it: the program axis outside, splats written out.

    numpy takes the layout for the order of its sums, and for which of its code, with which rounding, it uses.
    """
    inner = [abs(stride) for size, stride in zip(array.shape[1:], array.strides[1:], strict=True) if size > 1]
    if not inner:
        return array
    if not any(inner):
        return np.array(array, order="C")
    if len(array) == 1 or abs(array.strides[0]) >= max(inner):
        return array
    axes = (0, *(1 + axis for axis in np.argsort([-abs(stride) for stride in array.strides[1:]], kind="stable")))
    return np.array(array.transpose(axes), order="C").transpose(np.argsort(axes))


def is_uniform(handle: Any) -> bool:
    """Whether all programs have the same, by construction."""
    if isinstance(handle, Constant):
        return True
    array = handle.across if isinstance(handle, Sum) else handle.data
    return bool(array.shape[0] == 1)


def taken(handle: Any, rows: Array) -> Any:
    """The handle for some of its programs, given by their positions."""
    if is_uniform(handle):
        return handle
    if isinstance(handle, Sum):
        return Sum(handle.across[rows], handle.within, handle.dtype, handle.flat, handle.wrapped)
    return Lanes(
        rows_of(handle.data, rows), handle.dtype, getattr(handle, "bounds", None), getattr(handle, "wrapped", False)
    )


def rows_of(array: Array, rows: Array) -> Array:
    """Some programs of an array, the axes of the block laid out as they are."""
    if array.ndim < 3:
        picked: Array = array[rows]
        return picked
    repeated = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides[1:])
    base = array[(slice(None), *repeated)]
    axes = (0, *(1 + axis for axis in np.argsort([-abs(stride) for stride in base.strides[1:]], kind="stable")))
    made = np.ascontiguousarray(base.transpose(axes)[rows]).transpose(np.argsort(axes))
    return np.broadcast_to(made, (len(rows), *array.shape[1:]))


def is_pointer(handle: Any) -> bool:
    """Whether a handle is one of pointers."""
    return isinstance(handle.dtype, PointerType)


def block(handle: Any, element: Any, shape: Sequence[int]) -> Any:
    """The tensor of a handle: a scalar if `shape` is empty."""
    return new_tensor(handle, block_type(element, tuple(shape)) if shape else element)


def new_tensor(handle: Any, kind: Any) -> Any:
    """A tensor around a handle."""
    made = new(_NOTHING, kind, handle.dtype)
    made.handle = handle
    return made


_NOTHING = np.empty(0)


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Shape of a tensor's block, ``()`` for a scalar."""
    kind = tensor.type
    return tuple(int(size) for size in kind.shape) if kind.__class__ is BlockType else ()
