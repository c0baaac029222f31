"""Byte membership of views against a brute-force model."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcheck.worker.backends.interpret.membership import Intervals, View

BASE = 1 << 20


@st.composite
def views(draw: st.DrawFn) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Item size, shape and stride of an arbitrary ``as_strided`` view."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8]))
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 5)) for _ in range(rank))
    stride = tuple(draw(st.integers(0, 14)) for _ in range(rank))
    return itemsize, shape, stride


def _bytes_of(itemsize: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> set[int]:
    return {
        BASE + itemsize * sum(i * s for i, s in zip(index, stride, strict=True)) + byte
        for index in itertools.product(*map(range, shape))
        for byte in range(itemsize)
    }


@given(views(), st.sampled_from([1, 2, 4, 8]))
def test_membership_equals_brute_force(layout: Any, width: int) -> None:
    itemsize, shape, stride = layout
    cells = _bytes_of(itemsize, shape, stride)
    view = View(BASE, itemsize, shape, stride)
    last = max(cells, default=BASE)
    addresses = np.arange(BASE - 20, last + 20, dtype=np.uint64)
    outside = view.outside(addresses - np.uint64(BASE), width)
    expected = [not cells.issuperset(range(int(a), int(a) + width)) for a in addresses]
    assert outside.tolist() == expected


@given(views())
def test_located_index_leads_back_to_the_address(layout: Any) -> None:
    itemsize, shape, stride = layout
    view = View(BASE, itemsize, shape, stride)
    for address in range(BASE - 3 * itemsize, BASE + 30 * itemsize):
        index, between = view.locate(address)
        reached = BASE + itemsize * sum(i * s for i, s in zip(index, stride, strict=True))
        if any(stride):
            assert reached <= address
            assert between == (reached != address)


@pytest.mark.parametrize(
    ("shape", "stride", "offset", "expected"),
    [
        ((4, 3), (16, 1), 3, ((0, 3), False)),
        ((4, 3), (16, 1), 17, ((1, 1), False)),
        ((4, 3), (16, 1), 64, ((4, 0), False)),
        ((5,), (2,), 3, ((1,), True)),
        ((5,), (1,), -2, ((-2,), False)),
        ((3, 4), (1, 3), 12, ((0, 4), False)),
        ((4, 3), (0, 1), 3, ((0, 3), False)),
        ((1, 3), (16, 1), 16, ((1, 0), False)),
        ((1, 32), (7, 1), 33, ((0, 33), False)),
        ((), (), 1, ((), False)),
    ],
)
def test_index_of_a_stray_element(
    shape: tuple[int, ...], stride: tuple[int, ...], offset: int, expected: tuple[tuple[int, ...], bool]
) -> None:
    assert View(BASE, 4, shape, stride).locate(BASE + 4 * offset) == expected


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=8), st.integers(1, 8))
def test_intervals_equal_brute_force(runs: list[tuple[int, int]], width: int) -> None:
    inside = {byte for start, size in runs for byte in range(start, start + size)}
    addresses = np.arange(0, 80, dtype=np.uint64)
    expected = [inside.issuperset(range(a, a + width)) for a in range(80)]
    assert Intervals(runs).contains(addresses, width).tolist() == expected


def test_first_bad_byte() -> None:
    view = View(BASE, 4, (3,), (1,))
    assert view.first_bad_byte(BASE + 10, 4) == BASE + 12
    assert view.first_bad_byte(BASE - 2, 4) == BASE - 2
