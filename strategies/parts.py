"""Several tensors over one memory: the planes of a pool, the parts of a fused projection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from hypothesis import strategies as st

from kcheck import plan
from kcheck.case import Memory, Role, Tensor
from kcheck.errors import SpecError
from kcheck.layout import Layout, LayoutKind, Plane
from kcheck.plan import Drawing
from kcheck.strategies.direct import direct
from kcheck.strategies.kinds import ANY, Kinds, Site, possible
from kcheck.strategies.layouts import planned_layout
from kcheck.strategies.tensors import DTypes, Values, draw_dtype, draw_seed

_K = LayoutKind
# Layouts of the whole. A part of a contiguous whole is interleaved or narrowed; no element may belong to two parts.
_OF_PLANES = frozenset(
    {_K.CONTIGUOUS, _K.NARROWED, _K.OFFSET, _K.STEPPED, _K.TRANSPOSED, _K.PADDED, _K.DEGENERATE, _K.EMPTY}
)
_OF_SPLITS = frozenset({_K.CONTIGUOUS, _K.OFFSET, _K.STEPPED, _K.TRANSPOSED, _K.INTERLEAVED, _K.DEGENERATE, _K.EMPTY})


def planes(
    shape: Sequence[int],
    dtype: DTypes = "float32",
    *,
    count: int = 2,
    axis: int = 1,
    kinds: Kinds | Iterable[LayoutKind | str] = ANY,
    role: Role = Role.INPUT,
    low: int | None = None,
    high: int | None = None,
    exponent: int = 0,
) -> st.SearchStrategy[tuple[Tensor, ...]]:
    """Tensors of one shape that are the planes of one memory, as ``pool[:, 0]`` and ``pool[:, 1]`` or ``unbind``.

    One choice for the layout of the whole, and the seed of the case. Shrinks towards a contiguous pool.

    Args:
        shape: Sizes of each plane.
        dtype: As for `tensors`.
        count: Planes.
        axis: Dimension of the pool that counts the planes; the number of dimensions of `shape` makes it the last.
        kinds: Further layouts that the whole pool may have.
        role: Of every plane.
        low: As for `tensors`.
        high: As for `tensors`.
        exponent: As for `tensors`.

    Raises:
        SpecError: There is no such axis, or no planes.
    """
    shape = tuple(shape)
    if not 0 <= axis <= len(shape) or count < 1:
        raise SpecError(
            f"planes: axis is {axis} and count {count} for planes of shape {shape}; expected 0 <= axis <= "
            f"{len(shape)} and count >= 1"
        )
    return _planes(shape, dtype, count, axis, Kinds.of(kinds), role, Values(low, high, exponent))


def splits(
    shape: Sequence[int],
    sizes: Sequence[int],
    dtype: DTypes = "float32",
    *,
    axis: int = -1,
    kinds: Kinds | Iterable[LayoutKind | str] = ANY,
    role: Role = Role.INPUT,
    low: int | None = None,
    high: int | None = None,
    exponent: int = 0,
) -> st.SearchStrategy[tuple[Tensor, ...]]:
    """Tensors that are neighbouring ranges of one memory, as ``q, k, v = qkv.split([8, 2, 2], dim=-1)``.

    One choice for the layout of the whole, and the seed of the case. Shrinks towards a contiguous whole.

    Args:
        shape: Sizes of each part; the entry at `axis` is ignored.
        sizes: Size of each part along `axis`.
        dtype: As for `tensors`.
        axis: Dimension that is split.
        kinds: Further layouts that the whole may have.
        role: Of every part.
        low: As for `tensors`.
        high: As for `tensors`.
        exponent: As for `tensors`.

    Raises:
        SpecError: There is no such axis, or no parts.
    """
    if not -len(shape) <= axis < len(shape) or not sizes:
        raise SpecError(
            f"splits: axis is {axis} and sizes {list(sizes)} for a tensor of {len(shape)} dimensions; "
            "expected one of its dimensions and at least one size"
        )
    axis %= len(shape)
    whole = (*shape[:axis], sum(sizes), *shape[axis + 1 :])
    return _splits(whole, tuple(sizes), dtype, axis, Kinds.of(kinds), role, Values(low, high, exponent))


@direct
def _planes(
    draw: st.DrawFn,
    shape: tuple[int, ...],
    dtype: DTypes,
    count: int,
    axis: int,
    kinds: Kinds,
    role: Role,
    values: Values,
) -> tuple[Tensor, ...]:
    record = plan.current()
    name = draw_dtype(draw, record, dtype)
    rank = len(shape)
    further = _OF_PLANES - {_K.PADDED} if axis == rank else _OF_PLANES  # the plane is the innermost: there are no rows
    site = Site.of(shape, name, _further(kinds, further))
    order = (*range(axis), rank, *range(axis, rank))
    start = replace(Layout.contiguous(shape), order=order, planes=(Plane(count, 0),))
    pool = planned_layout(draw, record, site, parts=count, start=start, own=_K.INTERLEAVED)
    layouts = [replace(pool, planes=(Plane(count, i),)) for i in range(count)]
    return _sharing(draw, record, name, layouts, role, values, _offered(site, _K.INTERLEAVED))


@direct
def _splits(
    draw: st.DrawFn,
    shape: tuple[int, ...],
    sizes: tuple[int, ...],
    dtype: DTypes,
    axis: int,
    kinds: Kinds,
    role: Role,
    values: Values,
) -> tuple[Tensor, ...]:
    record = plan.current()
    name = draw_dtype(draw, record, dtype)
    site = Site.of(shape, name, _further(kinds, _OF_SPLITS))
    whole = planned_layout(draw, record, site, parts=len(sizes), own=_K.NARROWED)
    layouts = [
        _part(whole, axis, start=end - size, size=size) for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]
    return _sharing(draw, record, name, layouts, role, values, _offered(site, _K.NARROWED))


def _part(whole: Layout, axis: int, *, start: int, size: int) -> Layout:
    """Indices [start, start + size) of one dimension."""
    dim = whole.dims[axis]
    before = dim.before + start * dim.step
    part = replace(dim, size=size, before=before, after=0, free_stride=dim.free_stride if size == 1 else None)
    part = replace(part, after=dim.extent - part.extent)
    return replace(whole, dims=(*whole.dims[:axis], part, *whole.dims[axis + 1 :]))


def _further(kinds: Kinds, allowed: frozenset[LayoutKind]) -> Kinds:
    return Kinds(kinds.allowed & allowed, kinds.unit_last)


def _offered(site: Site, own: LayoutKind) -> tuple[LayoutKind, ...]:
    return possible(site) if 0 in site.shape else (own, *(k for k in possible(site) if k is not _K.CONTIGUOUS))


def _sharing(
    draw: st.DrawFn,
    record: Drawing,
    dtype: str,
    layouts: Sequence[Layout],
    role: Role,
    values: Values,
    offered: tuple[LayoutKind, ...],
) -> tuple[Tensor, ...]:
    memory = Memory()
    made = []
    for layout in layouts:
        tensor = Tensor(dtype, layout, values.fill(dtype, draw_seed(draw, record)), role, None, memory)
        record.enter(tensor, offered)
        made.append(tensor)
    return tuple(made)
