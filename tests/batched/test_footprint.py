"""Programs that meet at a cell are noticed, however their accesses were taken down; others are not."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcheck.worker.backends.batched.footprint import Footprint, Runs, _apart
from kcheck.worker.backends.batched.values import NotBatched
from kcheck.worker.backends.interpret.arguments import Backing

MEMORY = np.zeros(64, np.float32)
CELLS = 12
Access = tuple[str, int, int, int, bool]  # kind, program, first cell, length, and whether cell by cell

accesses = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "write"]), st.integers(1, 3), st.integers(0, CELLS - 3), st.integers(1, 3),
        st.booleans(),
    ),
    max_size=5,
)  # fmt: skip


def footprint() -> Footprint:
    return Footprint(Backing(MEMORY.ctypes.data, MEMORY.nbytes, MEMORY), 4)


def meets(one: Access, other: Access) -> bool:
    apart = one[1] == other[1] or "write" not in (one[0], other[0])
    return not apart and bool({*range(one[2], one[2] + one[3])} & {*range(other[2], other[2] + other[3])})


@settings(max_examples=500, deadline=None)
@given(accesses)
def test_against_every_pair(noted: list[Any]) -> None:
    made = footprint()
    try:
        for access, program, first, length, single in noted:
            if single:
                cells = np.arange(first, first + length)
                made.lanes(access, np.full(length, program, np.int32), cells)
            else:
                made.note(Runs(access, np.array([program], np.int32), np.array([[first]]), length))
        made.check()
        met = False
    except NotBatched:
        met = True
    assert met == any(meets(one, other) for one, other in combinations(noted, 2))


def test_everyone_reads_what_one_writes() -> None:
    made = footprint()
    made.note(Runs("read", None, np.array([[5]]), 1))
    made.check()
    made.note(Runs("write", np.array([2], np.int32), np.array([[4]]), 1))
    made.check()
    made.note(Runs("write", np.array([2], np.int32), np.array([[5]]), 1))
    with pytest.raises(NotBatched):
        made.check()


def call(made: Footprint, programs: list[int], cells: list[int], kind: int = 0, first: int = 0) -> None:
    made.atomics(np.array(programs, np.int32), np.array(cells), kind, first)


def test_one_call_of_an_atomic_is_in_order() -> None:
    made = footprint()
    call(made, [1, 2, 3], [0, 0, 0])
    made.check()


def test_two_calls_mix_the_programs() -> None:
    made = footprint()
    call(made, [1, 2], [0, 1])
    call(made, [1, 2], [0, 1])  # each its own cell
    with pytest.raises(NotBatched, match="order"):
        call(made, [1, 2], [1, 0])


def test_what_commutes_may_mix() -> None:
    made = footprint()
    call(made, [1, 2], [0, 0], kind=1)
    call(made, [1, 2], [0, 0], kind=1)
    with pytest.raises(NotBatched):
        call(made, [1, 2], [0, 0], kind=2)


def test_a_later_chunk_comes_after() -> None:
    made = footprint()
    call(made, [1, 2], [0, 1])
    call(made, [3, 4], [0, 1], first=made.calls)


def test_an_atomic_meets_a_plain_access() -> None:
    made = footprint()
    call(made, [1, 2], [0, 1])
    made.note(Runs("read", np.array([1], np.int32), np.array([[0]]), 1))
    made.check()
    made.note(Runs("read", np.array([1], np.int32), np.array([[1]]), 1))
    with pytest.raises(NotBatched):
        made.check()


def test_what_was_written() -> None:
    made = footprint()
    made.note(Runs("write", np.array([1, 2], np.int32), np.array([[0], [8]]), 3))
    made.lanes("write", np.array([3], np.int32), np.array([5]))
    call(made, [1], [6])
    made.note(Runs("read", np.array([1], np.int32), np.array([[7]]), 1))
    assert made.all_written().tolist() == [0, 1, 2, 5, 6, 8, 9, 10]
    assert made.written(np.array([1, 7])).tolist() == [True, False]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=7))
def test_runs_that_are_surely_apart(noted: list[tuple[int, int, int]]) -> None:
    """By sorting alone: whether runs of different programs overlap."""
    runs = [
        Runs("write", np.array([program], np.int32), np.array([[first]]), length) for program, first, length in noted
    ]
    overlap = any(
        one[0] != other[0] and one[1] < other[1] + other[2] and other[1] < one[1] + one[2]
        for one, other in combinations(noted, 2)
    )
    assert _apart(runs) is not overlap
