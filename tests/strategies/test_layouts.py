"""Layout strategies: every kind can be drawn, has the kinds it was asked for, and shrinks to a plain one."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import Phase, example, find, given, settings
from hypothesis import strategies as st

from kcheck import strategies as ks
from kcheck.errors import SpecError
from kcheck.layout import Layout, LayoutKind
from kcheck.strategies.kinds import PARTNERS, Kinds, Site, can_have, partners, possible
from kcheck.strategies.makers import make

K = LayoutKind
SHAPES = st.lists(st.sampled_from((0, 1, 2, 3, 5, 8, 9, 16)), max_size=4).map(tuple)
DTYPES = st.sampled_from(("int8", "bfloat16", "int32", "float64"))
ITEMSIZE = {"int8": 1, "bfloat16": 2, "int32": 4, "float64": 8}
QUICK = settings(max_examples=600, database=None)


def simplest(strategy: st.SearchStrategy[Layout], kind: LayoutKind) -> Layout:
    return find(strategy, lambda layout: kind in layout.kinds(4), random=Random(0), settings=QUICK)


@pytest.mark.parametrize(
    ("kind", "shape", "code"),
    [
        (K.CONTIGUOUS, (3, 5), "torch.empty((3, 5), dtype=torch.int32)"),
        (K.NARROWED, (3, 5), "torch.empty((3, 6), dtype=torch.int32)[:, :5]"),
        (K.NARROWED, (3, 7), "torch.empty((3, 9), dtype=torch.int32)[:, :7]"),
        (K.OFFSET, (3, 8), "torch.empty((4, 8), dtype=torch.int32)[1:]"),
        (K.OFFSET, (3, 5), "torch.empty((7, 5), dtype=torch.int32)[4:]"),
        (K.OFFSET, (), "torch.empty(5, dtype=torch.int32)[4:].view(())"),
        (K.STEPPED, (3, 5), "torch.empty((6, 5), dtype=torch.int32)[::2]"),
        (K.TRANSPOSED, (3, 5), "torch.empty((5, 3), dtype=torch.int32).T"),
        (K.TRANSPOSED, (2, 3, 4), "torch.empty((2, 4, 3), dtype=torch.int32).permute(0, 2, 1)"),
        (K.PADDED, (3, 5), "torch.empty((3, 8), dtype=torch.int32)[:, :5]"),
        (K.INTERLEAVED, (3, 5), "torch.empty((3, 2, 5), dtype=torch.int32)[:, 0]"),
        (K.EXPANDED, (3, 5), "torch.empty((1, 5), dtype=torch.int32).expand(3, 5)"),
        (K.MISALIGNED, (3, 5), "torch.empty(16, dtype=torch.int32)[1:].view((3, 5))"),
        (K.DEGENERATE, (1, 5), "torch.empty((1, 5), dtype=torch.int32).as_strided((1, 5), (6, 1))"),
        (K.EMPTY, (0, 5), "torch.empty((0, 5), dtype=torch.int32)"),
    ],
)
def test_what_each_kind_shrinks_to(kind: LayoutKind, shape: tuple[int, ...], code: str) -> None:
    # The second plane of an interleaved pool may be misaligned too, and no plainer.
    kinds = ks.ANY if kind is not K.MISALIGNED else ks.ANY.without(K.INTERLEAVED)
    assert simplest(ks.layouts(shape, dtype="int32", kinds=kinds), kind).code("int32") == code


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (1, 6), (7,)])
def test_every_kind_that_a_shape_can_have_is_drawn(shape: tuple[int, ...]) -> None:
    site = Site.of(shape, "int32")
    for kind in LayoutKind:
        if kind not in (K.FAR, K.EMPTY):
            assert can_have(site, kind) == (kind in possible(site))
        if kind in possible(site):
            assert kind in simplest(ks.layouts(shape, dtype="int32"), kind).kinds(4)


def test_far_is_drawn_only_where_asked_for() -> None:
    assert K.FAR in simplest(ks.layouts((3, 5), kinds=["far", "contiguous"]), K.FAR).kinds(4)
    assert K.FAR not in possible(Site.of((3, 5), "int32"))


@given(SHAPES, DTYPES, st.sampled_from((ks.ANY, ks.CONTIGUOUS_LAST)), st.integers(0, 7), st.integers(0, 7))
@example((2, 3), "int32", Kinds(frozenset(LayoutKind)), 0, 0)
@example((2, 1), "int32", Kinds(frozenset(LayoutKind)), 0, 0)
@example((3,), "int32", Kinds(frozenset(LayoutKind)), 0, 0)
@settings(max_examples=200)
def test_a_layout_has_the_kinds_it_was_made_for(
    shape: tuple[int, ...], dtype: str, kinds: Kinds, a: int, b: int
) -> None:
    site = Site.of(shape, dtype, kinds)
    for kind in possible(site):
        for recipe in ((kind,), *((kind, partner) for partner in partners(site, kind))):
            layout = make(site, recipe, a, b)
            assert layout.shape == shape
            assert set(recipe) <= layout.kinds(site.itemsize)
            if kinds.unit_last and shape and 0 not in shape:
                assert layout.strides[-1] == 1


@given(st.data(), SHAPES, DTYPES)
@settings(max_examples=200)
def test_kinds_that_are_not_allowed_do_not_come_along(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    plain = {K.CONTIGUOUS, K.EMPTY}
    some = data.draw(st.sets(st.sampled_from(sorted(ks.ANY.allowed - plain))))
    found = data.draw(ks.layouts(shape, dtype=dtype, kinds=some | plain)).kinds(ITEMSIZE[dtype])
    strict = {K.MISALIGNED, K.EXPANDED, K.FAR, K.TRANSPOSED, K.STEPPED, K.INTERLEAVED, K.DEGENERATE}
    assert found & strict <= some


@given(st.data(), SHAPES, DTYPES)
def test_constants(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    dense = data.draw(ks.layouts(shape, dtype=dtype, kinds=ks.DENSE))
    if dense.numel:
        wide = [(n, stride) for n, stride in zip(shape, dense.strides, strict=True) if n > 1]
        natural = [(n, s) for n, s in zip(shape, Layout.contiguous(shape).strides, strict=True) if n > 1]
        assert wide == natural
    assert not data.draw(ks.layouts(shape, dtype=dtype, kinds=ks.WRITABLE)).overlapping
    aligned = ks.CONTIGUOUS_LAST.without("misaligned", K.OFFSET)
    layout = data.draw(ks.layouts(shape, dtype=dtype, kinds=aligned))
    if layout.numel:
        assert layout.first * ITEMSIZE[dtype] % 16 == 0
        assert not shape or layout.strides[-1] == 1


def test_contiguous_layouts_are_a_third() -> None:
    drawn: list[Layout] = []

    # The integer stands for the rest of a case: Hypothesis draws nothing twice.
    @settings(max_examples=600, database=None, phases=[Phase.generate])
    @given(st.integers(), ks.layouts((3, 5)))
    def draw(_: int, layout: Layout) -> None:
        drawn.append(layout)

    draw()
    share = sum(layout.kinds(4) == {K.CONTIGUOUS} for layout in drawn) / len(drawn)
    assert 0.2 < share < 0.6
    combined = sum(len(layout.kinds(4) & {K.NARROWED, K.OFFSET, K.STEPPED, K.TRANSPOSED}) > 1 for layout in drawn)
    assert combined > 10


def test_partners_are_a_subset_of_what_a_site_allows() -> None:
    for kind, (shape, allowed) in product(PARTNERS, [((3,), ks.DENSE), ((3, 5), ks.ANY), ((1, 1), ks.WRITABLE)]):
        site = Site.of(shape, "int32", allowed)
        assert set(partners(site, kind)) <= set(possible(site))


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(SpecError, match="'diagonal' is not a valid LayoutKind; kinds are contiguous, narrowed"):
        ks.layouts((2,), kinds=["diagonal"])


def test_impossible_kinds_leave_contiguous() -> None:
    assert find(ks.layouts((1, 3), kinds=["transposed"]), lambda _: True) == Layout.contiguous((1, 3))
