"""Arithmetic as on an NVIDIA GPU, where Triton's interpreter differs.

It works on the raw bits of bfloat16 and the 8-bit floats, truncates where it should round to nearest even, and lets NaN
through ``tl.maximum``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.interpret import runtime
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import interpreter, tl
from kcheck.worker.backends.interpret.types import Handle

Array = npt.NDArray[Any]

# Types whose arrays hold raw bits.
RAW: dict[Any, torch.dtype] = {
    tl.bfloat16: torch.bfloat16,
    tl.float8e4nv: torch.float8_e4m3fn,
    tl.float8e5: torch.float8_e5m2,
    tl.float8e4b8: torch.float8_e4m3fnuz,
    tl.float8e5b16: torch.float8_e5m2fnuz,
}
# Conversions to 8-bit floats saturate, infinity too, even where the format has one.
_LARGEST = {tl.float8e4nv: 448.0, tl.float8e5: 57344.0, tl.float8e4b8: 240.0, tl.float8e5b16: 57344.0}

_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
_WRAPPING = ("add", "subtract", "multiply")


def to_float(data: Array, element: Any) -> npt.NDArray[np.float32]:
    """Raw bits of a type in `RAW` as float32; exact."""
    if element is tl.bfloat16:
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    bits = torch.from_numpy(np.array(data).view(np.uint8))
    result: npt.NDArray[np.float32] = bits.view(RAW[element]).float().numpy()
    return result


def to_raw(values: Array, element: Any) -> Array:
    """float32 values as raw bits of a type in `RAW`, rounded to nearest even."""
    source = torch.from_numpy(np.array(values, dtype=np.float32))
    largest = _LARGEST.get(element)
    if largest is not None:
        source = source.clamp(-largest, largest)  # keeps NaN
    raw = source.to(RAW[element])
    if element is tl.bfloat16:
        return raw.view(torch.int16).numpy().view(np.uint16)
    return raw.view(torch.uint8).numpy()


def values_of(handle: Any) -> Array:
    """The numbers that a handle holds."""
    element = handle.dtype.scalar
    return to_float(handle.data, element) if element in RAW else handle.data


def convert(data: Array, source: Any, target: Any) -> Array:
    """Values of type `source` as type `target`, rounded to nearest even, floats to integers towards zero."""
    if source in RAW:
        data = to_float(data, source)
    if target in RAW:
        return to_raw(data, target)
    dtype = interpreter._get_np_dtype(target)
    if data.dtype.kind == "f" and dtype.kind in "iu":
        return _saturate(data, dtype)
    return data.astype(dtype)


def _saturate(data: Array, dtype: np.dtype[Any]) -> Array:
    """Float to integer as ``cvt.rzi`` does: out of range gives the nearest integer of the type, NaN gives 0."""
    limits = np.iinfo(dtype)
    whole = np.trunc(data.astype(np.float64))
    inside = (whole >= limits.min) & (whole < float(limits.max) + 1)
    result = np.where(inside, whole, 0).astype(dtype)
    result[whole < limits.min] = limits.min
    result[whole >= float(limits.max) + 1] = limits.max
    return result


def install(patches: PatchSet) -> None:
    """Replace the builder's arithmetic."""
    builder_class = interpreter.InterpreterBuilder
    for name, function in {
        "binary_op": _binary_op,
        "unary_op": _unary_op,
        "cast_impl": _cast,
        "create_fp_to_fp": _fp_to_fp(builder_class.create_fp_to_fp),
        "create_fma": _fma,
        "create_minnumf": lambda self, left, right: self.binary_op(left, right, np.fmin),
        "create_maxnumf": lambda self, left, right: self.binary_op(left, right, np.fmax),
        "create_clampf": _clamp(builder_class.create_clampf),
        "create_erf": lambda self, argument: _through_torch(argument, torch.erf),
        "create_umulhi": _umulhi,
        "create_histogram": _histogram,
        "get_all_ones_value": _all_ones,
        "get_bf16": lambda self, value: Handle(to_raw(np.array([value]), tl.bfloat16), tl.bfloat16),
        "create_assert": lambda self, condition, message: runtime.check(condition.data, message),
        "create_assume": lambda self, condition: runtime.check(condition.data, "tl.assume does not hold"),
    }.items():
        patches.put(builder_class, name, function)


def _binary_op(self: Any, left: Any, right: Any, operation: Any) -> Any:
    element = left.dtype.scalar
    if element in RAW and operation.__name__ not in _BITWISE:
        result = operation(values_of(left), values_of(right))
        return Handle(result, tl.int1) if result.dtype == bool else Handle(to_raw(result, element), element)
    if left.data.dtype == bool and right.data.dtype == bool and operation.__name__ in _WRAPPING:
        wide = operation(left.data.astype(np.int8), right.data.astype(np.int8))
        return Handle((wide & 1).astype(bool), element)
    result = operation(left.data, right.data)
    if result.dtype == bool:
        return Handle(result, tl.int1)
    return Handle(result.astype(interpreter._get_np_dtype(element), copy=False), element)


def _unary_op(self: Any, argument: Any, operation: Any) -> Any:
    element = argument.dtype.scalar
    if element in RAW:
        return Handle(to_raw(operation(values_of(argument)), element), element)
    return Handle(operation(argument.data), element)


def _cast(self: Any, source: Any, target: Any) -> Any:
    return Handle(convert(source.data, source.dtype.scalar, target.scalar), target.scalar)


def _fp_to_fp(original: Any) -> Any:
    nearest = (None, interpreter._ir.ROUNDING_MODE.RTNE)

    def create_fp_to_fp(self: Any, source: Any, target: Any, rounding: Any) -> Any:
        if rounding in nearest:
            return _cast(self, source, target)
        return original(self, source, target, rounding)

    return create_fp_to_fp


def _fma(self: Any, x: Any, y: Any, z: Any) -> Any:
    element = z.dtype.scalar
    result = values_of(x).astype(np.float64) * values_of(y) + values_of(z)
    return Handle(convert(result, tl.float64, element), element)


def _clamp(original: Any) -> Any:
    none = interpreter._ir.PROPAGATE_NAN.NONE

    def create_clampf(self: Any, argument: Any, low: Any, high: Any, propagate_nan: Any) -> Any:
        if propagate_nan == none or argument.dtype.scalar in RAW:
            smaller, larger = (np.fmin, np.fmax) if propagate_nan == none else (np.minimum, np.maximum)
            return self.binary_op(self.binary_op(argument, low, larger), high, smaller)
        return original(self, argument, low, high, propagate_nan)

    return create_clampf


def _through_torch(argument: Any, function: Any) -> Any:
    return Handle(function(torch.from_numpy(np.array(argument.data))).numpy(), argument.dtype.scalar)


def _umulhi(self: Any, left: Any, right: Any) -> Any:
    dtype = left.data.dtype
    bits = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}")
    a, b = (np.ascontiguousarray(side.data).view(unsigned) for side in (left, right))
    if bits < 64:
        high = (a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(bits)
    else:
        high = (a.astype(object) * b.astype(object)) >> 64
    return Handle(high.astype(unsigned).view(dtype), left.dtype.scalar)


def _histogram(self: Any, data: Any, bins: Any, mask: Any = None) -> Any:
    values = data.data.astype(np.int64).ravel()
    valid = (values >= 0) & (values < bins)
    if mask is not None:
        valid &= np.broadcast_to(mask.data, data.data.shape).ravel()
    return Handle(np.bincount(values[valid], minlength=bins).astype(np.int32), tl.int32)


def _all_ones(self: Any, kind: Any) -> Any:
    dtype = interpreter._get_np_dtype(kind)
    ones = np.array([True]) if dtype.kind == "b" else np.full(1, -1, np.int64).astype(dtype)
    return Handle(ones, kind.scalar)
