"""One function for each layout kind: it turns a layout into one that has the kind.

Each takes the layout so far, what it is made for, and two small integers that select among its variants (any integer
will do: it is taken modulo the number of variants; 0 is the plainest). `make` applies them in the order in which they
build on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from kcheck.layout import FAR, VECTOR_BYTES, Dim, Layout, LayoutKind, Plane
from kcheck.strategies.kinds import Site, paddings

T = TypeVar("T")
Maker = Callable[[Layout, Site, int, int], Layout]

# Elements cut off behind a narrowed range, and whole vectors in front of it.
CUTS = ((1, 0), (2, 0), (5, 0), (13, 0), (1, 1), (0, 1))
PLANES = (Plane(2, 0), Plane(2, 1), Plane(3, 1))


def make(site: Site, kinds: Iterable[LayoutKind], a: int = 0, b: int = 0, start: Layout | None = None) -> Layout:
    """A layout that has some kinds.

    Args:
        site: What it is made for; the shape can have the kinds.
        kinds: The kinds.
        a: Selects the variant of each.
        b: Selects the variant of each.
        start: What to begin with, instead of the contiguous layout.
    """
    layout = start or Layout.contiguous(site.shape)
    for kind in sorted(kinds, key=_ORDER.__getitem__):
        layout = MAKERS[kind](layout, site, a, b)
    if layout.first % site.vector and not site.allows(LayoutKind.MISALIGNED):
        # A later cut has moved the chosen plane: the first plane is where the view was, at whole vectors.
        return replace(layout, planes=tuple(replace(plane, index=0) for plane in layout.planes))
    return layout


def _pick(values: Sequence[T], selector: int) -> T:
    return values[selector % len(values)]


def _with_dim(layout: Layout, axis: int, dim: Dim) -> Layout:
    return replace(layout, dims=(*layout.dims[:axis], dim, *layout.dims[axis + 1 :]))


def _pitch(layout: Layout, entry: int) -> int:
    """Stride in the backing of an entry of the memory order."""
    return math.prod(max(extent, 1) for extent in layout.backing_shape[layout.order.index(entry) + 1 :])


def _contiguous(layout: Layout, site: Site, a: int, b: int) -> Layout:
    return layout


def _empty(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: elements of memory in the empty dimension."""
    return _with_dim(layout, site.shape.index(0), Dim(0, after=a))


@lru_cache(maxsize=1024)
def orders(rank: int, axes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Memory orders that turn some of the axes: each swap of two, the innermost first, the reversal, a rotation."""

    def placed(turned: Sequence[int]) -> tuple[int, ...]:
        order = list(range(rank))
        for position, axis in zip(axes, turned, strict=True):
            order[position] = axis
        return tuple(order)

    swaps = []
    for j in reversed(range(len(axes))):
        for i in reversed(range(j)):
            turned = list(axes)
            turned[i], turned[j] = turned[j], turned[i]
            swaps.append(placed(turned))
    return tuple(dict.fromkeys((*swaps, placed(axes[::-1]), placed(axes[1:] + axes[:1]))))


def _transposed(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: the order."""
    turned = iter(_pick(orders(layout.rank, site.wide), a))  # planes stay where they are
    return replace(layout, order=tuple(next(turned) if entry < layout.rank else entry for entry in layout.order))


def _interleaved(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: the place among the dimensions (after the first, as in ``pool[:, 0]``), the plane."""
    place = _pick(range(1, layout.rank + (0 if site.kinds.unit_last else 1)) or range(1), a)
    order = (*layout.order[:place], layout.rank, *layout.order[place:])
    return replace(layout, order=order, planes=(_pick(PLANES, b),))


def _expanded(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: the dimension."""
    axis = _pick([i for i in site.wide if i in site.expandable], a)
    return _with_dim(layout, axis, Dim(site.shape[axis], expanded=True))


def _stepped(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: the dimension, the step. The backing's size is a multiple of the step, as in ``torch.empty(6)[::2]``."""
    axis, step = _pick(site.wide, a), 2 + b % 2
    return _with_dim(layout, axis, Dim(site.shape[axis], step=step, after=step - 1))


def _narrowed(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: the dimension (the innermost in memory first), what is cut off behind it and in front."""
    axes = [i for i in reversed(layout.order) if i < layout.rank and not layout.dims[i].expanded]
    axis = _pick(axes, a)
    # Cutting the outermost dimension in front would only be an offset. Whole vectors in front keep the alignment.
    behind, in_front = _pick(CUTS[:4] if axis == layout.order[0] else CUTS, b)
    dim = layout.dims[axis]
    before, after = in_front * site.vector, dim.after + behind * dim.step
    made = _with_dim(layout, axis, replace(dim, before=before, after=after))
    if LayoutKind.PADDED in made.kinds(site.itemsize):
        made = _with_dim(layout, axis, replace(dim, before=before, after=after + 1))
    return made


def _padded(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: what the row pitch is rounded up to."""
    axis = layout.order[-1]
    return _with_dim(layout, axis, replace(layout.dims[axis], after=_pick(paddings(site.shape[axis]), a)))


def _far(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """The outermost dimension with more than one index gets a pitch that takes its last index to 2**31."""
    position, axis = next((p, i) for p, i in enumerate(layout.order) if i in site.wide)
    size = site.shape[axis]
    pitch = math.ceil(FAR / (size - 1))
    inner = next((i for i in layout.order[position + 1 :] if i < layout.rank), None)
    if inner is None:
        return _with_dim(layout, axis, Dim(size, step=pitch))
    dim = layout.dims[inner]
    extent = math.ceil(pitch / _pitch(layout, inner))
    return _with_dim(layout, inner, replace(dim, after=max(extent - dim.used, 0)))


def _degenerate(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: the dimension of size 1, its stride (one too many, 0, large)."""
    axis = _pick([i for i in site.free if site.shape[i] == 1], a)
    natural = layout.strides[axis]
    return _with_dim(layout, axis, replace(layout.dims[axis], free_stride=_pick((natural + 1, 0, 36 * natural), b)))


def _offset(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: how far, and by what (rows in front, as in ``t[1:]``, or a base offset). Whole vectors."""
    outermost, amount = (layout.order or (0,))[0], 1 + a % 3
    if b % 2 or outermost >= layout.rank or layout.dims[outermost].expanded:
        return replace(layout, offset=amount * site.vector)
    dim = layout.dims[outermost]
    rows = VECTOR_BYTES // math.gcd(VECTOR_BYTES, _pitch(layout, outermost) * site.itemsize)
    return _with_dim(layout, outermost, replace(dim, before=amount * rows))


def _misaligned(layout: Layout, site: Site, a: int, b: int) -> Layout:
    """Selects: how far, and by what (a base offset, or columns in front, as in ``t[:, 1:]``)."""
    amount, innermost = 1 + a % 3, (layout.order or (0,))[-1]
    if (layout.first + amount) % site.vector == 0:
        amount += 1
    columns = b % 2 and layout.rank >= 2 and site.allows(LayoutKind.NARROWED)
    if not columns or innermost >= layout.rank or layout.dims[innermost].expanded:
        return replace(layout, offset=layout.offset + amount)
    dim = layout.dims[innermost]
    return _with_dim(layout, innermost, replace(dim, before=dim.before + amount))


# In the order of application: first what adds and turns dimensions, then what cuts them, then what only moves the
# first element.
MAKERS: dict[LayoutKind, Maker] = {
    LayoutKind.CONTIGUOUS: _contiguous,
    LayoutKind.EMPTY: _empty,
    LayoutKind.TRANSPOSED: _transposed,
    LayoutKind.INTERLEAVED: _interleaved,
    LayoutKind.EXPANDED: _expanded,
    LayoutKind.STEPPED: _stepped,
    LayoutKind.NARROWED: _narrowed,
    LayoutKind.PADDED: _padded,
    LayoutKind.FAR: _far,
    LayoutKind.DEGENERATE: _degenerate,
    LayoutKind.OFFSET: _offset,
    LayoutKind.MISALIGNED: _misaligned,
}
_ORDER = {kind: i for i, kind in enumerate(MAKERS)}
