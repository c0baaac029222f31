"""Removes repeated work from the interpreter's Python half; results are unchanged.

Triton's own interpreter recomputes every integer operation in 64 bits for an overflow check that it then drops, builds
a table of 19 element types at each look-up, and validates and names each block type anew.
"""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from types import NoneType
from typing import Any

from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import builder, core, interpreter, semantic_module
from kcheck.worker.backends.interpret.types import BlockType, PointerType, Tensor

_LIMIT = 4096


class _ByIdentity(dict[int, tuple[Any, Any]]):
    """What was worked out for an object: held with the object, so that its id stays its own.

    Not kept on Triton's type objects, since the compiler copies those.
    """

    def keep(self, key: Any, value: Any) -> Any:
        if len(self) >= _LIMIT:
            self.clear()
        self[id(key)] = (key, value)
        return value


_shapes = _ByIdentity()
_retyped: dict[tuple[int, int], tuple[Any, Any, Any]] = {}


def install(patches: PatchSet) -> None:
    """Add the caches."""
    options = dataclasses.replace(builder.options, debug=True, sanitize_overflow=False)  # debug: device_assert is live
    patches.put(builder, "options", options)
    patches.put(interpreter, "_get_np_dtype", _cached_numpy_dtype(interpreter._get_np_dtype))
    patches.put(BlockType, "with_element_ty", _with_element_ty)
    patches.put(BlockType, "__init__", _block_init(BlockType.__init__))
    patches.put(Tensor, "__init__", _tensor_init)
    patches.put(core, "_unwrap_if_constexpr", _quick_unwrap(core._unwrap_if_constexpr))
    if hasattr(interpreter.TensorHandle, "__post_init__"):
        patches.put(interpreter.TensorHandle, "__init__", _handle_init)
    owner = semantic_module.TritonSemantic
    patches.put(owner, "broadcast_impl_value", _quick_broadcast(owner.broadcast_impl_value))
    patches.put(owner, "binary_op_type_checking_impl", _quick_type_check(owner.binary_op_type_checking_impl))


def _cached_numpy_dtype(original: Any) -> Any:
    known = _ByIdentity()

    def get_np_dtype(kind: Any) -> Any:
        found = known.get(id(kind))
        return found[1] if found is not None else known.keep(kind, original(kind))

    return get_np_dtype


def _with_element_ty(self: Any, element: Any) -> Any:
    key = (id(self), id(element))
    found = _retyped.get(key)
    if found is None:
        if len(_retyped) >= _LIMIT:
            _retyped.clear()
        found = _retyped[key] = (self, element, BlockType(element, self.shape))
    return found[2]


def _block_init(original: Any) -> Any:
    """Shapes are checked and named once for each element type."""
    known: dict[tuple[int, tuple[Any, ...]], Any] = {}

    def init(self: Any, element: Any, shape: Any) -> None:
        sizes = tuple(core._unwrap_if_constexpr(size) for size in shape)
        found = known.get((id(element), sizes))
        if found is None:
            if len(known) >= _LIMIT:
                known.clear()
            original(self, element, shape)
            known[id(element), sizes] = dict(vars(self))
        else:
            vars(self).update(found)

    return init


@lru_cache(maxsize=_LIMIT)
def _constants(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Number of elements, and the shape, as kernels see them."""
    return core.constexpr(math.prod(shape)), core.tuple([core.constexpr(size) for size in shape])


def _tensor_init(self: Any, handle: Any, type: Any) -> None:
    found = _shapes.get(id(type))
    if found is None:
        numel, sizes = _constants(tuple(int(size) for size in type.shape) if type.is_block() else ())
        _shapes.keep(type, (numel, type.scalar, sizes))
        found = _shapes[id(type)]
    self.handle = handle
    self.type = type
    self.numel, self.dtype, self.shape = found[1]


def _handle_init(self: Any, data: Any, dtype: Any, attr: Any = None) -> None:
    self.data = data
    self.dtype = dtype
    self.attr = {} if attr is None else attr


def _quick_unwrap(original: Any) -> Any:
    constexpr = core.constexpr
    plain = frozenset((Tensor, int, float, bool, str, NoneType, core.dtype))

    def unwrap(value: Any) -> Any:
        kind = value.__class__
        if kind is constexpr:
            return value.value
        if kind in plain:
            return value
        return original(value)

    return unwrap


def _quick_broadcast(original: Any) -> Any:
    def broadcast_impl_value(self: Any, left: Any, right: Any) -> Any:
        if left.type is right.type:
            return left, right
        left_block, right_block = isinstance(left.type, BlockType), isinstance(right.type, BlockType)
        if not left_block and not right_block:
            return left, right
        if left_block and right_block and left.handle.data.shape == right.handle.data.shape:
            return left, right
        return original(self, left, right)

    return broadcast_impl_value


def _quick_type_check(original: Any) -> Any:
    def binary_op_type_checking_impl(
        self: Any, left: Any, right: Any, allow_lhs_ptr: bool = False, allow_rhs_ptr: bool = False,
        arithmetic_check: bool = True, div_or_mod: bool = False,
    ) -> Any:  # fmt: skip
        if left.__class__ is Tensor and right.__class__ is Tensor and not div_or_mod:
            element = left.dtype
            if element is right.dtype and not isinstance(element, PointerType):
                return self.broadcast_impl_value(left, right)
        return original(self, left, right, allow_lhs_ptr, allow_rhs_ptr, arithmetic_check, div_or_mod)

    return binary_op_type_checking_impl
