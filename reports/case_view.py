"""A case as a drawing: every argument with its layout, its values and its place in memory."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from kcheck.case import Case, Role
from kcheck.reports.fact import Indented, fact
from kcheck.reports.picture_view import BackingPicture
from kcheck.reports.view_text import code_text, scalars, values_text, view_facts
from kcheck.reports.wording import counted, plain, size

_INDEX_VALUES = 64  # shown of an index tensor; they say where the kernel goes
_OTHER_VALUES = 8


def draw_case(case: Case) -> RenderableType:
    """A renderable: the arguments of a case, their layouts and backings.

    Args:
        case: The case.
    """
    return Group(*_parts(case))


def _parts(case: Case) -> Iterator[RenderableType]:
    for name, view in case.views.items():
        backing = case.backings[view.backing]
        others = {n: v.layout for n, v in case.views.items() if n != name and v.backing == view.backing}
        yield code_text(name, view)
        yield fact("view", view_facts(view))
        if view.host:
            yield fact("memory", "the host's")
        if view.bound is not None:
            yield fact("addresses", f"values lie in [0, {view.bound:,})")
        yield fact("backing", f"{counted(backing.numel, 'element')} of {backing.dtype}, {size(backing.nbytes)}")
        if others:
            yield fact("", f"shared with {', '.join(others)}")
        if view.layout.numel:
            yield fact("values", values_text(view, _INDEX_VALUES if view.role is Role.INDEX else _OTHER_VALUES))
        yield Text()
        yield Indented(BackingPicture(name, view.layout, others=others, rows=8), by=4)
        yield Text()
    for name, value in scalars(case).items():
        yield Text(plain(f"{name} = {value}"))
