"""What is learnt of a target's cases: tensors that are drawn under a condition are swept and pinned like others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.case import Case
from kcheck.engine.choose import boundary_cases, random_cases
from kcheck.engine.learn import check_pins, learn
from kcheck.errors import UsageError
from kcheck.layout import LayoutKind
from kcheck.plan import Plan
from kcheck.target import Target

K = LayoutKind
SHAPE = (4, 4)


def as_init_writes_it(draw: st.DrawFn) -> Case:
    out = None
    if draw(ks.options("out", ("none", "given"))) == "given":
        out = draw(ks.outputs(SHAPE))
    return Case(x=draw(ks.tensors(SHAPE)), out=out)


def by_an_if(draw: st.DrawFn) -> Case:
    if draw(ks.options("given", (False, True))):
        return Case(x=draw(ks.tensors(SHAPE)), out=draw(ks.outputs(SHAPE)))
    return Case(x=draw(ks.tensors(SHAPE)), out=None)


def on_two_paths(draw: st.DrawFn) -> Case:
    mode = draw(ks.options("mode", ("none", "half", "single")))
    x = draw(ks.tensors(SHAPE))
    out = None
    if mode == "half":
        out = draw(ks.outputs(SHAPE, "float16"))
    elif mode == "single":
        out = draw(ks.outputs(SHAPE))
    return Case(x=x, out=out)


def by_a_size(draw: st.DrawFn) -> Case:
    count = draw(ks.dims("count", max_value=40))
    return Case(x=draw(ks.tensors(SHAPE)), out=draw(ks.outputs(SHAPE)) if count > 30 else None)


def by_a_function(draw: st.DrawFn) -> Case:
    def drawn() -> Any:
        return draw(ks.tensors(SHAPE))

    def given() -> bool:
        return draw(ks.options("out", ("none", "given"))) == "given"

    return Case(out=drawn() if given() else None, x=drawn())


def target(cases: Callable[[st.DrawFn], Case]) -> Target:
    @kcheck.target(cases=st.composite(cases)())
    def checked(x: Any, out: Any) -> Any:
        return x

    return checked


CONDITIONAL = [as_init_writes_it, by_an_if, on_two_paths, by_a_function]


@pytest.mark.parametrize("cases", CONDITIONAL, ids=lambda cases: cases.__name__)
def test_each_layout_of_each_tensor_is_swept(cases: Callable[[st.DrawFn], Case]) -> None:
    swept = list(boundary_cases(target(cases), Plan()))
    for name in ("x", "out"):
        alone = [case for case in swept if name in case.views and not case.views[name].layout.is_contiguous]
        kinds = frozenset[LayoutKind]().union(*(case.views[name].kinds for case in alone))
        assert {K.NARROWED, K.STEPPED, K.TRANSPOSED, K.INTERLEAVED} <= kinds, name


@pytest.mark.parametrize("cases", [*CONDITIONAL, by_a_size], ids=lambda cases: cases.__name__)
def test_a_pinned_layout_is_had_in_every_case_that_has_the_tensor(cases: Callable[[st.DrawFn], Case]) -> None:
    for name in ("x", "out"):
        plan = Plan(layouts={name: K.TRANSPOSED})
        check_pins([target(cases)], plan)
        drawn = random_cases(target(cases), plan, 30, 1)
        with_tensor = [case for case in drawn if name in case.views]
        assert len(with_tensor) > 9
        assert all(K.TRANSPOSED in case.views[name].kinds for case in with_tensor)
        other = "x" if name == "out" else "out"
        assert any(K.TRANSPOSED not in case.views[other].kinds for case in drawn if other in case.views)


def test_a_pin_that_no_case_can_have_is_one_sentence() -> None:
    never = target(lambda draw: Case(x=draw(ks.tensors(SHAPE)), out=None))
    with pytest.raises(UsageError, match="no small case draws out with a strategy of kcheck"):
        check_pins([never], Plan(layouts={"out": K.TRANSPOSED}))
    with pytest.raises(UsageError, match="no small case draws out"):
        check_pins([target(as_init_writes_it)], Plan({"out": "none"}, {"out": K.TRANSPOSED}))
    with pytest.raises(UsageError, match="out cannot be expanded: its strategy does not allow it"):
        check_pins([target(as_init_writes_it)], Plan(layouts={"out": K.EXPANDED}))


def test_what_has_all_its_tensors_in_the_first_case_is_drawn_once() -> None:
    count = 0

    def cases(draw: st.DrawFn) -> Case:
        nonlocal count
        count += 1
        draw(ks.options("mode", ("a", "b", "c")))
        return Case(x=draw(ks.tensors(SHAPE)), out=draw(ks.outputs(SHAPE)))

    assert list(learn(target(cases), Plan()).offered) == ["x", "out"]
    assert count == 1
