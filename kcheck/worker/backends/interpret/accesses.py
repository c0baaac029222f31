"""Direct implementations of the builtins around memory: index ranges, program ids, loads and stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from kcheck.worker.backends.base import AccessKind
from kcheck.worker.backends.interpret import overflow
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import builder, core, interpreter, tl
from kcheck.worker.backends.interpret.types import BlockType, PointerType, Tensor, block_type, new

# Integers and IEEE floats: their numpy arrays hold values, not raw bits.
_PLAIN = {
    id(element)
    for element in (
        tl.int8, tl.int16, tl.int32, tl.int64, tl.uint8, tl.uint16, tl.uint32, tl.uint64,
        tl.float16, tl.float32, tl.float64,
    )
}  # fmt: skip
_FLOATING = {id(tl.float16), id(tl.float32), id(tl.float64)}
_RAW_FLOATS = {id(element) for element in (tl.bfloat16, tl.float8e4nv, tl.float8e5, tl.float8e4b8, tl.float8e5b16)}
_ALLOWED = _PLAIN | _RAW_FLOATS


def install(patches: PatchSet) -> None:
    """Add the builtins to ``tl`` and ``tl.core``."""
    for name, make in (
        ("arange", _arange), ("load", _load), ("store", _store), ("program_id", _program_id),
    ):  # fmt: skip
        function = make(patches.get(core, name))
        patches.put(core, name, function)
        patches.put(tl, name, function)
    patches.put(Tensor, "store", patches.get(core, "store"))


def _value(number: Any) -> Any:
    return number.value if number.__class__ is core.constexpr else number


def _arange(original: Any) -> Any:
    made: dict[tuple[int, int], Any] = {}

    def arange(start: Any, end: Any, **options: Any) -> Any:
        first, last = _value(start), _value(end)
        if first.__class__ is not int or last.__class__ is not int:
            return original(start, end, **options)
        data = made.get((first, last))
        if data is None:
            size = last - first
            if size <= 0 or size & (size - 1):
                return original(start, end, **options)
            data = made[first, last] = np.arange(first, last, dtype=np.int32)
            data.setflags(write=False)
        tensor = new(data, block_type(tl.int32, data.shape), tl.int32)
        tensor.handle.bound = max(abs(first), abs(last))
        return tensor

    return arange


def _program_id(original: Any) -> Any:
    def program_id(axis: Any, **options: Any) -> Any:
        axis = _value(axis)
        if axis not in (0, 1, 2):
            return original(axis, **options)
        return new(np.array([builder.grid_idx[axis]], dtype=np.int32), tl.int32, tl.int32)

    return program_id


def _target(pointer: Any) -> Any:
    """The element type that a plain pointer tensor points to; None for anything that needs Triton's own path."""
    if pointer.__class__ is not Tensor:
        return None
    kind = pointer.dtype
    if not isinstance(kind, PointerType) or (pointer.type is not kind and pointer.type.__class__ is not BlockType):
        return None
    element = kind.element_ty
    return element if id(element) in _ALLOWED and not getattr(kind, "const", False) else None


def _lanes(mask: Any, pointers: Any, is_block: bool) -> tuple[bool, Any]:
    """Whether a mask argument is a simple one, and its array (None for all lanes)."""
    if mask is None:
        return True, None
    if mask.__class__ is not Tensor or mask.dtype is not tl.int1:
        return False, None
    data = mask.handle.data
    if not is_block and mask.type.__class__ is BlockType:
        return False, None
    if data.shape == pointers.shape:
        return True, data
    if data.size == 1 or data.ndim <= pointers.ndim:
        try:
            return True, np.broadcast_to(data, pointers.shape)
        except ValueError:  # the mask is the larger one, or they do not fit: Triton decides
            return False, None
    return False, None


def _fallback(other: Any, element: Any, dtype: Any, shape: tuple[int, ...]) -> tuple[bool, Any]:
    """Whether ``other`` is a simple one, and its array."""
    if other is None:
        return True, None
    other = _value(other)
    if other.__class__ is Tensor:
        if other.dtype is not element or other.handle.data.ndim > len(shape):
            return False, None
        return True, other.handle.data
    if id(element) in _FLOATING and other.__class__ in (int, float):
        return True, dtype.type(other)
    if other.__class__ is int and dtype.kind in "iu" and id(element) in _PLAIN:
        limits = np.iinfo(dtype)
        return (True, dtype.type(other)) if limits.min <= other <= limits.max else (False, None)
    if id(element) in _RAW_FLOATS and str(other) in ("0", "0.0"):
        return True, dtype.type(0)
    return False, None


def _check_offset(access: AccessKind, pointer: Any, mask: Any) -> None:
    lanes = mask.handle.data if mask.__class__ is Tensor else None
    overflow.check_access(access, pointer.handle, lanes, interpreter._interpreter)


_PASSIVE = frozenset(("cache_modifier", "eviction_policy", "volatile"))


def _load(original: Any) -> Any:
    def load(pointer: Any, mask: Any = None, other: Any = None, *rest: Any, **options: Any) -> Any:
        element = _target(pointer)
        if overflow.state.wrapped and pointer.__class__ is Tensor:
            _check_offset("read", pointer, mask)
        if (
            element is None
            or rest
            or (options and not _PASSIVE.issuperset(options))
            or (mask is None and other is not None)
        ):
            return original(pointer, mask, other, *rest, **options)
        pointers = pointer.handle.data
        block = pointer.type.__class__ is BlockType
        dtype = interpreter._get_np_dtype(element)
        simple_mask, lanes = _lanes(mask, pointers, block)
        simple_other, fallback = _fallback(other, element, dtype, pointers.shape)
        if not simple_mask or not simple_other:
            return original(pointer, mask, other, **options)
        volatile = bool(options) and (_value(options.get("volatile")) or _value(options.get("cache_modifier")) == ".cv")
        data = interpreter._interpreter.load(pointers, lanes, fallback, dtype, volatile)
        return new(data, block_type(element, data.shape) if block else element, element)

    return load


def _store(original: Any) -> Any:
    def store(pointer: Any, value: Any, mask: Any = None, *rest: Any, **options: Any) -> Any:
        element = _target(pointer)
        if overflow.state.wrapped and pointer.__class__ is Tensor:
            _check_offset("write", pointer, mask)
        if element is None or rest or (options and not _PASSIVE.issuperset(options)):
            return original(pointer, value, mask, *rest, **options)
        pointers = pointer.handle.data
        block = pointer.type.__class__ is BlockType
        simple, lanes = _lanes(mask, pointers, block)
        if not simple or value.__class__ is not Tensor or value.dtype is not element:
            return original(pointer, value, mask, **options)
        data = value.handle.data
        fits = data.shape == pointers.shape or data.size == 1
        if not fits or (not block and value.type.__class__ is BlockType):
            return original(pointer, value, mask, **options)
        interpreter._interpreter.store(pointers, data, lanes)
        return None

    return store
