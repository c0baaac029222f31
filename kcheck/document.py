"""Cases as JSON documents: written, read back, and validated with an error that names the place."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any, TypeVar

from kcheck.case import Backing, Case, DTypeValue, Role, Value, View
from kcheck.dtypes import dtype_named
from kcheck.errors import InvalidDocument
from kcheck.fill import FILL_VERSION, Fill, number_from_json
from kcheck.layout import Dim, Layout, Plane
from kcheck.objects import EnumValue, GeneratorValue, ObjectValue

CASE_SCHEMA = "kcheck.case/1"
T = TypeVar("T")
_TAGS = "view, dtype, enum, generator, object, list, tuple or float"


def case_to_json(case: Case) -> dict[str, Any]:
    """A case as plain data for `json.dumps`."""
    return {
        "schema": CASE_SCHEMA,
        "backings": {name: {"dtype": b.dtype, "numel": b.numel} for name, b in case.backings.items()},
        "args": {name: _value_to_json(value) for name, value in case.args.items()},
    }


@lru_cache(maxsize=4)
def case_text(case: Case) -> str:
    """A case as JSON text; that of the last few is kept, since a case is noted and then sent."""
    return json.dumps(case_to_json(case), separators=(",", ":"))


def case_from_json(data: Any) -> Case:
    """Read a case back.

    Raises:
        InvalidDocument: The document is not a valid case; the error names the place.
    """
    _expect_schema(data, CASE_SCHEMA)
    backings = {
        name: _build(Backing, f"backings.{name}", fields, ("dtype", "numel"))
        for name, fields in _mapping(data.get("backings"), "backings").items()
    }
    args = {name: _value_from_json(value, f"args.{name}") for name, value in _mapping(data.get("args"), "args").items()}
    return Case.of(args, backings)


def _expect_schema(data: Any, schema: str) -> None:
    if not isinstance(data, dict):
        raise InvalidDocument("document", f"is a {type(data).__name__}; expected an object with schema {schema!r}")
    found = data.get("schema")
    if found != schema:
        raise InvalidDocument("schema", f"is {found!r}; this kcheck reads {schema!r}")


def _value_to_json(value: Value) -> Any:
    if isinstance(value, View):
        fields: dict[str, Any] = {
            "backing": value.backing,
            "dtype": value.dtype,
            "role": value.role.value,
            "layout": layout_to_json(value.layout),
            "fill": value.fill.to_json(),
        }
        fields |= {} if value.bound is None else {"bound": value.bound}
        return {"view": fields | ({"host": True} if value.host else {})}
    if isinstance(value, DTypeValue):
        return {"dtype": value.name}
    if isinstance(value, EnumValue):
        return {"enum": {"class": value.kind, "name": value.name}}
    if isinstance(value, GeneratorValue):
        return {"generator": value.seed}
    if isinstance(value, ObjectValue):
        return {"object": {"class": value.kind, "fields": {n: _value_to_json(item) for n, item in value.fields}}}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_value_to_json(item) for item in value]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _value_from_json(data: Any, where: str) -> Value:
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    if not isinstance(data, dict) or len(data) != 1:
        raise InvalidDocument(where, f"expected a scalar or an object with one key: {_TAGS}")
    ((tag, content),) = data.items()
    if tag == "view":
        return _view_from_json(content, where)
    if tag == "dtype":
        return DTypeValue(dtype_named(content, where).name)
    if tag == "float":
        return float(number_from_json(content, where))
    if tag in ("list", "tuple") and isinstance(content, list):
        items = [_value_from_json(item, f"{where}[{i}]") for i, item in enumerate(content)]
        return items if tag == "list" else tuple(items)
    if tag == "enum":
        fields = _texts(content, where, "class", "name")
        return EnumValue(fields["class"], fields["name"])
    if tag == "generator" and type(content) is int:
        return GeneratorValue(content)
    if tag == "object":
        fields = _mapping(content, where, {"class", "fields"})
        kind = _texts({"class": fields.get("class")}, where, "class")["class"]
        held = _mapping(fields.get("fields"), f"{where}.fields").items()
        return ObjectValue(kind, tuple((name, _value_from_json(item, f"{where}.{name}")) for name, item in held))
    raise InvalidDocument(where, f"has the key {tag!r}; expected {_TAGS}")


def _texts(data: Any, where: str, *names: str) -> Mapping[str, str]:
    fields = _mapping(data, where, set(names))
    for name in names:
        if type(fields.get(name)) is not str:
            raise InvalidDocument(f"{where}.{name}", f"is {fields.get(name)!r}; expected text")
    return fields


def _view_from_json(data: Any, where: str) -> View:
    fields = _mapping(data, where, {"backing", "dtype", "role", "layout", "fill", "bound", "host"})
    for key in ("backing", "dtype", "role", "layout", "fill"):
        if key not in fields:
            raise InvalidDocument(where, f"has no {key!r}")
    if type(fields["backing"]) is not str:
        raise InvalidDocument(f"{where}.backing", f"is {fields['backing']!r}; expected the name of a backing")
    roles = [role.value for role in Role]
    if fields["role"] not in roles:
        raise InvalidDocument(f"{where}.role", f"is {fields['role']!r}; expected one of {', '.join(roles)}")
    return View(
        backing=fields["backing"],
        dtype=dtype_named(fields["dtype"], f"{where}.dtype").name,
        role=Role(fields["role"]),
        layout=layout_from_json(fields["layout"], f"{where}.layout"),
        fill=_fill_from_json(fields["fill"], f"{where}.fill"),
        bound=fields.get("bound"),
        host=fields.get("host") is True,
    )


def layout_to_json(layout: Layout) -> dict[str, Any]:
    """A layout as plain data; what has its default is left out."""
    data: dict[str, Any] = {"dims": [_dim_to_json(dim) for dim in layout.dims]}
    if layout.order != tuple(range(len(layout.order))):
        data["order"] = list(layout.order)
    if layout.planes:
        data["planes"] = [{"count": plane.count, "index": plane.index} for plane in layout.planes]
    if layout.offset:
        data["offset"] = layout.offset
    return data


def _dim_to_json(dim: Dim) -> dict[str, Any]:
    plain = Dim(dim.size)
    names = ("before", "step", "after", "expanded", "free_stride")
    return {"size": dim.size} | {
        name: getattr(dim, name) for name in names if getattr(dim, name) != getattr(plain, name)
    }


def layout_from_json(data: Any, where: str = "layout") -> Layout:
    """Read a layout back.

    Raises:
        InvalidDocument: It is not a valid layout.
    """
    fields = _mapping(data, where, {"dims", "order", "planes", "offset"})
    dims = tuple(
        _build(Dim, f"{where}.dims[{i}]", dim, ("size",))
        for i, dim in enumerate(_list(fields.get("dims"), f"{where}.dims"))
    )
    planes = tuple(
        _build(Plane, f"{where}.planes[{i}]", plane, ("count", "index"))
        for i, plane in enumerate(_list(fields.get("planes", []), f"{where}.planes"))
    )
    order = tuple(_list(fields.get("order", []), f"{where}.order"))
    if any(type(entry) is not int for entry in order):
        raise InvalidDocument(f"{where}.order", "expected integers")
    return _build(Layout, where, {"dims": dims, "order": order, "planes": planes, "offset": fields.get("offset", 0)})


def _fill_from_json(data: Any, where: str) -> Fill:
    fields = dict(_mapping(data, where, {"kind", "version", "seed", "low", "high", "exponent", "values"}))
    if fields.pop("version", FILL_VERSION) != FILL_VERSION:
        raise InvalidDocument(f"{where}.version", f"is not {FILL_VERSION}: another kcheck made these values otherwise")
    if "values" in fields:
        values = _list(fields["values"], f"{where}.values")
        fields["values"] = tuple(number_from_json(v, f"{where}.values[{i}]") for i, v in enumerate(values))
    return _build(Fill, where, fields)


def _build(make: type[T], where: str, fields: Any, needed: tuple[str, ...] = ()) -> T:
    fields = _mapping(fields, where, make.__dataclass_fields__.keys())  # type: ignore[attr-defined]
    for name in needed:
        if name not in fields:
            raise InvalidDocument(where, f"has no {name!r}")
    try:
        return make(**fields)
    except InvalidDocument as error:
        raise InvalidDocument(f"{where}.{error.where}", error.problem) from None
    except TypeError as error:
        raise InvalidDocument(where, str(error)) from None


def _mapping(data: Any, where: str, known: Set[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise InvalidDocument(where, f"is {type(data).__name__}; expected an object")
    if known is not None and not data.keys() <= known:
        unknown = min(data.keys() - known)
        raise InvalidDocument(where, f"has the unknown key {unknown!r}; known are {', '.join(sorted(known))}")
    return data


def _list(data: Any, where: str) -> list[Any]:
    if not isinstance(data, list):
        raise InvalidDocument(where, f"is {type(data).__name__}; expected a list")
    return data
