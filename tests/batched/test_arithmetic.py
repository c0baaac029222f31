"""Sums that are kept apart give what the written-out arrays give, and say when something wraps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcheck.worker.backends.batched import arithmetic
from kcheck.worker.backends.batched.values import Constant, Lanes, Sum, as_sequential, bounds_of, split
from kcheck.worker.backends.interpret.triton_seams import tl

LARGE = 2**31 - 1
numbers = st.one_of(st.integers(-20, 20), st.sampled_from([-LARGE - 1, -LARGE, LARGE, 60_000, -60_000, 2**20]))


@st.composite
def handles(draw: Any, programs: int, lanes: int) -> Any:
    """An int32 block, uniform or not, kept apart or written out."""
    across = np.array([draw(numbers) for _ in range(draw(st.sampled_from([1, programs])))], np.int32)[:, None]
    within = np.array([draw(st.integers(-9, 9)) for _ in range(lanes)], np.int32)[None]
    kind = draw(st.sampled_from(["sum", "flat", "uniform", "written out"]))
    if kind == "flat":
        return Sum(across, np.broadcast_to(np.int32(0), (1, lanes)), tl.int32, flat=True)
    if kind == "uniform":
        return Lanes(within, tl.int32)
    exact = across.astype(np.int64) + within
    if kind == "sum" and (exact == exact.astype(np.int32)).all():
        return Sum(across, within, tl.int32)
    return Lanes((across + within).astype(np.int32), tl.int32)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_sums_differences_and_products(data: Any) -> None:
    left, right = data.draw(handles(5, 4)), data.draw(handles(5, 4))
    operation = data.draw(st.sampled_from([np.add, np.subtract, np.multiply]))
    made = arithmetic.linear(operation, left, right)
    expected = operation(left.data, right.data)
    exact = operation(left.data.astype(np.int64), right.data.astype(np.int64))
    assert made.data.dtype == np.int32
    assert (np.broadcast_to(made.data, expected.shape) == expected).all()
    assert made.wrapped == bool((exact != expected).any())
    low, high = bounds_of(made)
    assert low <= expected.min()
    assert expected.max() <= high


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_comparisons(data: Any) -> None:
    left, right = data.draw(handles(5, 4)), data.draw(handles(5, 4))
    operation = data.draw(
        st.sampled_from([np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal])
    )
    made = arithmetic.compared(operation, left, right)
    if made is None:
        plain = not isinstance(left, Sum) and not isinstance(right, Sum)
        assert plain or split(left) is None or split(right) is None
        return
    expected = operation(left.data, right.data)
    assert (np.broadcast_to(made.data, expected.shape) == expected).all()


def test_a_comparison_is_decided_by_intervals() -> None:
    lanes = Sum(np.arange(4, dtype=np.int32)[:, None] * 8, np.arange(8, dtype=np.int32)[None], tl.int32)
    for limit, decided in ((32, True), (31, None), (0, False)):
        end = Sum(np.full((1, 1), limit, np.int32), np.broadcast_to(np.int32(0), (1, 8)), tl.int32, flat=True)
        made = arithmetic.compared(np.less, lanes, end)
        assert (made.value if isinstance(made, Constant) else None) is decided


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_pointers(data: Any) -> None:
    offset = data.draw(handles(5, 4))
    base = np.array(data.draw(st.lists(st.integers(2**40, 2**41), min_size=1, max_size=1)), np.uint64)
    pointer = Sum(base[:, None], np.broadcast_to(np.uint64(0), (1, 4)), tl.pointer_type(tl.float32), flat=True)
    made = arithmetic.advanced(pointer, offset, 4)
    expected = pointer.data + np.uint64(4) * offset.data.astype(np.uint64)
    assert (np.broadcast_to(made.data, expected.shape) == expected).all()
    parts = split(made)
    if parts is not None and parts.across.size == 1:  # the base is told apart by what is across programs
        assert abs(int(parts.across.flat[0]) - int(base[0])) < 2**36


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_the_program_axis_is_outside_in_memory(axes: tuple[int, ...]) -> None:
    plain = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    array = np.ascontiguousarray(plain.transpose(axes)).transpose(np.argsort(axes))
    made = as_sequential(array)
    assert (made == plain).all()
    assert made.strides[0] >= max(made.strides)
    inner_before, inner_after = (np.argsort(one.strides[1:]).tolist() for one in (array, made))
    assert inner_before == inner_after
    assert as_sequential(np.broadcast_to(np.float32(1), (2, 3, 4))).flags.c_contiguous
