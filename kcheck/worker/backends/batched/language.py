"""Triton's language bound to the batched builder, and what rewritten kernels call."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from kcheck.worker.backends.batched import reductions
from kcheck.worker.backends.batched.builder import BatchedBuilder, BatchedSemantic
from kcheck.worker.backends.batched.values import (
    Array,
    Constant,
    Lanes,
    NotBatched,
    block,
    is_uniform,
    new_tensor,
    shape_of,
)
from kcheck.worker.backends.interpret import libdevice as functions
from kcheck.worker.backends.interpret import runtime
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.products import _constant_formats
from kcheck.worker.backends.interpret.triton_seams import (
    core,
    cuda_libdevice,
    hip_libdevice,
    interpreter,
    jit,
    libdevice,
    tl,
    tl_math,
)
from kcheck.worker.backends.interpret.types import BlockType, Tensor

_PREFIX = "_kcheck_"


class Range:
    """``range`` of integers or scalar tensors.

    Args:
        language: Knows Triton's types.
        bounds: Start, stop and step.
    """

    def __init__(self, language: Language, bounds: tuple[Any, Any, Any]) -> None:
        self._bounds = bounds
        self._language = language
        self._kind = tl.int32
        for bound in bounds:
            kind = bound.dtype if isinstance(bound, Tensor) else language.semantic.to_tensor(bound).dtype
            if kind.primitive_bitwidth > self._kind.primitive_bitwidth:
                self._kind = kind

    @property
    def is_uniform(self) -> bool:
        """Whether all programs have the same bounds."""
        return all(not isinstance(bound, Tensor) or is_uniform(bound.handle) for bound in self._bounds)

    def __iter__(self) -> Iterator[Any]:
        """Items where all programs have the same."""
        for value in range(*(int(bound) for bound in self._bounds)):
            yield self._language.semantic.scalar_constant(value, self._kind)

    def arrays(self) -> tuple[Array, Array, Array]:
        """First item, number of items, and step; shape (programs,) or (1,)."""
        start, stop, step = (
            (bound.handle.data if isinstance(bound, Tensor) else np.array([bound])).astype(np.int64)
            for bound in self._bounds
        )
        if (step == 0).any():
            raise NotBatched("a range with step 0")
        return start, np.maximum(-((start - stop) // step), 0), step

    def item(self, values: Array) -> Any:
        """The loop variable.

        Args:
            values: Of each program.
        """
        dtype = interpreter._get_np_dtype(self._kind)
        return block(Lanes(values.astype(dtype), self._kind), self._kind, ())


class Language:
    """The language of kernels while the batched engine runs.

    To be made while Triton's own functions are in place.

    Attributes:
        builder: Makes all values.
        semantic: Triton's typing rules.
        patches: Puts the language in place.
    """

    def __init__(self) -> None:
        self.builder = BatchedBuilder()
        self.semantic = BatchedSemantic(self.builder)
        self.patches = PatchSet()
        self._names: dict[CodeType, dict[str, Any]] = {}
        self.call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _no_call
        for owner in (tl, core, tl_math, Tensor):
            for name, member in list(vars(owner).items()):
                if core.is_builtin(member):
                    self.patches.put(owner, name, self._bound(member))
        self._install_core()
        self._install_libdevice()
        self._replacements = self.patches.replacements()

    def _bound(self, member: Any) -> Callable[..., Any]:
        function = getattr(member, "__wrapped__", None)
        code = getattr(function, "__code__", None)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
        target: Any = function if "_semantic" in names else member

        def bound(*args: Any, **kwargs: Any) -> Any:
            kwargs["_semantic"] = self.semantic
            return target(*args, **kwargs)

        return bound

    def _install_core(self) -> None:
        put = self.patches.put
        reduce, scan = reductions.reduction(self), reductions.scan(self)
        for owner in (tl, core):
            put(owner, "reduce", reduce)
            put(owner, "associative_scan", scan)
            put(owner, "static_assert", _static_assert)
            put(owner, "static_print", _refused("tl.static_print"))
            for name in ("multiple_of", "max_contiguous", "max_constancy"):
                put(owner, name, lambda value, *_, **__: value)
            put(owner, "dot_scaled", _constant_formats(self._bound(core.dot_scaled)))
        put(Tensor, "reduce", reduce)
        put(Tensor, "associative_scan", scan)
        put(Tensor, "__bool__", _bool)
        put(Tensor, "__index__", _index)
        put(Tensor, "T", property(_transposed))
        put(jit.JITFunction, "__call__", lambda function, *args, **kwargs: self._call(function, args, kwargs))

    def _install_libdevice(self) -> None:
        for module in (libdevice, cuda_libdevice, hip_libdevice):
            for name, function in list(vars(module).items() if module else ()):
                if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_":
                    self.patches.put(module, name, self._by_name(name))

    def _by_name(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **_: Any) -> Any:
            function = functions.FUNCTIONS.get(name)
            tensors = [self.semantic.to_tensor(argument) for argument in arguments]
            if function is None or any(tensor.dtype in (tl.bfloat16, tl.float16) for tensor in tensors):
                raise NotBatched(f"libdevice.{name}")
            tensors = self.broadcast(tensors)
            arrays = np.broadcast_arrays(*(tensor.handle.data for tensor in tensors))
            result = np.asarray(function(*arrays))
            if result.dtype.kind == "f":
                result = result.astype(arrays[0].dtype, copy=False)
            element = {np.dtype(bool): tl.int1, np.dtype(np.int32): tl.int32, np.dtype(np.int64): tl.int64}.get(
                result.dtype, tensors[0].dtype
            )
            return block(Lanes(result, element), element, shape_of(tensors[0]))

        return call

    def broadcast(self, tensors: list[Any]) -> list[Any]:
        """Tensors in their common shape."""
        widest = tensors[0]
        for tensor in tensors[1:]:
            widest, _ = self.semantic.broadcast_impl_value(widest, tensor)
        return [self.semantic.broadcast_impl_value(tensor, widest)[0] for tensor in tensors]

    def _call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.call(function, args, kwargs)

    # -- names in kernels -------------------------------------------------------------------------------------------

    def names_of(self, function: FunctionType) -> dict[str, Any]:
        """What names mean in a function that are neither its variables nor plain global ones."""
        imported = self._names.get(function.__code__)
        if imported is None:
            imported = self._names[function.__code__] = {
                name: self._replacements[id(value)]
                for name, value in function.__globals__.items()
                if id(value) in self._replacements
            } | self._helpers(function)
        if not function.__closure__:
            return imported
        free = zip(function.__code__.co_freevars, function.__closure__, strict=True)
        return imported | {name: cell.cell_contents for name, cell in free}

    def _helpers(self, function: FunctionType) -> dict[str, Any]:
        helpers = {
            "assign": self._assign, "range": self._range, "static_range": _static_range, "decided": runtime.decided,
            "combine": self._combine, "negate": self._negate, "check": runtime.check,
        }  # fmt: skip
        extremes = {"min": (builtins.min, "minimum"), "max": (builtins.max, "maximum")}
        return {_PREFIX + name: helper for name, helper in helpers.items()} | {
            name: self._extreme(*extreme) for name, extreme in extremes.items() if name not in function.__globals__
        }

    def _assign(self, value: Any) -> Any:
        """``name = value``: numbers become tensors, as in Triton."""
        if value.__class__ is Tensor:
            return value
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(self._assign(item) for item in value)
        return self.semantic.to_tensor(value, False)

    def _range(self, *bounds: Any, **options: Any) -> Range:
        return Range(self, _bounds(bounds, options))

    def _combine(self, operator: Any, left: Any, right: Any) -> Any:
        """``left and right`` or ``left or right`` once both sides are known; see `runtime.combine`."""
        if not isinstance(left, Tensor):
            return right
        if not isinstance(right, Tensor):
            neutral = bool(right) == (operator == "and")
            return left if neutral else self.semantic.to_tensor(bool(right))
        method = self.semantic.logical_and if operator == "and" else self.semantic.logical_or
        return method(*(self._as_bool(value) for value in (left, right)))

    def _as_bool(self, value: Any) -> Any:
        if value.dtype is tl.int1:
            return value
        return block(Lanes(value.handle.data != 0, tl.int1), tl.int1, shape_of(value))

    def _negate(self, value: Any) -> Any:
        """``not value``."""
        if not isinstance(value, Tensor):
            return not value
        if isinstance(value.handle, Constant):
            return new_tensor(Constant(not value.handle.value, value.handle.shape, tl.int1), value.type)
        return block(Lanes(value.handle.data == 0, tl.int1), tl.int1, shape_of(value))

    def _extreme(self, plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        """``min`` or ``max`` of Python, of scalars that differ between programs too."""

        def extreme(*values: Any, **options: Any) -> Any:
            tensors = [value for value in values if isinstance(value, Tensor)]
            if options or all(is_uniform(tensor.handle) for tensor in tensors):
                return plain(*values, **options)
            kinds = {tensor.dtype for tensor in tensors}
            numbers = [value for value in values if not isinstance(value, Tensor)]
            whole = kinds == {tl.int32} and all(type(value) is int for value in numbers)
            if len(values) != 2 or any(map(shape_of, tensors)) or len(kinds) > 1 or not (whole or not numbers):
                raise NotBatched(f"{plain.__name__} of these values")
            if any(kind.is_floating() for kind in kinds):
                raise NotBatched(f"{plain.__name__} of floats")
            return getattr(tl, name)(*values)

        return extreme


def _bounds(given: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    named = {"arg1": 0, "start": 0, "arg2": 1, "stop": 1, "end": 1, "step": 2}
    values: list[Any] = [*given, None, None, None][:3]
    for name, value in options.items():
        if name in named:
            values[named[name]] = value
    first, second, step = (value.value if isinstance(value, core.constexpr) else value for value in values)
    start, stop = (0, first) if second is None else (first, second)
    return start, stop, 1 if step is None else step


def _transposed(tensor: Any) -> Any:
    return tl.trans(tensor)


def _static_range(*bounds: Any, **options: Any) -> range:
    return range(*(int(bound) for bound in _bounds(bounds, options)))


def _bool(tensor: Any) -> bool:
    if shape_of(tensor):
        return True  # Triton's own code asks whether there is a mask, for example
    data = tensor.handle.data
    if data.all() or not data.any():
        return bool(data[0])
    raise NotBatched("a value of each program where Python wants a bool")


def _index(tensor: Any) -> int:
    data = tensor.handle.data
    if tensor.type.__class__ is BlockType or data.size != 1:
        raise NotBatched("a value of each program where Python wants an integer")
    return int(data[0])


def _no_call(*_: Any) -> Any:
    raise NotBatched


def _static_assert(condition: Any, message: Any = "", **_: Any) -> None:
    if not condition:
        raise NotBatched


def _refused(feature: str) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise NotBatched(feature)

    return call
