"""Arguments of a case as text: layouts as code, facts, values."""

from __future__ import annotations

from rich.text import Text

from kcheck.case import Case, DTypeValue, Value, View, distinct
from kcheck.dtypes import dtype_named
from kcheck.layout import LayoutKind
from kcheck.objects import EnumValue, GeneratorValue, ObjectValue
from kcheck.reports.wording import number, plain


def code_text(name: str, view: View) -> Text:
    """The layout as code with the cut set off: ``table = torch.empty((2, 16), dtype=torch.int32)[:, :3]``."""
    cut = view.layout.suffix()
    whole = view.code.removesuffix(cut)
    return Text.assemble(plain(name), " = ", (whole, "dim"), (cut, "bold cyan"))


def view_facts(view: View) -> str:
    """Role, data type, shape, strides in elements, kinds."""
    return f"{view.role}, {view.dtype}, shape {view.layout.shape}, strides {view.layout.strides}: {kinds_text(view)}"


def kinds_text(view: View) -> str:
    """Named kinds of the layout, in the order of the matrix."""
    return ", ".join(kind.value for kind in LayoutKind if kind in view.kinds)


def scalars(case: Case) -> dict[str, str]:
    """Arguments that are no tensors and no lists of them, as code."""
    return {name: plain(_code(name, value)) for name, value in case.args.items() if not _has_view(value)}


def values_text(view: View, most: int = 8) -> str:
    """The values of a view, row by row; the first ones where there are more than `most`."""
    dtype = dtype_named(view.dtype)
    total = distinct(view.layout)
    shown = [number(view.fill.value(dtype, position)) for position in range(min(total, most))]
    if total > most:
        return f"{', '.join(shown)}, and {total - most:,} more"
    return _nested(shown, tuple(min(dim.size, 1) if dim.expanded else dim.size for dim in view.layout.dims))


def _nested(values: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return values[0]
    step = len(values) // shape[0] if shape[0] else 0
    return f"[{', '.join(_nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0]))}]"


def _has_view(value: Value) -> bool:
    return isinstance(value, View) or (isinstance(value, (list, tuple)) and any(map(_has_view, value)))


def _code(path: str, value: Value) -> str:
    """A value as code; a view in an object goes by its path."""
    if isinstance(value, View):
        return path
    if isinstance(value, DTypeValue):
        return f"torch.{value.name}"
    if isinstance(value, EnumValue):
        return f"{_class(value.kind)}.{value.name}"
    if isinstance(value, GeneratorValue):
        return f"torch.Generator().manual_seed({value.seed})"
    if isinstance(value, ObjectValue):
        fields = (f"{name}={_code(f'{path}.{name}', item)}" for name, item in value.fields)
        return f"{_class(value.kind)}({', '.join(fields)})"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_code(f"{path}[{i}]", item) for i, item in enumerate(value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def _class(kind: str) -> str:
    return kind.partition(":")[2]
