"""Cases and their documents: equal both ways, immutable, and refused with the place of the fault."""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kcheck
from kcheck import Case
from kcheck import strategies as ks
from kcheck.case import DTypeValue, Memory, Role, Tensor, View
from kcheck.document import CASE_SCHEMA, case_from_json, case_to_json
from kcheck.errors import InvalidDocument, UsageError
from kcheck.fill import Fill
from kcheck.layout import Dim, Layout, LayoutKind

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


@st.composite
def any_case(draw: st.DrawFn) -> Case:
    kv = draw(ks.paged_kv(max_requests=3))
    k, v = draw(kv.pools((2,), ("float16", "float8_e4m3fn")))
    return Case(
        caches=[k, v],
        table=kv.block_table,
        lens=kv.seq_lens,
        out=draw(ks.outputs((2, 3), "bfloat16")),
        state=draw(ks.inouts((4,), "bool")),
        extra=draw(SCALARS | st.lists(SCALARS, max_size=2) | st.tuples(SCALARS, SCALARS)),
        dtype=torch.bfloat16,
    )


@given(any_case())
def test_json_both_ways(case: Case) -> None:
    text = json.dumps(case_to_json(case), allow_nan=False)
    back = case_from_json(json.loads(text))
    assert back == case
    assert hash(back) == hash(case)
    assert back.key == case.key
    assert list(back.args) == list(case.args)
    assert {name: view.layout for name, view in back.views.items()} == {n: v.layout for n, v in case.views.items()}
    assert json.dumps(case_to_json(back)) == text


def small_case() -> Case:
    narrowed = Layout((Dim(2), Dim(3, after=13)))
    return Case(
        table=Tensor("int32", narrowed, Fill.of(range(6)), Role.INDEX, bound=6),
        x=Tensor("float32", Layout.contiguous((2,))),
        sizes=(1, [2.5, math.inf]),
        flag=True,
        kind=torch.float16,
    )


def test_a_case_is_plain_data() -> None:
    case = small_case()
    assert case.args["kind"] == DTypeValue("float16")
    assert case.args["sizes"] == (1, [2.5, math.inf])
    assert case.backings["table"].nbytes == 32 * 4
    table = case.args["table"]
    assert isinstance(table, View)
    assert table.kinds == {LayoutKind.NARROWED}
    assert "[:, :3]" in repr(case)


def test_the_key_is_the_same_in_every_process() -> None:
    """Verdicts and recorded findings are kept by it."""
    code = (
        "import json, sys; from kcheck.document import case_from_json;"
        "print(case_from_json(json.load(sys.stdin)).key, end='')"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(case_to_json(small_case())),
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(kcheck.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert keys == {small_case().key}
    assert len(small_case().key) == 16


def test_equal_when_the_plain_data_is() -> None:
    assert small_case() == small_case()
    assert small_case() != Case(x=1)
    assert small_case() != 1
    assert Case(x=1) != Case(x=True)
    assert Case(x=1) != Case(x=1.0)
    assert Case(x=[1]) != Case(x=(1,))
    assert Case(x=math.nan) == Case(x=math.nan)


@pytest.mark.parametrize("name", ["args", "backings", "drawn", "key", "new"])
def test_a_case_is_immutable(name: str) -> None:
    with pytest.raises(AttributeError, match="immutable"):
        setattr(small_case(), name, {})


def test_what_a_case_holds_is_immutable() -> None:
    case = small_case()
    for mapping in (case.args, case.backings, case.views, case.drawn):
        with pytest.raises(TypeError):
            mapping["x"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        case.views["x"].dtype = "int8"  # type: ignore[misc]


def test_views_over_one_memory_share_a_backing() -> None:
    memory = Memory()
    whole = Layout.contiguous((4,))
    k, v = (Tensor("int8", whole, Fill(seed=i), memory=memory) for i in range(2))
    case = Case(pair=[k, v])
    assert list(case.backings) == ["pair[0]"]
    assert {view.backing for view in case.views.values()} == {"pair[0]"}
    assert case_from_json(case_to_json(case)) == case


def test_roles_follow_the_argument() -> None:
    case = Case(caches=[Tensor("int8", Layout.contiguous((2,))), 3], x=Tensor("int8", Layout.contiguous((2,))))
    changed = case.with_roles({"caches": Role.INOUT})
    assert changed.views["caches[0]"].role is Role.INOUT
    assert changed.views["x"].role is Role.INPUT
    assert changed.args["caches"] == [changed.views["caches[0]"], 3]


@pytest.mark.parametrize(
    ("arguments", "where", "words"),
    [
        ({"x": object()}, "args.x", "a case holds"),
        ({"x": [1, {2}]}, "args.x[1]", "set"),
        ({"x": torch.ones(2)}, "args.x", "drawn by kcheck.strategies"),
        ({"x": Tensor("int8", Layout((Dim(3, expanded=True),)), role=Role.OUTPUT)}, "args.x", "overlap"),
        ({"x": Tensor("int8", Layout.contiguous((3,)), Fill.of((1, 2)))}, "args.x.fill.values", "2 entries for 3"),
        ({"x": Tensor("uint8", Layout.contiguous((1,)), Fill.of((-1,)))}, "args.x.fill.values", "does not fit"),
        ({"x": Tensor("int4", Layout.contiguous((1,)))}, "dtype", "bfloat16"),
        ({"x": Tensor("int8", Layout.contiguous((1,)), bound=-1)}, "args.x.bound", ">= 0"),
    ],
)
def test_impossible_arguments(arguments: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(InvalidDocument, match=words) as caught:
        Case(**arguments)
    assert caught.value.where == where


def test_tensors_over_one_memory_must_fit_it() -> None:
    memory = Memory()
    two = [Tensor(dtype, Layout.contiguous((4,)), memory=memory) for dtype in ("int8", "int16")]
    with pytest.raises(InvalidDocument, match="has 4 of int8"):
        Case(x=two[0], y=two[1])


DIM = ("args", "table", "view", "layout", "dims", 1)
TABLE = ("args", "table", "view")
X = ("args", "x", "view")
# Where to put what, and the place that the error must name.
MALFORMED: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("schema",), "kcheck.case/2", "schema"),
    (("schema",), None, "schema"),
    (("backings",), [], "backings"),
    (("backings", "table"), {"dtype": "int32"}, "backings.table"),
    (("backings", "table", "numel"), -1, "backings.table.numel"),
    (("backings", "table", "numel"), 31, "args.table"),
    (("backings", "table", "numel"), "32", "backings.table.numel"),
    (("backings", "table", "dtype"), "int33", "backings.table.dtype"),
    (("backings", "table", "color"), "red", "backings.table"),
    (("args",), None, "args"),
    (("args", "x"), {"view": 1, "dtype": 2}, "args.x"),
    (("args", "x"), {"tensor": {}}, "args.x"),
    (("args", "x"), {"view": []}, "args.x"),
    (("args", "x"), {"list": 3}, "args.x"),
    (("args", "x"), {"float": "infinite"}, "args.x"),
    (("args", "x"), {"dtype": 3}, "args.x"),
    (("args", "sizes", "tuple", 1, "list", 0), {"set": []}, "args.sizes[1][0]"),
    ((*X, "backing"), "z", "args.x.backing"),
    ((*X, "backing"), ["x"], "args.x.backing"),
    ((*X, "dtype"), "int32", "args.x"),
    ((*X, "dtype"), ["int32"], "args.x.dtype"),
    ((*X, "role"), "boss", "args.x.role"),
    ((*X, "layout"), None, "args.x.layout"),
    ((*X, "layout", "order"), [1], "args.x.layout.order"),
    ((*X, "layout", "order"), [0.0], "args.x.layout.order"),
    ((*X, "layout", "offset"), -1, "args.x.layout.offset"),
    ((*X, "layout", "planes"), [{"count": 2}], "args.x.layout.planes[0]"),
    ((*X, "layout", "planes"), [{"count": 2, "index": 2}], "args.x.layout.planes[0].index"),
    ((*X, "fill", "seed"), -1, "args.x.fill.seed"),
    ((*X, "fill", "version"), 2, "args.x.fill.version"),
    ((*X, "fill", "kind"), "random", "args.x.fill.kind"),
    ((*X, "fill", "high"), -1, "args.x.fill.low"),
    ((*X, "fill", "high"), 2**33, "args.x.fill.high"),
    ((*X, "fill", "low"), 0.5, "args.x.fill.low"),
    ((*X, "fill", "exponent"), 1000, "args.x.fill.exponent"),
    ((*X, "bound"), -1, "args.x.bound"),
    ((*X, "bound"), "many", "args.x.bound"),
    ((*TABLE, "fill", "values"), [1, 2], "args.table.fill.values"),
    ((*TABLE, "fill", "values"), 5, "args.table.fill.values"),
    ((*TABLE, "fill", "values", 3), "three", "args.table.fill.values[3]"),
    ((*TABLE, "fill", "values", 3), 10**400, "args.table.fill.values"),
    ((*TABLE, "fill", "values", 3), True, "args.table.fill.values[3]"),
    ((*DIM, "size"), None, "args.table.layout.dims[1].size"),
    ((*DIM, "size"), 3.0, "args.table.layout.dims[1].size"),
    ((*DIM, "after"), 12, "args.table"),
    ((*DIM, "stride"), 1, "args.table.layout.dims[1]"),
    ((*DIM, "free_stride"), 3, "args.table.layout.dims[1].free_stride"),
    ((*DIM,), 3, "args.table.layout.dims[1]"),
]


@pytest.mark.parametrize(("path", "value", "where"), MALFORMED)
def test_malformed_documents_name_the_place(path: tuple[str | int, ...], value: Any, where: str) -> None:
    data: Any = case_to_json(small_case())
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(InvalidDocument) as caught:
        case_from_json(data)
    assert caught.value.where == where
    assert str(caught.value).startswith(f"{where}: ")
    assert isinstance(caught.value, UsageError)


@pytest.mark.parametrize("key", ["backing", "dtype", "role", "layout", "fill"])
def test_a_view_needs_all_its_fields(key: str) -> None:
    data: Any = case_to_json(small_case())
    del data["args"]["x"]["view"][key]
    with pytest.raises(InvalidDocument, match=f"args.x: has no '{key}'"):
        case_from_json(data)


@pytest.mark.parametrize("data", [None, 3, [], "case", {}, {"schema": CASE_SCHEMA}])
def test_what_is_no_case_at_all(data: Any) -> None:
    with pytest.raises(InvalidDocument):
        case_from_json(data)


def test_the_schema_error_says_which_one_is_read() -> None:
    data = case_to_json(small_case()) | {"schema": "kcheck.case/9"}
    with pytest.raises(InvalidDocument, match=r"schema: is 'kcheck.case/9'; this kcheck reads 'kcheck.case/1'"):
        case_from_json(data)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def paths(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(found for key, value in inner for found in paths(value, (*path, key)))]


PATHS = paths(case_to_json(small_case()))[1:]


@given(st.sampled_from(PATHS), JSON)
def test_any_change_is_read_or_refused(path: tuple[str | int, ...], value: Any) -> None:
    """Never an exception of Python's: a replay file is data from anywhere."""
    data: Any = copy.deepcopy(case_to_json(small_case()))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    try:
        case = case_from_json(data)
    except InvalidDocument:
        return
    assert case_from_json(case_to_json(case)) == case
