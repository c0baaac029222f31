"""Tensor strategies: roles, data types, values; and several tensors over one memory."""

from __future__ import annotations

from itertools import product
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
import torch
from hypothesis import find, given, settings
from hypothesis import strategies as st

from kcheck import Case, plan
from kcheck import strategies as ks
from kcheck.case import Role, Tensor
from kcheck.dtypes import DTYPES, dtype_named
from kcheck.errors import SpecError
from kcheck.fill import Fill
from kcheck.layout import Layout, LayoutKind
from kcheck.plan import Drawing, Plan, Slots

K = LayoutKind
NAMES = sorted(DTYPES)
QUICK = settings(max_examples=300, database=None)
SHAPES = st.lists(st.sampled_from((0, 1, 2, 3, 8)), max_size=3).map(tuple)


def first(strategy: st.SearchStrategy[Any]) -> Any:
    return find(strategy, lambda _: True, random=Random(0), settings=QUICK)


@given(st.data(), SHAPES, st.sampled_from(NAMES))
def test_every_tensor_makes_a_case(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    x = data.draw(ks.tensors(shape, dtype))
    out = data.draw(ks.outputs(shape, dtype))
    state = data.draw(ks.inouts(shape, dtype))
    case = Case(x=x, out=out, state=state)
    assert [view.role for view in case.views.values()] == [Role.INPUT, Role.OUTPUT, Role.INOUT]
    assert all(tensor.shape == shape and tensor.dtype == dtype for tensor in (x, out, state))
    assert not out.layout.overlapping
    assert not state.layout.overlapping


def test_shrinks_to_contiguous_and_seed_0_but_tensors_differ() -> None:
    a, b = first(st.tuples(ks.tensors((2, 3)), ks.tensors((2, 3))))
    assert a.layout == b.layout == Layout.contiguous((2, 3))
    assert (a.fill.seed, b.fill.seed) == (0, 256)


@pytest.mark.parametrize(
    "dtype",
    [
        "bfloat16",
        "torch.bfloat16",
        torch.bfloat16,
        ("bfloat16", "int8"),
        [torch.bfloat16],
        st.just("bfloat16"),
        st.just(torch.bfloat16),
    ],
)
def test_ways_to_name_a_data_type(dtype: Any) -> None:
    assert first(ks.tensors((2,), dtype)).dtype == "bfloat16"


@pytest.mark.parametrize("name", NAMES)
def test_default_values_fit_every_data_type(name: str) -> None:
    fill = first(ks.tensors((2,), name)).fill
    dtype = dtype_named(name)
    fill.check(dtype, 2)
    drawn = {fill.value(dtype, i) for i in range(200)}
    assert len(drawn) >= (2 if name == "bool" else 4)
    assert all(abs(value) <= 16 for value in drawn)


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        ({}, -16, 16),
        ({"low": 3}, 3, 16),
        ({"low": 40}, 40, 40),
        ({"high": 5}, -16, 5),
        ({"high": -40}, -40, -40),
        ({"low": -1, "high": 1000}, -1, 1000),
    ],
)
def test_integer_ranges(asked: dict[str, int], low: int, high: int) -> None:
    fill = first(ks.tensors((2,), "int16", low=asked.get("low"), high=asked.get("high"))).fill
    assert (fill.low, fill.high) == (low, high)


def test_floats_and_given_values() -> None:
    assert first(ks.tensors((2,), "float16", exponent=3)).fill.exponent == 3
    given_values = ks.tensors((2,), "int8", fill=Fill.of((7, 9)))
    for suffix in ("", "[:2]", "[::2]"):
        found = find(given_values, lambda t: t.layout.suffix() == suffix, settings=QUICK)  # noqa: B023
        assert found.fill.values == (7, 9)
        Case(x=found)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ks.tensors((2,), "uint8", low=-1), "values from -1 to 16 do not fit uint8"),
        (lambda: ks.tensors((2,), "int8", low=5, high=4), "values from 5 to 4"),
        (lambda: ks.tensors((2,), "int8", high=128), "do not fit int8"),
        (lambda: ks.tensors((2,), ()), "no data types"),
        (lambda: ks.indices((2,), bound=0), "bound is 0"),
        (lambda: ks.tensors((2,), kinds=["odd"]), "not a valid LayoutKind"),
    ],
)
def test_impossible_requests_are_one_sentence(make: Any, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        first(make())


def test_indices_address_what_they_are_told_to() -> None:
    found = first(ks.indices((50,), bound=7, min_value=-1))
    assert (found.role, found.bound, found.dtype) == (Role.INDEX, 7, "int32")
    assert {found.fill.value(dtype_named("int32"), i) for i in range(200)} == set(range(-1, 7))


def cells(tensor: Tensor) -> set[int]:
    return {tensor.layout.offset_of(index) for index in product(*map(range, tensor.shape))}


PARTS = st.one_of(
    ks.planes((3, 4), "int8"),
    ks.planes((3, 1, 4), "int8", axis=3, count=3),
    ks.planes((2, 4), "int8", axis=0, kinds=ks.CONTIGUOUS_LAST),
    ks.planes((), "int8", axis=0),
    ks.planes((0, 3), "int8"),
    ks.splits((3, 0), (4, 2, 2), "int8"),
    ks.splits((0, 3), (1, 0, 2), "int8", axis=0),
    ks.splits((2, 0, 3), (2, 1), "int8", axis=1, role=Role.INOUT),
    ks.splits((0,), (1, 0), "int8"),
)


@given(PARTS)
@settings(max_examples=300)
def test_parts_share_a_memory_and_no_element(parts: tuple[Tensor, ...]) -> None:
    case = Case(parts=list(parts))
    assert list(case.backings) == ["parts[0]"]
    assert len({tensor.fill.seed for tensor in parts}) == len(parts)
    reached = [cells(tensor) for tensor in parts]
    assert [len(one) for one in reached] == [tensor.layout.numel for tensor in parts]
    assert len(set().union(*reached)) == sum(map(len, reached))
    assert set().union(*reached) <= set(range(case.backings["parts[0]"].numel))


@pytest.mark.parametrize(
    ("strategy", "codes"),
    [
        (ks.planes((3, 4), "int8"), ["empty((3, 2, 4))[:, 0]", "empty((3, 2, 4))[:, 1]"]),
        (ks.planes((3, 4), "int8", axis=2), ["empty((3, 4, 2))[:, :, 0]", "empty((3, 4, 2))[:, :, 1]"]),
        (ks.splits((3, 0), (4, 2), "int8"), ["empty((3, 6))[:, :4]", "empty((3, 6))[:, 4:]"]),
        (ks.splits((0, 3), (1, 2), "int8", axis=0), ["empty((3, 3))[:1]", "empty((3, 3))[1:]"]),
    ],
)
def test_the_plainest_parts_cover_their_memory(
    strategy: st.SearchStrategy[tuple[Tensor, ...]], codes: list[str]
) -> None:
    parts = first(strategy)
    shown = [tensor.layout.code("int8").replace(", dtype=torch.int8", "").replace("torch.", "") for tensor in parts]
    assert shown == codes
    assert set().union(*map(cells, parts)) == set(range(parts[0].layout.backing_numel))


def test_pins_of_parts() -> None:
    @st.composite
    def pair(
        draw: st.DrawFn, kind: LayoutKind, slots: Slots = MappingProxyType({})
    ) -> tuple[tuple[Tensor, ...], Drawing]:
        with plan.drawing(Drawing(Plan(layouts={"v": kind}, small=True), slots)) as record:
            return draw(ks.planes((3, 4), "int8")), record

    (k, v), record = first(pair(K.INTERLEAVED))
    slots = record.learn_slots({"k": k, "v": v})
    for kind in (K.INTERLEAVED, K.NARROWED, K.OFFSET, K.STEPPED, K.TRANSPOSED, K.FAR):
        parts, record = first(pair(kind, slots))
        assert all(kind in tensor.layout.kinds(1) for tensor in parts)
        assert record.unmet == []
    for kind in (K.CONTIGUOUS, K.EXPANDED, K.DEGENERATE):
        assert first(pair(kind, slots))[1].unmet[0].startswith(f"v cannot be {kind}: ")


@pytest.mark.parametrize(
    "make",
    [
        lambda: ks.planes((3,), axis=2),
        lambda: ks.planes((3,), count=0),
        lambda: ks.splits((3,), (1,), axis=1),
        lambda: ks.splits((3,), ()),
        lambda: ks.splits((), (1,)),
    ],
)
def test_impossible_parts(make: Any) -> None:
    with pytest.raises(SpecError, match="axis is"):
        make()
