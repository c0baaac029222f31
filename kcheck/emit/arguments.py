"""A case as code: memory full of decoys, views of it, values."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from kcheck.case import Case, DTypeValue, Role, Value, View
from kcheck.dtypes import DType, dtype_named
from kcheck.errors import UsageError
from kcheck.fill import Fill, Number

GIVEN = 16  # seeded values up to this number are written out
MOST_BYTES = 1 << 26  # of a backing: a test makes all of it
UNUSED = -192.0  # what a float output holds that may stay unwritten; every float type has it


class Names:
    """Names of variables, none used twice.

    Args:
        taken: Names of the module.
    """

    def __init__(self, taken: set[str]) -> None:
        self._taken = set(taken)
        self._known: dict[tuple[str, str], str] = {}

    def of(self, path: str) -> str:
        """The variable of an argument (``caches[1]``)."""
        return self._name("argument", path)

    def local(self, name: str) -> str:
        """Another variable."""
        return self._name("local", name)

    def _name(self, kind: str, wanted: str) -> str:
        if (kind, wanted) not in self._known:
            name = re.sub(r"\W+", "_", wanted).strip("_")
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self._known[kind, wanted] = name
        return self._known[kind, wanted]


def build(case: Case, names: Names, loose: Mapping[str, bool]) -> Iterator[str]:
    """Lines that make every tensor of a case.

    Args:
        case: The case, roles set.
        names: Of variables.
        loose: Outputs of which elements may stay unwritten.

    Raises:
        UsageError: A backing is too large.
    """
    for backing, memory in case.backings.items():
        views = {path: view for path, view in case.views.items() if view.backing == backing}
        if memory.nbytes > MOST_BYTES:
            raise UsageError(
                f"{next(iter(views))} lies in {memory.nbytes / 2**20:,.0f} MiB; a stand-alone test makes all of its "
                f"memory and takes at most {MOST_BYTES >> 20} MiB"
            )
        yield ""
        for path, view in views.items():
            yield f"# {path}: {view.role}, shape {view.layout.shape}, strides {view.layout.strides}, {_kinds(view)}"
        block = names.local(f"{backing}_memory")
        first = next(iter(views.values()))
        device = ', device="cpu"' if first.host else ""
        yield f"{block} = decoys({memory.numel}, torch.{memory.dtype}{_range(first)}{device})"
        for path, view in views.items():
            yield from _view(names.of(path), block, view, bool(loose.get(path)))


def _kinds(view: View) -> str:
    return " and ".join(sorted(kind.value for kind in view.kinds))


def _range(view: View) -> str:
    """The integers that look valid in a view's memory, as keywords."""
    if dtype_named(view.dtype).is_float:
        return ""
    if view.bound is not None:
        low, high = 0, max(view.bound - 1, 0)
    elif view.fill.kind == "hashed":
        low, high = view.fill.low, view.fill.high
    else:
        numbers = [int(value) for value in view.fill.values] or [0]
        low, high = min(numbers), max(numbers)
    return f", low={low}, high={high}"


def _view(name: str, block: str, view: View, loose: bool) -> Iterator[str]:
    """Lines for one view: its place, then its values. Expanded dimensions come last: they cannot be written."""
    layout = view.layout
    expanded = any(dim.expanded and dim.size != 1 for dim in layout.dims)
    compact = layout
    if expanded:
        dims = tuple(
            replace(dim, size=min(dim.size, 1), expanded=False) if dim.expanded else replace(dim, free_stride=None)
            for dim in layout.dims
        )
        compact = replace(layout, dims=dims)
    start = f"GUARD + {layout.offset} : " if layout.offset else "GUARD:"
    shape = layout.backing_shape
    shaped = "" if len(shape) == 1 else f".view({', '.join(map(str, shape)) or '()'})"
    yield f"{name} = {block}[{start}-GUARD]{shaped}{compact.suffix()}"
    values = _values(name, view, compact.shape, loose)
    if values:
        yield values
    if expanded:
        yield f"{name} = {name}.expand({', '.join(map(str, layout.shape))})"
        if any(dim.free_stride is not None for dim in layout.dims):
            yield f"{name} = {name}.as_strided({layout.shape}, {layout.strides})"


def _values(name: str, view: View, shape: tuple[int, ...], loose: bool) -> str:
    dtype, fill = dtype_named(view.dtype), view.fill
    count = math.prod(shape)
    if not count:
        return ""
    if view.role in (Role.OUTPUT, Role.SCRATCH):
        return f"{name}.fill_({unwritten(dtype, loose)})"
    if fill.kind == "constant":
        return f"{name}.fill_({number(fill.values[0])})"
    if fill.kind == "values" or count <= GIVEN:
        numbers = [fill.value(dtype, i) for i in range(count)]
        given = _nested([number(value) for value in numbers], shape)
        wide = ", dtype=torch.float64" if not all(map(_fits_float32, numbers)) else ""
        skip = "  # fmt: skip" if count > GIVEN else ""
        return f"{name}.copy_(torch.tensor({given}{wide})){skip}"
    dense = "" if len(shape) == 1 else f".view({', '.join(map(str, shape)) or '()'})"
    return f"{name}.copy_({_seeded(fill, dtype, count)}{dense})"


def _seeded(fill: Fill, dtype: DType, count: int) -> str:
    if dtype.is_float:
        exponent = f", exponent={fill.exponent}" if fill.exponent else ""
        return f"floats(hashed({fill.seed}, {count}), digits={dtype.digits}{exponent})"
    bits = f"hashed({fill.seed}, {count}) % {fill.high - fill.low + 1}"
    if not fill.low:
        return f"({bits})"
    return f"({bits} {'+' if fill.low > 0 else '-'} {abs(fill.low)})"


def unwritten(dtype: DType, loose: bool = False) -> str:
    """What an output holds before the call: a value that no result is likely to have.

    Args:
        dtype: Its data type.
        loose: Elements may stay unwritten, and are told by this value.
    """
    if dtype.is_float:
        return str(UNUSED) if loose else 'float("nan")'
    if dtype.name == "bool":
        return "True"
    return str(int.from_bytes(b"\xa5" * dtype.itemsize, "little", signed=dtype.low < 0))


def _fits_float32(value: Number) -> bool:
    if isinstance(value, int):  # of an integer tensor, or as exact in any float type as torch makes it
        return True
    try:
        return math.isnan(value) or struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        return False


def number(value: Number) -> str:
    """A number as code."""
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _nested(values: Sequence[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return values[0]
    step = len(values) // shape[0]
    return f"[{', '.join(_nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0]))}]"


def code(path: str, value: Value, tensor: Callable[[str], str]) -> str:
    """An argument as code.

    Args:
        path: Its path.
        value: Its value.
        tensor: Expression of the view at a path.

    Raises:
        UsageError: It is of a type that cannot be written down.
    """
    if isinstance(value, View):
        return tensor(path)
    if isinstance(value, DTypeValue):
        return f"torch.{value.name}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(code(f"{path}[{i}]", item, tensor) for i, item in enumerate(value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    raise UsageError(f"{path} is a {type(value).__name__}; a stand-alone test cannot make one")


def guard(case: Case, argument: str, cells: Sequence[int]) -> int:
    """Elements of decoys on either side of every backing: enough for the accesses that a finding names.

    Args:
        case: The case.
        argument: The finding's.
        cells: Backing elements of it that were touched.

    Raises:
        UsageError: They are too far away.
    """
    view = case.views.get(argument)
    least = 512  # elements: bytes at least, and it keeps every backing as aligned as its block
    if view is None or not cells:
        return least
    size = case.backings[view.backing].numel
    away = max(max(-cell, cell - size + 1, 0) for cell in cells)
    wanted = least
    while wanted < 2 * away:
        wanted *= 2
    if wanted > 1 << 22:
        raise UsageError(
            f"the access is {away:,} elements away from {argument}; a stand-alone test could only crash on it"
        )
    return wanted
