"""A plan pins named choices and layouts; the record tells what was offered and what could not be honoured."""

from __future__ import annotations

from types import MappingProxyType

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kcheck import Case, plan
from kcheck import strategies as ks
from kcheck.case import View
from kcheck.layout import LayoutKind
from kcheck.plan import Choice, Drawing, Plan, Slots

K = LayoutKind


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = draw(ks.dims("rows", min_value=1, max_value=64, boundaries=(20,)))
    columns = draw(ks.dims("columns", min_value=1, max_value=8))
    mode = draw(ks.options("mode", ("sum", "mean")))
    draw(ks.tensors((3,)))  # becomes no argument
    out = draw(ks.outputs((rows,), "float16"))
    return Case(x=draw(ks.tensors((rows, columns), ("float32", "int8"))), out=out, mode=mode)


def draw_under(
    asked: Plan, slots: Slots = MappingProxyType({}), strategy: st.SearchStrategy[Case] | None = None
) -> tuple[Case, Drawing]:
    """The first case under a plan, and its record."""
    found: list[tuple[Case, Drawing]] = []

    @settings(max_examples=1, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.data())
    def take(data: st.DataObject) -> None:
        with plan.drawing(Drawing(asked, slots)) as record:
            found.append((data.draw(CASES if strategy is None else strategy), record))

    take()
    return found[0]


CASES = cases()


def slots(strategy: st.SearchStrategy[Case] | None = None, **pins: int | str) -> Slots:
    """Which draw of a case becomes which argument."""
    case, record = draw_under(Plan(pins, small=True), strategy=strategy)
    return record.learn_slots(case.drawn)


def view(case: Case, name: str) -> View:
    return case.views[name]


def test_without_a_plan_everything_is_free() -> None:
    assert plan.current().plan == Plan()
    assert plan.current() is not plan.current()


def test_the_record_tells_what_was_offered() -> None:
    case, record = draw_under(Plan(small=True))
    assert list(record.choices) == ["rows", "columns", "mode"]
    assert record.choices["columns"] == Choice("columns", (1, 2, 3, 4, 5, 7, 8))
    assert {1, 2, 20, 31, 32, 33, 64} <= set(record.choices["rows"].values)
    assert record.choices["mode"] == Choice("mode", ("sum", "mean"))
    assert list(record.learn_slots(case.drawn).values()) == ["out", "x"]
    assert record.unmet == []
    kinds = dict(zip(("", "out", "x"), (kinds for _, kinds in record.tensors), strict=True))
    assert {K.CONTIGUOUS, K.NARROWED, K.TRANSPOSED, K.EXPANDED} <= set(kinds["x"])
    assert K.EXPANDED not in kinds["out"]
    assert all(K.FAR not in offered and K.EMPTY not in offered for offered in kinds.values())


def test_small_sizes_differ_and_layouts_are_contiguous() -> None:
    case, record = draw_under(Plan(small=True))
    assert view(case, "x").layout.shape == (2, 3)
    assert all(v.kinds == {K.CONTIGUOUS} for v in case.views.values())
    assert case.args["mode"] == "sum"
    assert view(case, "x").dtype == "float32"
    seeds = [tensor.fill.seed for tensor, _ in record.tensors if tensor.role == "input"]
    assert len(set(seeds)) == len(seeds)


def test_small_draws_nothing() -> None:
    found = set()

    @settings(max_examples=20, database=None)
    @given(st.data())
    def take(data: st.DataObject) -> None:
        with plan.drawing(Drawing(Plan(small=True))):
            found.add(data.draw(CASES))

    take()
    assert len(found) == 1


def test_pins_are_honoured() -> None:
    case, record = draw_under(Plan({"rows": 20, "mode": "mean"}, small=True))
    assert view(case, "x").layout.shape == (20, 3)
    assert case.args["mode"] == "mean"
    assert record.unmet == []


def test_every_pinned_kind_is_honoured() -> None:
    _, record = draw_under(Plan(small=True))
    learnt = slots()
    for kind in record.tensors[2][1]:
        case, again = draw_under(Plan(layouts={"x": kind}, small=True), learnt)
        assert kind in view(case, "x").kinds
        assert view(case, "out").kinds == {K.CONTIGUOUS}
        assert again.unmet == []


def test_a_pin_holds_while_the_rest_is_random() -> None:
    rows = set()
    learnt = slots()

    @settings(max_examples=40, database=None)
    @given(st.data())
    def take(data: st.DataObject) -> None:
        with plan.drawing(Drawing(Plan({"columns": 3}, {"x": K.STEPPED}), learnt)):
            case = data.draw(CASES)
        assert view(case, "x").layout.shape[1] == 3
        assert K.STEPPED in view(case, "x").kinds or view(case, "x").layout.shape == (1, 1)
        rows.add(view(case, "x").layout.shape[0])

    take()
    assert len(rows) > 5


def test_pins_that_cannot_be_honoured_are_said_once_and_the_rest_is_drawn() -> None:
    asked = Plan({"columns": 9, "mode": "median", "rows": "tall"}, {"out": K.EXPANDED, "x": K.EMPTY}, small=True)
    case, record = draw_under(asked, slots())
    assert record.unmet == [
        "rows=tall is outside 1 … 64",
        "columns=9 is outside 1 … 8",
        "mode=median is not one of sum, mean",
        "out cannot be expanded: its shape (1,) and its values leave no such layout",
        "x cannot be empty: its shape (1, 1) and its values leave no such layout",
    ]
    assert view(case, "x").layout.shape == (1, 1)
    assert case.args["mode"] == "sum"


def test_kinds_that_a_strategy_does_not_allow_are_unmet() -> None:
    _, record = draw_under(Plan(layouts={"out": K.EXPANDED}, small=True), slots())
    assert record.unmet == ["out cannot be expanded: its strategy does not allow it"]


def test_far_is_drawn_where_pinned() -> None:
    case, record = draw_under(Plan(layouts={"x": K.FAR}, small=True), slots())
    assert K.FAR in view(case, "x").kinds
    assert record.unmet == []


def test_options_are_pinned_by_their_text() -> None:
    @st.composite
    def one(draw: st.DrawFn) -> Case:
        return Case(scale=draw(ks.options("scale", (1.5, None, True, -1, "-2"))))

    for text, value in (("1.5", 1.5), ("None", None), ("True", True), (-1, -1), ("-1", -1), (-2, "-2")):
        case, record = draw_under(Plan({"scale": text}), strategy=one())
        assert case.args["scale"] == value
        assert record.unmet == []
        assert record.choices["scale"].values == ("1.5", "None", "True", -1, "-2")


@st.composite
def conditional(draw: st.DrawFn) -> Case:
    given = draw(ks.options("out", ("none", "given"))) == "given"
    out = draw(ks.outputs((4, 4))) if given else None
    more = [draw(ks.tensors((4, 4))) for _ in range(2)]
    return Case(out=out, x=draw(ks.tensors((4, 4))), y=more[0], z=more[1])


def test_a_tensor_that_is_drawn_under_a_condition_shifts_no_other() -> None:
    strategy = conditional()
    learnt = {**slots(strategy), **slots(strategy, out="given")}
    assert sorted(learnt.values()) == ["out", "x", "y", "z"]
    for way in ("none", "given"):
        for name in learnt.values():
            asked = Plan({"out": way}, {name: K.TRANSPOSED}, small=True)
            case, record = draw_under(asked, learnt, strategy)
            assert [path for path, v in case.views.items() if K.TRANSPOSED in v.kinds] == [name] * (name in case.views)
            assert not record.is_misled(case.drawn)


def test_a_pinned_tensor_that_is_drawn_where_nobody_knew_is_told() -> None:
    strategy = conditional()
    case, record = draw_under(Plan({"out": "given"}, {"out": K.TRANSPOSED}), slots(strategy), strategy)
    assert record.is_misled(case.drawn)
    case, record = draw_under(Plan({"out": "given"}, {"x": K.TRANSPOSED}), slots(strategy), strategy)
    assert not record.is_misled(case.drawn)
