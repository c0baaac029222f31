"""Arguments over one memory: which may share elements, and what that makes of their roles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import torch

from kcheck.case import Case, Role, View
from kcheck.errors import SpecError
from kcheck.layout import Layout
from kcheck.objects import argument_of
from kcheck.target import Target

MOST_CELLS = 1 << 24  # of a backing that is painted to find an overlap; larger ones are taken to have none


def prepared(target: Target, case: Case) -> Case:
    """A case with the target's roles. An output that is an input in this case starts with the input's values.

    Raises:
        InvalidDocument: An argument to be written has a layout whose elements overlap.
        SpecError: Two arguments share elements, and the target does not say that they may.
    """
    case = case.with_roles(target.roles)
    views = case.views
    if len({view.backing for view in views.values()}) == len(views):
        return case
    started: dict[str, View] = {}
    for (one, a), (other, b) in itertools.combinations(views.items(), 2):
        if a.backing == b.backing and not _may_share(a, b):
            aliases = ((n, m) for n, m in ((one, other), (other, one)) if _is_alias(target, case, n, m))
            output, source = next(aliases, ("", ""))
            if not output:
                raise _undeclared(target, one, other, views)
            started[output] = replace(views[output], role=Role.INOUT, fill=views[source].fill)
    return case.map_views(lambda name, view: started.get(name, view)) if started else case


def _may_share(a: View, b: View) -> bool:
    """No element is in both, or both are one tensor that is only read."""
    read = not (a.role.writable or b.role.writable)
    if a.layout == b.layout:
        return (read and a.fill == b.fill) or not a.layout.numel
    return not _overlap(a.layout, b.layout)


def _is_alias(target: Target, case: Case, output: str, source: str) -> bool:
    """Whether the target says that the output may be the input, and it is, element for element."""
    declared = target.aliases.get(argument_of(output)) == argument_of(source)
    views = case.views
    one_place = views[output].layout == views[source].layout
    given = (Role.INPUT, Role.INDEX, Role.CONSUMED)
    return declared and one_place and views[output].role is Role.OUTPUT and views[source].role in given


def _undeclared(target: Target, one: str, other: str, views: Mapping[str, View]) -> SpecError:
    output, source = (one, other) if views[one].role.writable else (other, one)
    return SpecError(
        f"{target.file}:{target.line}: {one} and {other} share elements in this case, which the target does not "
        f'declare; an output that may be an input is declared by aliases={{"{output}": "{source}"}}'
    )


@lru_cache(maxsize=1024)
def _overlap(a: Layout, b: Layout) -> bool:
    """Whether two layouts over one backing have an element in common."""
    if not (a.numel and b.numel) or _apart(a, b) or a.backing_numel > MOST_CELLS:
        return False
    cells = torch.zeros(a.backing_numel, dtype=torch.bool)
    cells.as_strided(a.shape, a.strides, a.first).fill_(True)
    return bool(cells.as_strided(b.shape, b.strides, b.first).any())


def _apart(a: Layout, b: Layout) -> bool:
    """Whether some stride shows that two layouts are disjoint: modulo it they keep to ranges that do not meet.

    True for the planes of a pool and for the parts of a split, without a look at each element.
    """
    for pitch in {*a.strides, *b.strides, max(a.backing_numel, 1)}:
        one, other = _residues(a, pitch), _residues(b, pitch)
        if one and other and (one[1] < other[0] or other[1] < one[0]):
            return True
    return False


def _residues(layout: Layout, pitch: int) -> tuple[int, int] | None:
    """First and last residue of the elements' places modulo a pitch; None if they wrap around."""
    if pitch <= 0:
        return None
    inner = [(s, n) for s, n in zip(layout.strides, layout.shape, strict=True) if s % pitch and n > 1]
    start = layout.first % pitch
    end = start + sum(stride % pitch * (size - 1) for stride, size in inner)
    return (start, end) if end < pitch else None
