"""Triton's builder over values of many programs, without memory: what is not here is inherited."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kcheck.worker.backends.batched import arithmetic
from kcheck.worker.backends.batched.programs import Programs
from kcheck.worker.backends.batched.shapes import (
    block_shape,
    laid_out,
    reshaped,
    retyped,
    same_programs,
    width_of,
)
from kcheck.worker.backends.batched.values import (
    Constant,
    Lanes,
    NotBatched,
    Sum,
    TooWide,
    is_pointer,
    zero_block,
)
from kcheck.worker.backends.interpret.triton_seams import interpreter, tl
from kcheck.worker.backends.interpret.types import BlockType

_COMPARISONS = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip


class Operations(interpreter.InterpreterBuilder):  # type: ignore[misc]
    """Operations on handles from `values`, in which the program axis is in front.

    Attributes:
        programs: Those that run now.
        widest: Most lanes of one block so far.
        most_lanes: Most that a block may have of all programs together; None: any number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.options = dataclasses.replace(interpreter.InterpreterOptions(), debug=True, sanitize_overflow=False)
        self.programs = Programs.unnamed(0)
        self.widest = 1
        self.most_lanes: int | None = None

    def _widen(self, shape: Sequence[int]) -> None:
        lanes = math.prod(shape)
        if lanes > self.widest:
            self.widest = lanes
            if self.most_lanes is not None and lanes * len(self.programs) > self.most_lanes:
                raise TooWide

    # -- where it runs ----------------------------------------------------------------------------------------------

    def create_get_program_id(self, axis: int) -> Any:
        """``tl.program_id``."""
        return Lanes(self.programs.axis(axis), tl.int32)

    def create_get_num_programs(self, axis: int) -> Any:
        """``tl.num_programs``."""
        return Lanes(np.array([self.grid_dim[axis]], np.int32), tl.int32)

    # -- integers ---------------------------------------------------------------------------------------------------

    def create_add(self, left: Any, right: Any) -> Any:
        """Sum of integers."""
        return self._linear(np.add, left, right)

    def create_sub(self, left: Any, right: Any) -> Any:
        """Difference of integers."""
        return self._linear(np.subtract, left, right)

    def create_mul(self, left: Any, right: Any) -> Any:
        """Product of integers."""
        return self._linear(np.multiply, left, right)

    def _linear(self, operation: Any, left: Any, right: Any) -> Any:
        if arithmetic.is_linear(left, right):
            return arithmetic.linear(operation, left, right)
        return self.binary_op(left, right, operation)

    def _compare(self, operation: Any, left: Any, right: Any) -> Any:
        if arithmetic.is_linear(left, right):
            made = arithmetic.compared(operation, left, right)
            if made is not None:
                return made
        return self.binary_op(left, right, operation)

    def create_and(self, left: Any, right: Any) -> Any:
        """Bitwise and."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Constant):
                return other if one.value else one
        return self.binary_op(left, right, np.bitwise_and)

    def create_or(self, left: Any, right: Any) -> Any:
        """Bitwise or."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Constant):
                return one if one.value else other
        return self.binary_op(left, right, np.bitwise_or)

    def create_ashr(self, left: Any, right: Any) -> Any:
        """Shift that keeps the sign of its left operand's signed twin."""
        signed = [Lanes(side.data.view(f"i{side.data.dtype.itemsize}"), side.dtype) for side in (left, right)]
        return self.binary_op(*signed, np.right_shift)

    def create_idiv(self, left: Any, right: Any) -> Any:
        """Division towards zero."""
        a, b = left.data, right.data
        if a.dtype.kind == "u" or (a.min(initial=0) >= 0 and b.min(initial=1) > 0):
            return Lanes(a // b, left.dtype.scalar)
        return Lanes((a - np.fmod(a, b)) // b, left.dtype.scalar)

    def create_int_cast(self, source: Any, target: Any, signed: Any) -> Any:
        """Conversion between integer types."""
        wrapped = getattr(source, "wrapped", False)
        if target.scalar is tl.int64 and source.dtype is tl.int32:
            made = arithmetic.widened(source, target, np.dtype(np.int64))
            if made is not None:
                return made
        if isinstance(source, Constant):
            return Lanes(source.data.astype(interpreter._get_np_dtype(target)), target.scalar)
        cast = self.cast_impl(source, target)
        return Lanes(cast.data, target.scalar, None, wrapped)

    # -- floats -----------------------------------------------------------------------------------------------------

    def unary_op(self, argument: Any, operation: Any) -> Any:
        """A function of each lane."""
        return super().unary_op(laid_out(argument), operation)

    def ternary_op(self, first: Any, second: Any, third: Any, operation: Any) -> Any:
        """``tl.where``, and the like. Up to 3.5 the two sides may be of types that numpy joins in a wider one."""
        made = super().ternary_op(first, second, third, operation)
        made.data = made.data.astype(interpreter._get_np_dtype(made.dtype), copy=False)
        return made

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, arguments: Any, result: Any, pure: bool
    ) -> Any:
        """A function of a library of the device."""
        laid = [laid_out(one) for one in arguments]
        return super().create_extern_elementwise(library, path, symbol, laid, result, pure)

    def create_dot(self, left: Any, right: Any, *rest: Any) -> Any:
        """``tl.dot``."""
        return super().create_dot(laid_out(left), laid_out(right), *rest)

    # -- pointers ---------------------------------------------------------------------------------------------------

    def create_addptr(self, pointer: Any, offset: Any) -> Any:
        """A pointer plus a number of elements."""
        return arithmetic.advanced(pointer, offset, width_of(pointer.dtype))

    def create_bitcast(self, source: Any, target: Any) -> Any:
        """The same bits as another type."""
        to_pointer = target.scalar.is_ptr()
        if is_pointer(source) and to_pointer:
            if width_of(source.dtype) < width_of(target.scalar):
                raise NotBatched("a pointer that is cast to a wider element type")
            return retyped(source, target.scalar)
        if is_pointer(source) or to_pointer:
            raise NotBatched("a pointer that is made from a number or turned into one")
        data = np.ascontiguousarray(source.data).view(interpreter._get_np_dtype(target))
        return Lanes(data.reshape(source.data.shape), target.scalar)

    def create_int_to_ptr(self, source: Any, target: Any) -> Any:
        """A pointer from a number."""
        return self.create_bitcast(source, target)

    def create_ptr_to_int(self, source: Any, target: Any) -> Any:
        """The number of a pointer."""
        return self.create_bitcast(source, target)

    # -- shapes -----------------------------------------------------------------------------------------------------

    def create_make_range(self, kind: Any, start: int, stop: int) -> Any:
        """``tl.arange``."""
        self._widen((stop - start,))
        return Lanes(np.arange(start, stop, dtype=np.int32)[None], tl.int32, (start, max(start, stop - 1)))

    def create_splat(self, kind: Any, scalar: Any) -> Any:
        """A block of one value."""
        if kind.__class__ is not BlockType:
            raise NotBatched("a splat of this Triton version")
        shape = tuple(int(size) for size in kind.shape)
        self._widen(shape)
        data = scalar.data
        across = data.reshape(data.shape[0], *(1,) * len(shape))
        if data.dtype in (np.int32, np.int64) or is_pointer(scalar):
            return Sum(across, zero_block(data.dtype, shape), scalar.dtype, True, getattr(scalar, "wrapped", False))
        if data.dtype == bool and data.size == 1:
            return Constant(bool(data.item()), shape, tl.int1)
        made = np.broadcast_to(across, (data.shape[0], *shape))
        return Lanes(made if len(shape) < 2 else np.array(made, order="C"), scalar.dtype.scalar)

    def create_unsplat(self, block: Any) -> Any:
        """The scalar in a block of one lane."""
        return Lanes(block.data.reshape(-1), block.dtype.scalar)

    def create_broadcast(self, block: Any, shape: Sequence[int]) -> Any:
        """A block stretched along axes of size 1."""
        self._widen(shape)
        return reshaped(block, lambda data, p: np.broadcast_to(data, (p, *shape)), shape, stretch=True)

    def create_expand_dims(self, block: Any, axis: int) -> Any:
        """A new axis of size 1."""
        shape = list(block_shape(block))
        shape.insert(axis, 1)
        return reshaped(block, lambda data, _: np.expand_dims(data, axis + 1), shape)

    def create_reshape(self, block: Any, shape: Sequence[int], reorder: bool) -> Any:
        """The same lanes in another shape."""
        return reshaped(block, lambda data, p: data.reshape(p, *shape), shape)

    def create_trans(self, block: Any, order: Sequence[int]) -> Any:
        """Axes in another order."""
        old = block_shape(block)
        axes = (0, *(axis + 1 for axis in order))
        return reshaped(block, lambda data, _: data.transpose(axes), [old[axis] for axis in order])

    def create_cat(self, left: Any, right: Any) -> Any:
        """One block behind the other."""
        return Lanes(np.concatenate(same_programs(left.data, right.data), axis=1), left.dtype.scalar)

    def create_join(self, left: Any, right: Any) -> Any:
        """Two blocks along a new last axis."""
        return Lanes(np.stack(same_programs(left.data, right.data), axis=-1), left.dtype.scalar)

    def create_split(self, block: Any) -> Any:
        """The two halves of the last axis."""
        data = block.data
        return tuple(Lanes(data[..., half], block.dtype.scalar) for half in (0, 1))

    def create_gather(self, source: Any, index: Any, axis: int) -> Any:
        """Lanes picked along an axis."""
        data, where = same_programs(source.data, index.data)
        return Lanes(np.take_along_axis(data, where, axis=axis + 1), source.dtype.scalar)

    def create_histogram(self, block: Any, bins: int, mask: Any = None) -> Any:
        """How often each number from 0 on occurs."""
        self._widen((bins,))
        data = block.data.astype(np.int64).reshape(block.data.shape[0], -1)
        if mask is not None:
            data, lanes = same_programs(data, mask.data.reshape(mask.data.shape[0], -1))
        valid = (data >= 0) & (data < bins)
        valid = valid if mask is None else valid & lanes
        flat = (data + np.arange(len(data))[:, None] * bins)[valid]
        counts = np.bincount(flat, minlength=len(data) * bins).reshape(len(data), bins)
        return Lanes(counts.astype(np.int32), tl.int32)


def _install_comparisons() -> None:
    for name, operation in _COMPARISONS.items():
        for prefix in ("S", "U") if name not in ("EQ", "NE") else ("",):

            def compare(self: Any, left: Any, right: Any, operation: Any = operation) -> Any:
                return self._compare(operation, left, right)

            setattr(Operations, f"create_icmp{prefix}{name}", compare)


_install_comparisons()
