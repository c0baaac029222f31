"""A layout is what torch's own slicing, selecting, permuting and expanding give."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kcheck import strategies as ks
from kcheck.document import layout_from_json, layout_to_json
from kcheck.errors import InvalidDocument
from kcheck.layout import FAR, Dim, Layout, LayoutKind, Plane

SHAPES = st.lists(st.sampled_from((0, 1, 2, 3, 4, 5, 8, 12)), max_size=4).map(tuple)
ITEMSIZES = st.sampled_from((1, 2, 4, 8))


@st.composite
def any_dim(draw: st.DrawFn) -> Dim:
    size = draw(st.sampled_from((0, 1, 2, 3, 5, 7)))
    expanded = draw(st.booleans()) and draw(st.booleans())
    free = draw(st.none() | st.integers(0, 40)) if size == 1 else None
    few = st.integers(0, 3)
    return Dim(size, draw(few), 1 if expanded else draw(st.integers(1, 3)), draw(few), expanded, free)


@st.composite
def any_layout(draw: st.DrawFn) -> Layout:
    """Everything that the model can say, not only what the strategies draw."""
    dims = tuple(draw(st.lists(any_dim(), max_size=4)))
    planes = tuple(Plane(n, draw(st.integers(0, n - 1))) for n in draw(st.lists(st.integers(1, 3), max_size=2)))
    order = tuple(draw(st.permutations(range(len(dims) + len(planes)))))
    return Layout(dims, order, planes, draw(st.sampled_from((0, 0, 1, 4, 7))))


@st.composite
def drawn_layout(draw: st.DrawFn) -> Layout:
    return draw(ks.layouts(draw(SHAPES), dtype=draw(st.sampled_from(("int8", "float16", "float32", "int64")))))


LAYOUTS = any_layout() | drawn_layout()


def by_torch(layout: Layout) -> torch.Tensor:
    """The layout's own code, run by torch over memory that holds its element numbers."""

    def empty(shape: int | tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.arange(math.prod(shape) if isinstance(shape, tuple) else shape, dtype=dtype).reshape(shape)

    names: dict[str, Any] = {"torch": SimpleNamespace(empty=empty, int64=torch.int64)}
    view = eval(layout.code("int64"), names)
    assert isinstance(view, torch.Tensor)
    return view


def indices(layout: Layout) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, layout.shape)))


@given(LAYOUTS)
def test_equals_what_torch_makes_of_its_code(layout: Layout) -> None:
    view = by_torch(layout)
    assert tuple(view.shape) == layout.shape
    assert view.numel() == layout.numel
    assert view.is_contiguous() == layout.is_contiguous
    if layout.numel == 0:
        return
    assert view.stride() == layout.strides
    assert view.storage_offset() == layout.first
    elements = torch.arange(layout.backing_numel)
    assert torch.equal(view, elements.as_strided(layout.shape, layout.strides, layout.first))
    assert [layout.offset_of(index) for index in indices(layout)] == view.flatten().tolist()


@given(LAYOUTS)
def test_strides_around_empty_dimensions_are_torchs(layout: Layout) -> None:
    if not any(dim.expanded for dim in layout.dims):
        assert by_torch(layout).stride() == layout.strides


@given(LAYOUTS)
@example(Layout((Dim(2), Dim(3, expanded=True))))
def test_stays_inside_its_backing_and_finds_its_indices(layout: Layout) -> None:
    cells: dict[int, tuple[int, ...]] = {}
    for index in indices(layout):
        offset = layout.offset_of(index)
        assert 0 <= offset < layout.backing_numel
        canonical = tuple(0 if dim.expanded else i for i, dim in zip(index, layout.dims, strict=True))
        assert layout.index_at(offset) == canonical
        assert cells.setdefault(offset, canonical) == canonical
    for offset in range(-1, layout.backing_numel + 1):
        assert (layout.index_at(offset) is not None) == (offset in cells)
    if cells:
        assert layout.first == min(cells)
        assert layout.reach == max(cells) - min(cells)


@given(LAYOUTS)
def test_round_trips_json(layout: Layout) -> None:
    text = json.dumps(layout_to_json(layout))
    assert layout_from_json(json.loads(text)) == layout
    assert hash(layout_from_json(json.loads(text))) == hash(layout)


def defined_kinds(layout: Layout, itemsize: int) -> set[LayoutKind]:
    """The kinds once more, from element offsets and from the code that a reader sees."""
    kind = LayoutKind
    offsets = [layout.offset_of(index) for index in indices(layout)]
    if not offsets:
        return {kind.EMPTY}
    view = by_torch(layout)
    wide = [stride for size, stride in zip(view.shape, view.stride(), strict=True) if size > 1 and stride]
    dense = torch.empty(layout.backing_shape).stride()
    pitches = [dense[layout.order.index(i)] for i in range(layout.rank)]
    cuts = [layout.dims[i] for i in layout.order if i < layout.rank]
    inner = cuts[1:] if layout.order and layout.order[0] < layout.rank else cuts
    row = layout.dims[layout.order[-1]] if layout.order and layout.order[-1] < layout.rank else None
    pitch = layout.backing_shape[-1] if layout.backing_shape else 0
    padded = (
        row is not None
        and len(layout.order) > 1
        and (row.before, row.step) == (0, 1)
        and row.used < pitch < 2 * row.used
        and pitch % 8 == 0
    )
    behind = any(
        len(range(d.before, d.extent, d.step if d.size > 1 else 1)) > (1 if d.expanded else d.size) for d in cuts
    )
    found = {
        kind.EXPANDED: len(set(offsets)) < len(offsets),
        kind.MISALIGNED: offsets[0] * itemsize % 16 > 0,
        kind.FAR: max(offsets) - min(offsets) >= 2**31,
        kind.TRANSPOSED: wide != sorted(wide, reverse=True),
        kind.INTERLEAVED: math.prod(layout.backing_shape) > math.prod(dim.extent for dim in layout.dims),
        kind.STEPPED: any(dim.step > 1 and dim.size > 1 for dim in layout.dims),
        kind.DEGENERATE: any(
            n == 1 and stride != pitch for n, stride, pitch in zip(layout.shape, view.stride(), pitches, strict=True)
        ),
        kind.OFFSET: layout.offset > 0 or (len(inner) < len(cuts) and cuts[0].before > 0),
        kind.PADDED: padded,
        kind.NARROWED: not padded and (behind or any(dim.before for dim in inner)),
    }
    return {name for name, holds in found.items() if holds} or {kind.CONTIGUOUS}


@given(LAYOUTS, ITEMSIZES)
@example(Layout((Dim(1, step=2, after=1), Dim(3))), 4)
@settings(max_examples=300)
def test_kinds_follow_their_definitions(layout: Layout, itemsize: int) -> None:
    assert layout.kinds(itemsize) == defined_kinds(layout, itemsize)


@given(LAYOUTS)
def test_contiguous_is_the_whole_backing_in_order(layout: Layout) -> None:
    if layout.numel == 0:
        return
    view = by_torch(layout)
    dense = view.flatten().tolist() == list(range(layout.backing_numel))
    natural = view.stride() == torch.empty(layout.shape).stride()
    assert (layout.kinds(4) == {LayoutKind.CONTIGUOUS}) == (dense and natural)


def test_far_needs_no_memory() -> None:
    layout = Layout((Dim(2), Dim(3, after=FAR)))
    assert LayoutKind.FAR in layout.kinds(4)
    assert layout.reach == layout.offset_of((1, 2)) == FAR + 3 + 2
    assert layout.index_at(FAR + 3) == (1, 0)
    assert layout.index_at(FAR) is None


@pytest.mark.parametrize(
    ("layout", "code"),
    [
        (Layout.contiguous((2, 3)), "torch.empty((2, 3), dtype=torch.int32)"),
        (Layout.contiguous(()), "torch.empty((), dtype=torch.int32)"),
        (Layout((Dim(4), Dim(3, after=13))), "torch.empty((4, 16), dtype=torch.int32)[:, :3]"),
        (Layout((Dim(3, step=2, after=1),)), "torch.empty((6,), dtype=torch.int32)[::2]"),
        (Layout((Dim(3), Dim(2)), order=(1, 0)), "torch.empty((2, 3), dtype=torch.int32).T"),
        (Layout((Dim(2), Dim(3)), offset=4), "torch.empty(10, dtype=torch.int32)[4:].view((2, 3))"),
        (Layout((Dim(3), Dim(4)), (0, 2, 1), (Plane(2, 1),)), "torch.empty((3, 2, 4), dtype=torch.int32)[:, 1]"),
        (Layout((Dim(5, expanded=True), Dim(4))), "torch.empty((1, 4), dtype=torch.int32).expand(5, 4)"),
        (Layout((Dim(0, step=2, after=1),)), "torch.empty((1,), dtype=torch.int32)[:0:2]"),
        (
            Layout((Dim(1, free_stride=4608), Dim(4))),
            "torch.empty((1, 4), dtype=torch.int32).as_strided((1, 4), (4608, 1))",
        ),
        (
            Layout((Dim(2), Dim(3), Dim(4)), order=(2, 0, 1)),
            "torch.empty((4, 2, 3), dtype=torch.int32).permute(1, 2, 0)",
        ),
    ],
)
def test_code(layout: Layout, code: str) -> None:
    assert layout.code("int32") == code


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: Dim(-1), "size"),
        (lambda: Dim(True), "size"),
        (lambda: Dim(2, before=-1), "before"),
        (lambda: Dim(2, step=0), "step"),
        (lambda: Dim(2, after=-2), "after"),
        (lambda: Dim(2, expanded=1), "expanded"),  # type: ignore[arg-type]
        (lambda: Dim(2, step=2, expanded=True), "step"),
        (lambda: Dim(2, free_stride=3), "free_stride"),
        (lambda: Dim(1, free_stride=-3), "free_stride"),
        (lambda: Plane(0, 0), "count"),
        (lambda: Plane(2, 2), "index"),
        (lambda: Layout((Dim(2),), order=(1,)), "order"),
        (lambda: Layout((Dim(2),), offset=-1), "offset"),
    ],
)
def test_impossible_layouts_are_refused(make: Any, place: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        make()
    assert caught.value.where == place
