"""A case: one replayable set of inputs, as plain data. No tensors, no torch; JSON both ways (`kcheck.document`)."""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from kcheck.dtypes import dtype_named
from kcheck.errors import InvalidDocument
from kcheck.fill import Fill
from kcheck.layout import Layout, LayoutKind
from kcheck.objects import EnumValue, GeneratorValue, ObjectValue, argument_of, map_leaves, remade, settled


class Role(enum.StrEnum):
    """What a tensor argument is for."""

    INPUT = "input"
    INDEX = "index"  # integers that address something
    OUTPUT = "output"  # every element gets written
    INOUT = "inout"  # elements not written keep their value
    CONSUMED = "consumed"  # an input that may be overwritten, with anything
    SCRATCH = "scratch"  # may be written, is never judged

    @property
    def writable(self) -> bool:
        """Whether the kernel may write the argument."""
        return self in (Role.OUTPUT, Role.INOUT, Role.CONSUMED, Role.SCRATCH)


@dataclass(frozen=True, slots=True)
class Backing:
    """Memory that views lie over.

    Attributes:
        dtype: Name of the data type.
        numel: Elements.
    """

    dtype: str
    numel: int

    def __post_init__(self) -> None:
        dtype_named(self.dtype)
        if type(self.numel) is not int or self.numel < 0:
            raise InvalidDocument("numel", f"is {self.numel!r}; expected an integer >= 0")

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel * dtype_named(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class View:
    """One tensor argument: a layout over a backing, and its values.

    Attributes:
        backing: Name of the backing.
        dtype: Name of the data type (the backing's).
        layout: Place in the backing.
        fill: Values of the view's elements.
        role: What the argument is for.
        bound: Index arguments: values address [0, bound), so that a decoy looks valid. None: not known.
        host: It lies in host memory, whatever the device.
    """

    backing: str
    dtype: str
    layout: Layout
    fill: Fill = field(default_factory=Fill)
    role: Role = Role.INPUT
    bound: int | None = None
    host: bool = False

    @property
    def kinds(self) -> frozenset[LayoutKind]:
        """Named kinds of the layout."""
        return self.layout.kinds(dtype_named(self.dtype).itemsize)

    @property
    def code(self) -> str:
        """The layout as a torch expression."""
        return self.layout.code(self.dtype)


@dataclass(frozen=True, slots=True)
class DTypeValue:
    """A ``torch.dtype`` argument, by name."""

    name: str


class Memory:
    """Identity of one backing while a case is put together: tensors that share a `Memory` share the backing."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor as strategies draw it, before a case gives it the name of its argument.

    Attributes:
        dtype: Name of the data type.
        layout: Place in its memory.
        fill: Values.
        role: What it is for.
        bound: Index tensors: values address [0, bound).
        memory: Shared with other tensors, or this tensor's own.
        host: It lies in host memory, whatever the device.
    """

    dtype: str
    layout: Layout
    fill: Fill = field(default_factory=Fill)
    role: Role = Role.INPUT
    bound: int | None = None
    memory: Memory = field(default_factory=Memory)
    host: bool = False

    def __post_init__(self) -> None:
        if self.role not in list(Role):
            raise InvalidDocument("role", f"is {self.role!r}; expected one of {', '.join(Role)}")
        object.__setattr__(self, "role", Role(self.role))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the view."""
        return self.layout.shape


Scalar = int | float | bool | str | None
Leaf = View | DTypeValue | EnumValue | GeneratorValue | Scalar
Value = Leaf | ObjectValue | tuple["Value", ...] | list["Value"]


class Case:
    """One set of arguments of a target, by name. Immutable; equal when the plain data is equal.

    Args:
        **arguments: The target's arguments: tensors drawn by `kcheck.strategies`, numbers, strings, booleans, None,
            torch data types, members of enumerations, seeded generators, and lists, tuples and dataclasses of these.

    Attributes:
        args: Settled arguments by name.
        backings: Memory by name.
        drawn: The drawn tensors by path, for a case put together by a strategy; not part of the data.

    Raises:
        InvalidDocument: An argument is of another type, or two tensors over one memory do not fit together.
    """

    __slots__ = ("__dict__", "args", "backings", "drawn")
    args: Mapping[str, Value]
    backings: Mapping[str, Backing]
    drawn: Mapping[str, Tensor]

    def __init__(self, /, **arguments: Any) -> None:
        names: dict[Memory, str] = {}
        drawn: dict[str, Tensor] = {}
        backings: dict[str, Backing] = {}

        def settle(name: str, value: Any) -> Value:
            if isinstance(value, Tensor):
                drawn[name] = value
                backing = names.setdefault(value.memory, name)
                backings.setdefault(backing, Backing(value.dtype, value.layout.backing_numel))
                return View(backing, value.dtype, value.layout, value.fill, value.role, value.bound, value.host)
            if value is None or type(value) in (bool, int, float, str, DTypeValue, GeneratorValue):
                return value  # type: ignore[no-any-return]
            held = settled(name, value, settle)
            if held is not None:
                return held
            if isinstance(value, (list, tuple)):
                return type(value)(settle(f"{name}[{i}]", item) for i, item in enumerate(value))
            return _plain(name, value)

        args = {name: settle(name, value) for name, value in arguments.items()}
        self._set(args, backings, drawn)

    @classmethod
    def of(cls, args: Mapping[str, Value], backings: Mapping[str, Backing]) -> Case:
        """A case from settled arguments (views instead of drawn tensors).

        Raises:
            InvalidDocument: A view does not fit its backing.
        """
        case = cls.__new__(cls)
        case._set(args, backings)
        return case

    def _set(
        self, args: Mapping[str, Value], backings: Mapping[str, Backing], drawn: Mapping[str, Tensor] | None = None
    ) -> None:
        object.__setattr__(self, "args", MappingProxyType(dict(args)))
        object.__setattr__(self, "drawn", MappingProxyType(dict(drawn or {})))
        object.__setattr__(self, "backings", MappingProxyType(dict(backings)))
        for name, view in self.views.items():
            _check_view(name, view, self.backings)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a case is immutable; make another one instead of setting {name!r}")

    @cached_property
    def views(self) -> Mapping[str, View]:
        """Every view by its path: ``pool``, ``caches[1]`` for an entry of a list, ``meta.table`` for a field."""
        found: dict[str, View] = {}

        def note(path: str, leaf: Leaf) -> None:
            if isinstance(leaf, View):
                found[path] = leaf

        for name, value in self.args.items():
            map_leaves(name, value, note, remade)
        return MappingProxyType(found)

    @cached_property
    def key(self) -> str:
        """Digest of the plain data, 16 hexadecimal digits; the same in every process."""
        return hashlib.sha256(repr((dict(self.args), dict(self.backings))).encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Case.of, (dict(self.args), dict(self.backings))

    def __repr__(self) -> str:
        parts = (f"{name}={value.code if isinstance(value, View) else value!r}" for name, value in self.args.items())
        return f"Case({', '.join(parts)})"

    def with_roles(self, roles: Mapping[str, Role]) -> Case:
        """The same case with the roles of some arguments replaced (entries of a list follow their argument).

        Raises:
            InvalidDocument: An argument to be written has a layout whose elements overlap.
        """

        def change(name: str, view: View) -> View:
            role = roles.get(name) or roles.get(argument_of(name))
            return view if role is None else replace(view, role=role)

        return self.map_views(change)

    def map_views(self, change: Callable[[str, View], View]) -> Case:
        """The same case with every view replaced by ``change(path, view)``."""

        def changed(path: str, leaf: Leaf) -> Leaf:
            return change(path, leaf) if isinstance(leaf, View) else leaf

        return Case.of({n: map_leaves(n, value, changed, remade) for n, value in self.args.items()}, self.backings)


def _plain(where: str, value: Any) -> Leaf:
    if value is None or isinstance(value, (bool, int, float, str, DTypeValue, GeneratorValue)):
        return value
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return DTypeValue(str(value).removeprefix("torch."))
    if type(value).__name__ == "Generator" and hasattr(value, "initial_seed"):
        return GeneratorValue(value.initial_seed())
    if hasattr(value, "example"):
        raise InvalidDocument(f"args.{where}", "is a strategy, not a value: draw(...) it")
    raise InvalidDocument(
        f"args.{where}",
        f"is a {type(value).__name__}; a case holds tensors drawn by kcheck.strategies, numbers, strings, booleans, "
        "None, data types, enumerations, seeded generators, and lists, tuples and dataclasses of these",
    )


def _check_view(name: str, view: View, backings: Mapping[str, Backing]) -> None:
    where = f"args.{name}"
    backing = backings.get(view.backing)
    if backing is None:
        raise InvalidDocument(f"{where}.backing", f"{view.backing!r} is not in backings ({', '.join(backings)})")
    if view.dtype != backing.dtype or view.layout.backing_numel != backing.numel:
        raise InvalidDocument(
            where,
            f"needs {view.layout.backing_numel} elements of {view.dtype}, but backing {view.backing!r} has "
            f"{backing.numel} of {backing.dtype}",
        )
    if view.role in (Role.OUTPUT, Role.INOUT) and view.layout.overlapping:
        raise InvalidDocument(
            where, f"is written but its elements overlap ({view.code}); draw it with kcheck.strategies.outputs"
        )
    if view.bound is not None and (type(view.bound) is not int or view.bound < 0):
        raise InvalidDocument(f"{where}.bound", f"is {view.bound!r}; expected an integer >= 0 or null")
    try:
        view.fill.check(dtype_named(view.dtype), distinct(view.layout))
    except InvalidDocument as error:
        raise InvalidDocument(f"{where}.fill.{error.where}", error.problem) from None


def distinct(layout: Layout) -> int:
    """Elements of a view, an expanded dimension counted as size 1."""
    return math.prod(min(dim.size, 1) if dim.expanded else dim.size for dim in layout.dims)
