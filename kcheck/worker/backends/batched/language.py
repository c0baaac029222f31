"""Triton's language bound to the batched builder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kcheck.worker.backends.batched import hints, reductions
from kcheck.worker.backends.batched.builder import BatchedBuilder
from kcheck.worker.backends.batched.names import Names, refused
from kcheck.worker.backends.batched.semantic import BatchedSemantic
from kcheck.worker.backends.batched.values import (
    Array,
    Lanes,
    NotBatched,
    as_sequential,
    block,
    shape_of,
)
from kcheck.worker.backends.interpret import libdevice as functions
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.products import constant_formats
from kcheck.worker.backends.interpret.triton_seams import (
    core,
    cuda_libdevice,
    hip_libdevice,
    jit,
    libdevice,
    tl,
    tl_math,
)
from kcheck.worker.backends.interpret.types import BlockType, Tensor


class Language:
    """The language of kernels while the batched engine runs.

    To be made while Triton's own functions are in place.

    Attributes:
        builder: Makes all values.
        semantic: Triton's typing rules.
        patches: Puts the language in place.
        libdevice_patches: The functions of ``libdevice``, some hundreds, which few kernels need.
    """

    def __init__(self) -> None:
        self.builder = BatchedBuilder()
        self.semantic = BatchedSemantic(self.builder)
        self._helpers = Names(self.semantic)
        self.patches = PatchSet()
        self.libdevice_patches = PatchSet()
        self._names: WeakKeyDictionary[FunctionType, dict[str, Any]] = WeakKeyDictionary()
        self._libdevice_in_place = False
        self._within = False  # Triton's own code runs
        self.call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _no_call
        for owner in (tl, core, tl_math, Tensor, core.tensor_descriptor_base):
            for name, member in list(vars(owner).items()):
                if core.is_builtin(member):
                    self.patches.put(owner, name, self._bound(member))
        self._install_core()
        self._install_libdevice()
        self._replacements = self.patches.replacements() | self.libdevice_patches.replacements()

    def _bound(self, member: Any) -> Callable[..., Any]:
        function = getattr(member, "__wrapped__", None)
        code = getattr(function, "__code__", None)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
        target: Any = function if "_semantic" in names else member

        def bound(*args: Any, **kwargs: Any) -> Any:
            kwargs["_semantic"] = self.semantic
            within, self._within = self._within, True
            try:
                return target(*args, **kwargs)
            finally:
                self._within = within

        return bound

    def _install_core(self) -> None:
        put = self.patches.put
        reduce, scan = reductions.reduction(self), reductions.scan(self)
        for owner in (tl, core):
            put(owner, "reduce", reduce)
            put(owner, "associative_scan", scan)
            put(owner, "static_assert", _static_assert)
            put(owner, "static_print", refused("tl.static_print"))
            for name in ("multiple_of", "max_contiguous", "max_constancy"):
                put(owner, name, hints.hint(name, self._home))
            put(owner, "dot_scaled", constant_formats(self._bound(core.dot_scaled)))
        put(Tensor, "reduce", reduce)
        put(Tensor, "associative_scan", scan)
        put(Tensor, "__bool__", lambda tensor: self._within or _bool(tensor))  # there: whether it is not None
        put(Tensor, "__index__", _index)
        put(Tensor, "T", property(_transposed))
        put(jit.JITFunction, "__call__", lambda function, *args, **kwargs: self._call(function, args, kwargs))

    def _home(self, pointer: Any) -> int:
        memory = self.builder.memory
        assert memory is not None
        return memory.argument_of(pointer).backing.address

    def _install_libdevice(self) -> None:
        for module in (libdevice, cuda_libdevice, hip_libdevice):
            for name, function in list(vars(module).items() if module else ()):
                if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_":
                    self.libdevice_patches.put(module, name, self._by_name(name))

    def _by_name(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **_: Any) -> Any:
            function = functions.FUNCTIONS.get(name)
            tensors = [self.semantic.to_tensor(argument) for argument in arguments]
            if function is None or any(tensor.dtype in (tl.bfloat16, tl.float16) for tensor in tensors):
                raise NotBatched(f"libdevice.{name}")
            arrays = np.broadcast_arrays(*_operands(tensors))
            result = np.asarray(function(*arrays))
            if result.dtype.kind == "f":
                result = result.astype(arrays[0].dtype, copy=False)
            element = {np.dtype(bool): tl.int1, np.dtype(np.int32): tl.int32, np.dtype(np.int64): tl.int64}.get(
                result.dtype, tensors[0].dtype
            )
            return block(Lanes(result, element), element, result.shape[1:])

        return call

    def _call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        within, self._within = self._within, False
        try:
            return self.call(function, args, kwargs)
        finally:
            self._within = within

    @contextmanager
    def spoken(self) -> Iterator[None]:
        """Put the language in place until the context ends."""
        self.patches.apply()
        try:
            yield
        finally:
            if self._libdevice_in_place:
                self.libdevice_patches.withdraw()
                self._libdevice_in_place = False
            self.patches.withdraw()

    # -- names in kernels -------------------------------------------------------------------------------------------

    def names_of(self, function: FunctionType) -> dict[str, Any]:
        """What names mean in a function that are neither its variables nor plain global ones."""
        imported = self._names.get(function)
        if imported is None:
            imported = self._names[function] = {
                name: self._replacements[id(value)]
                for name, value in function.__globals__.items()
                if id(value) in self._replacements
            } | self._helpers.of(function)
        if not self._libdevice_in_place and _names_libdevice(function):
            self.libdevice_patches.apply()
            self._libdevice_in_place = True
        if not function.__closure__:
            return imported
        free = zip(function.__code__.co_freevars, function.__closure__, strict=True)
        return imported | {name: cell.cell_contents for name, cell in free}


def _operands(tensors: Sequence[Any]) -> list[Array]:
    """Data of equal rank. Scalars are not written out: for a power that is one number numpy has code of its own."""
    shapes = [shape_of(tensor) for tensor in tensors]
    rank = max(map(len, shapes))
    made = []
    for tensor, shape in zip(tensors, shapes, strict=True):
        data = as_sequential(tensor.handle.data) if shape else tensor.handle.data
        made.append(data.reshape(len(data), *(1,) * (rank - len(shape)), *shape))
    return made


def _names_libdevice(function: FunctionType) -> bool:
    names = function.__code__.co_names
    modules = (libdevice, cuda_libdevice, hip_libdevice)
    return "libdevice" in names or any(
        value is module for name in names for module in modules if (value := function.__globals__.get(name)) is not None
    )


def _transposed(tensor: Any) -> Any:
    return tl.trans(tensor)


def _bool(tensor: Any) -> bool:
    if shape_of(tensor):
        raise NotBatched("a block where Python wants a bool")
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
