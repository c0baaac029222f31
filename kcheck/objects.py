"""Arguments that are neither tensors nor numbers: members of enumerations, generators, dataclasses, named tuples.

Kept as plain data that names a class; a worker finds the class among the modules that the target has imported.

Whatever a wrapper takes is drawn as it is, an object with tensors in it, lengths on the host, a generator::

    class Mode(enum.Enum):
        ADD = 1
        SUBTRACT = -1

    @dataclasses.dataclass
    class Meta:
        lengths: torch.Tensor
        mode: Mode
        dtype: torch.dtype

    @st.composite
    def cases(draw):
        count = draw(ks.dims("count", max_value=4))
        lengths, mode = draw(ks.host(ks.tensors((count,), "int32"))), draw(ks.options("mode", tuple(Mode)))
        xs = [draw(ks.tensors((3, 5))) for _ in range(count)]
        return kcheck.Case(xs=xs, meta=Meta(lengths, mode, torch.float32), generator=draw(ks.generators()), bias=None)

    def combined(xs, meta, generator, bias):
        noise = torch.rand(3, 5, generator=generator, device=xs[0].device)
        return sum(x * meta.mode.value for x in xs).to(meta.dtype) + noise

    target = kcheck.target(cases=cases(), oracle=combined)(combined)
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kcheck.errors import InvalidDocument


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A member of an enumeration.

    Attributes:
        kind: The class, as ``module:QualName``.
        name: Name of the member.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class GeneratorValue:
    """A ``torch.Generator`` on the device, seeded anew for each run.

    Attributes:
        seed: What it is seeded with.
    """

    seed: int


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """A dataclass or a named tuple, made anew for each run.

    Attributes:
        kind: The class, as ``module:QualName``.
        fields: What its constructor gets, by name.
    """

    kind: str
    fields: tuple[tuple[str, Any], ...]


def argument_of(path: str) -> str:
    """The argument that a view belongs to: ``caches`` for ``caches[1]``, ``meta`` for ``meta.table``."""
    return path.partition("[")[0].partition(".")[0]


def map_leaves(
    path: str,
    value: Any,
    change: Callable[[str, Any], Any],
    make: Callable[[ObjectValue, dict[str, Any]], Any],
) -> Any:
    """A value with everything in it that holds nothing else replaced.

    Args:
        path: Its name; what it holds is called ``path[1]`` or ``path.field``.
        value: Lists, tuples and objects are walked through.
        change: Gives what takes a leaf's place, from its path.
        make: Gives what takes an object's place, from its fields.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(map_leaves(f"{path}[{i}]", item, change, make) for i, item in enumerate(value))
    if isinstance(value, ObjectValue):
        return make(value, {name: map_leaves(f"{path}.{name}", item, change, make) for name, item in value.fields})
    return change(path, value)


def remade(value: ObjectValue, fields: dict[str, Any]) -> ObjectValue:
    """The same object with other fields: what `map_leaves` needs to give plain data again."""
    return ObjectValue(value.kind, tuple(fields.items()))


def settled(where: str, value: Any, settle: Callable[[str, Any], Any]) -> EnumValue | ObjectValue | None:
    """An enumeration's member, a dataclass or a named tuple as plain data; None for anything else.

    Args:
        where: Its path, for errors.
        value: Anything.
        settle: Makes plain data of a field, from its path.

    Raises:
        InvalidDocument: A worker could not make it again.
    """
    if isinstance(value, enum.Enum):
        if value.name is None or value.name not in type(value).__members__:
            raise InvalidDocument(f"args.{where}", f"is {value!r}, which has no name of its own; give a single member")
        return EnumValue(_class_name(where, type(value)), value.name)
    held = _fields(where, value)
    if held is None:
        return None
    fields = tuple((name, settle(f"{where}.{name}", item)) for name, item in held.items())
    return ObjectValue(_class_name(where, type(value)), fields)


def _class_name(where: str, kind: type) -> str:
    if "<" in kind.__qualname__:
        raise InvalidDocument(f"args.{where}", f"is of the class {kind.__qualname__}; define it at module level")
    return f"{kind.__module__}:{kind.__qualname__}"


def _fields(where: str, value: Any) -> dict[str, Any] | None:
    """What the constructor gets."""
    if isinstance(value, tuple):
        return dict(value._asdict()) if hasattr(value, "_asdict") else None
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return None
    held = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init}
    lost = sorted(inspect.signature(type(value)).parameters.keys() - held.keys())
    if lost:
        raise InvalidDocument(f"args.{where}", f"cannot be made again: its constructor wants {lost[0]}, no field of it")
    return held
