"""Named sizes and options."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from kcheck import strategies as ks
from kcheck.errors import SpecError
from kcheck.plan import Drawing, Plan, drawing
from kcheck.strategies.dims import boundary_values

QUICK = settings(max_examples=400, database=None)


def test_boundary_values() -> None:
    assert boundary_values(0, 20, (12, 99)) == (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20)
    assert boundary_values(3, 3) == (3,)
    assert boundary_values(100, 130) == (100, 127, 128, 129, 130)


@given(st.integers(0, 40), st.integers(0, 5000), st.data())
def test_a_size_lies_in_its_range(least: int, span: int, data: st.DataObject) -> None:
    assert least <= data.draw(ks.dims("n", min_value=least, max_value=least + span)) <= least + span


def sample(strategy: st.SearchStrategy[int], count: int) -> Counter[int]:
    drawn: Counter[int] = Counter()

    # The integer stands for the rest of a case: Hypothesis draws nothing twice.
    @settings(max_examples=count, database=None, phases=[Phase.generate])
    @given(st.integers(), strategy)
    def draw(_: int, value: int) -> None:
        drawn[value] += 1

    draw()
    return drawn


def test_boundary_values_are_drawn_often_and_others_sometimes() -> None:
    drawn = sample(ks.dims("n", min_value=1, max_value=300, boundaries=(100,)), 600)
    edges = set(boundary_values(1, 300, (100,)))
    near = sum(count for value, count in drawn.items() if value in edges)
    assert 0.5 < near / drawn.total() < 0.95
    assert {100, 256, 257} <= set(drawn)
    assert len(set(drawn) - edges) > 30


def test_a_wide_range_has_a_short_table() -> None:
    assert max(sample(ks.dims("n", min_value=0, max_value=10**9), 200)) <= 10**9


@pytest.mark.parametrize(("at_least", "minimum"), [(1, 1), (2, 2), (17, 17), (40, 40), (130, 130)])
def test_shrinks_to_the_smallest_size_that_will_do(at_least: int, minimum: int) -> None:
    strategy = ks.dims("n", min_value=1, max_value=256, boundaries=(40, 130))
    assert find(strategy, lambda n: n >= at_least, random=Random(1), settings=QUICK) == minimum


def test_options_shrink_to_the_first() -> None:
    assert find(ks.options("mode", ("b", "a")), lambda _: True, settings=QUICK) == "b"
    assert find(ks.options("mode", ("b", "a")), lambda mode: mode == "a", settings=QUICK) == "a"


def test_strategies_are_built_once() -> None:
    assert ks.dims("n", max_value=9) is ks.dims("n", max_value=9)
    assert ks.options("mode", [1, 2]) is ks.options("mode", (1, 2))


def test_impossible_ranges_are_refused() -> None:
    with pytest.raises(SpecError, match=r"dims\('n'\): min_value is 3, above max_value, 2"):
        ks.dims("n", min_value=3, max_value=2)
    with pytest.raises(SpecError, match=r"options\('mode'\): there are no values"):
        ks.options("mode", ())


def test_a_plan_can_bound_sizes() -> None:
    from kcheck.plan import Drawing, Plan, drawing

    @st.composite
    def bounded(draw: st.DrawFn) -> tuple[int, int]:
        with drawing(Drawing(Plan(most=8))):
            return draw(ks.dims("rows", max_value=256)), draw(ks.dims("wide", min_value=20, max_value=256))

    @given(bounded())
    def check(sizes: tuple[int, int]) -> None:
        assert 1 <= sizes[0] <= 8
        assert sizes[1] == 20

    check()


@pytest.mark.parametrize(
    "strategy", [ks.dims("n", min_value=1, max_value=500, compiled=True), ks.options("n", range(1, 501), compiled=True)]
)
def test_a_run_draws_few_values_of_what_is_compiled_another_run_others(strategy: st.SearchStrategy[int]) -> None:
    def drawn(seed: int) -> set[int]:
        @st.composite
        def planned(draw: st.DrawFn) -> int:
            with drawing(Drawing(Plan(seed=seed))):
                return draw(strategy)

        return set(sample(planned(), 200))

    assert len(drawn(1)) == len(drawn(2)) == 8
    assert drawn(1) != drawn(2)
    assert {1, 500} <= drawn(1) & drawn(2)


def test_a_pin_of_what_is_compiled_need_not_be_among_the_few() -> None:
    for strategy in (
        ks.dims("n", min_value=1, max_value=500, compiled=True),
        ks.options("n", range(999), compiled=True),
    ):
        with drawing(Drawing(Plan({"n": 333}))):
            assert find(strategy, lambda n: True, settings=QUICK) == 333


def test_a_sweep_tries_the_few_values_of_what_is_compiled() -> None:
    with drawing(Drawing(Plan(small=True))) as record:
        find(ks.dims("n", min_value=1, max_value=500, compiled=True), lambda n: True, settings=QUICK)
    assert len(record.choices["n"].values) == 8


def test_options_that_are_equal_but_of_other_types_are_kept_apart() -> None:
    for values in ((1, 2), (1.0, 2.0), (True, 2), (0, 1), (False, True)):
        for _ in range(2):
            first = find(ks.options("kind", values), lambda value: True, settings=QUICK)
            assert type(first) is type(values[0])
