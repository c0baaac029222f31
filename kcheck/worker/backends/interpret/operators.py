"""Direct numpy implementations of the operators that kernels use most; anything unusual falls back to Triton's own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from kcheck.worker.backends.interpret import overflow
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import core, tl
from kcheck.worker.backends.interpret.types import BlockType, PointerType, Tensor, block_type, like, new

_Types = dict[int, np.dtype[Any]]

_INTEGERS: _Types = {id(tl.int32): np.dtype(np.int32), id(tl.int64): np.dtype(np.int64)}
_FLOATS: _Types = {
    id(tl.float16): np.dtype(np.float16),
    id(tl.float32): np.dtype(np.float32),
    id(tl.float64): np.dtype(np.float64),
}
_BOOLS: _Types = {id(tl.int1): np.dtype(bool)}
_NUMBERS = _INTEGERS | _FLOATS
_RANGES = {key: np.iinfo(dtype) for key, dtype in _INTEGERS.items()}


def install(patches: PatchSet) -> None:
    """Add the operators of ``tl.tensor``."""
    for name, function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
        _install_pair(patches, name, function, _NUMBERS)
    _install_pair(patches, "truediv", operator.truediv, {key: _FLOATS[key] for key in (id(tl.float32), id(tl.float64))})
    for name, function in (("floordiv", _quotient), ("mod", _remainder)):
        _install_pair(patches, name, function, _INTEGERS)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        _install(patches, f"__{name}__", _binary(getattr(operator, name), _NUMBERS, result=tl.int1))
    for name, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
        _install(patches, f"__{name}__", _binary(function, _INTEGERS | _BOOLS))
    patches.put(Tensor, "__add__", _pointer_add(patches.get(Tensor, "__add__")))
    patches.put(Tensor, "__getitem__", _getitem(patches.get(Tensor, "__getitem__")))


def _install_pair(patches: PatchSet, name: str, function: Callable[[Any, Any], Any], types: _Types) -> None:
    linear = function if function in overflow.LINEAR else None
    _install(patches, f"__{name}__", _binary(function, types, linear=linear))
    _install(patches, f"__r{name}__", _binary(lambda left, right: function(right, left), types, linear=linear))


def _install(patches: PatchSet, name: str, make: Callable[[Any], Any]) -> None:
    patches.put(Tensor, name, make(patches.get(Tensor, name)))


def _quotient(left: Any, right: Any) -> Any:
    """Integer division that rounds towards zero, as on a GPU."""
    return (left - np.fmod(left, right)) // right


_remainder = np.fmod  # its sign is that of the dividend, as on a GPU


def _constant(element: Any, value: Any, types: _Types) -> Any:
    """A Python number as a numpy scalar of the tensor's type, None where Triton promotes the tensor or refuses."""
    if value.__class__ is core.constexpr:
        value = value.value
    key = id(element)
    kind = value.__class__
    if key in _INTEGERS:
        if kind is int and _RANGES[key].min <= value <= _RANGES[key].max:
            return types[key].type(value)
        return None
    if key in _FLOATS and (kind is float or kind is int):
        return types[key].type(value)
    if key in _BOOLS and kind is bool:
        return np.bool_(value)
    return None


def _binary(
    function: Callable[[Any, Any], Any], types: _Types, result: Any = None, linear: Any = None
) -> Callable[[Any], Any]:
    """An operator for operands of one type.

    Args:
        function: Of arrays.
        types: Element types that it is for.
        result: Element type of comparisons.
        linear: What `overflow` calls it, for sums, differences and products.
    """

    def make(original: Any) -> Any:
        def apply(self: Any, other: Any) -> Any:
            element = self.dtype
            if id(element) not in types:
                return original(self, other)
            if other.__class__ is Tensor:
                if other.dtype is not element:
                    return original(self, other)
                operand = other.handle
                data = function(self.handle.data, operand.data)
                block = self.type.__class__ is BlockType or other.type.__class__ is BlockType
            else:
                operand = _constant(element, other, types)
                if operand is None:
                    return original(self, other)
                data = function(self.handle.data, operand)
                block = self.type.__class__ is BlockType
            element = result or element
            made = new(data, block_type(element, data.shape) if block else element, element)
            if linear is not None and data.dtype.kind == "i":
                if element is tl.int32:
                    overflow.combine(linear, function, self.handle, operand, made.handle)
                else:
                    overflow.carry(function, self.handle, operand, made.handle)
            return made

        return apply

    return make


def _pointer_add(number_add: Any) -> Any:
    def add(self: Any, other: Any) -> Any:
        pointer = self.dtype
        if not isinstance(pointer, PointerType) or other.__class__ is not Tensor or id(other.dtype) not in _INTEGERS:
            return number_add(self, other)
        if not hasattr(self.handle, "data"):  # a block pointer
            return number_add(self, other)
        size = max(1, pointer.element_ty.primitive_bitwidth // 8)
        made = like(self.handle.data + np.uint64(size) * other.handle.data.astype(np.uint64), pointer, self, other)
        overflow.carry(lambda start, offset: start + size * offset, self.handle, other.handle, made.handle)
        return made

    return add


def _getitem(original: Any) -> Any:
    whole = slice(None)

    def getitem(self: Any, index: Any) -> Any:
        # tl.slice objects do not occur: kernels run as Python.
        plain = index.__class__ is tuple and self.type.__class__ is BlockType
        if plain and all(part is None or part == whole for part in index):
            data = self.handle.data[index]
            if data.ndim == len(index):
                made = new(data, block_type(self.dtype, data.shape), self.dtype)
                overflow.keep(self.handle, made.handle, lambda true: true[index])
                return made
        return original(self, index)

    return getitem
