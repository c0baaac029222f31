"""``tl.dot`` and ``tl.dot_scaled`` in the precision of the accumulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.interpret.numerics import RAW, to_float, to_raw, values_of
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import core, interpreter, tl
from kcheck.worker.backends.interpret.types import Handle

Array = npt.NDArray[Any]

# The values of the 4-bit format e2m1, sign bit last.
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)


def install(patches: PatchSet) -> None:
    """Replace the builder's products."""
    patches.put(interpreter.InterpreterBuilder, "create_dot", _dot)
    patches.put(interpreter.InterpreterBuilder, "create_dot_scaled", _dot_scaled)
    dot_scaled = constant_formats(patches.get(core, "dot_scaled"))
    for owner in (tl, core):
        patches.put(owner, "dot_scaled", dot_scaled)


def _dot(self: Any, left: Any, right: Any, accumulator: Any, *_precision: Any) -> Any:
    """float32 operands are not rounded to tf32."""
    a, b = values_of(left), values_of(right)
    if a.dtype.kind == "f":
        wide = np.float64 if a.dtype == np.float64 else np.float32
        product = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    else:
        product = np.matmul(a, b, dtype=accumulator.data.dtype)
    return _accumulated(product, accumulator)


def _accumulated(product: Array, accumulator: Any) -> Any:
    total = product + values_of(accumulator)
    element = accumulator.dtype.scalar
    if element in RAW:
        return Handle(to_raw(total, element), element)
    return Handle(total.astype(accumulator.data.dtype, copy=False), element)


def constant_formats(original: Any) -> Any:
    """Up to 3.7 the formats must be ``constexpr`` objects; kernels run as Python and pass plain strings."""

    def dot_scaled(
        lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, *rest: Any, **options: Any
    ) -> Any:
        return original(
            lhs, lhs_scale, core.constexpr(lhs_format), rhs, rhs_scale, core.constexpr(rhs_format), *rest, **options
        )

    return dot_scaled


def _dot_scaled(
    self: Any, lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, fast_math: bool,
    lhs_k_pack: bool, rhs_k_pack: bool, accumulator: Any,
) -> Any:  # fmt: skip
    a = _operand(lhs, lhs_scale, lhs_format, -1 if lhs_k_pack else -2)
    # The right scale comes as (N, K / group).
    b = np.swapaxes(_operand(rhs, rhs_scale, rhs_format, -2 if rhs_k_pack else -1, transposed=True), -1, -2)
    return _accumulated(np.matmul(a, b), accumulator)


def _operand(values: Any, scale: Any, kind: Any, packed_axis: int, *, transposed: bool = False) -> Array:
    """An operand as float32, its scale applied along the last axis."""
    formats = interpreter._ir.ScaleDotElemTypeTY
    if kind == formats.E2M1:
        numbers = _unpack(values.data, packed_axis)
    elif kind in (formats.E4M3, formats.E5M2):
        numbers = to_float(values.data, tl.float8e4nv if kind == formats.E4M3 else tl.float8e5)
    else:
        numbers = values_of(values).astype(np.float32)
    if transposed:
        numbers = np.swapaxes(numbers, -1, -2)
    if scale is None:
        return numbers
    factors = _powers_of_two(scale)
    scaled: Array = numbers * np.repeat(factors, numbers.shape[-1] // factors.shape[-1], axis=-1)
    return scaled


def _unpack(data: Array, axis: int) -> Array:
    """Two 4-bit values a byte, the low half first, along `axis`."""
    moved = np.moveaxis(data.view(np.uint8), axis, -1)
    pairs = np.stack([moved & np.uint8(15), moved >> np.uint8(4)], axis=-1)
    unpacked: Array = np.moveaxis(_E2M1[pairs.reshape(*moved.shape[:-1], -1)], -1, axis)
    return unpacked


def _powers_of_two(scale: Any) -> Array:
    """Scales: bytes are e8m0 exponents with 255 for NaN, floats are themselves."""
    if scale.data.dtype.itemsize > 1 or scale.dtype.scalar in RAW:
        return values_of(scale).astype(np.float32)
    exponents = scale.data.view(np.uint8)
    powers: Array = np.ldexp(np.ones(exponents.shape, np.float32), exponents.astype(np.int32) - 127)
    powers[exponents == 255] = np.nan
    return powers
