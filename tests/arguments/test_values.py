"""Arguments that are no tensors reach target and oracle as what they were drawn as, through a JSON document too."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.case import Case, Tensor
from kcheck.document import case_from_json, case_to_json
from kcheck.errors import InvalidDocument, SpecError
from kcheck.events import CaseVerdict
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.objects import EnumValue, GeneratorValue, ObjectValue
from kcheck.protocol import Judgement
from kcheck.reports.view_text import scalars
from kcheck.worker.arguments import arguments, class_named
from kcheck.worker.backends import open_backend
from kcheck.worker.judge import Judge

NARROWED = Layout((Dim(3), Dim(4, after=2)))


class Mode(enum.Enum):
    ADD = 1
    SUBTRACT = -1


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass(frozen=True)
class Meta:
    lens: Any
    mode: Mode
    dtype: torch.dtype = torch.float32
    total: int = dataclasses.field(init=False, default=7)


class Pair(NamedTuple):
    first: Any
    size: int


@dataclasses.dataclass
class Forgetful:
    size: dataclasses.InitVar[int]

    def __post_init__(self, size: int) -> None:
        self.kept = size


def case_of_everything() -> Case:
    lens = Tensor("int32", Layout((Dim(3),)))
    return Case(
        xs=[Tensor("float32", NARROWED), Tensor("float32", NARROWED)],
        pair=(Tensor("float32", NARROWED), None),
        meta=Meta(lens, Mode.SUBTRACT),
        named=Pair(Tensor("float32", NARROWED), 3),
        level=Level.HIGH,
        dtype=torch.bfloat16,
        generator=GeneratorValue(5),
        bias=None,
        host=Tensor("int64", Layout((Dim(2),)), host=True),
    )


def test_a_case_names_what_lies_in_lists_and_objects() -> None:
    case = case_of_everything()
    assert list(case.views) == ["xs[0]", "xs[1]", "pair[0]", "meta.lens", "named.first", "host"]
    assert case.args["level"] == EnumValue(f"{__name__}:Level", "HIGH")
    assert case.args["generator"] == GeneratorValue(5)


def test_documents_hold_everything() -> None:
    case = case_of_everything()
    again = case_from_json(json.loads(json.dumps(case_to_json(case))))
    assert again == case
    assert again.views["host"].host
    assert isinstance(again.args["meta"], ObjectValue)


def test_a_target_gets_what_was_drawn() -> None:
    case = case_of_everything()
    tensors = {name: torch.zeros(view.layout.shape) for name, view in case.views.items()}
    found = arguments(case, tensors)
    assert found["xs"][1] is tensors["xs[1]"]
    assert found["pair"][0] is tensors["pair[0]"]
    assert found["pair"][1] is None
    assert type(found["meta"]) is Meta
    assert (found["meta"].mode, found["meta"].dtype, found["meta"].total) == (Mode.SUBTRACT, torch.float32, 7)
    assert found["meta"].lens is tensors["meta.lens"]
    assert type(found["named"]) is Pair
    assert found["named"].size == 3
    assert found["level"] is Level.HIGH
    assert found["dtype"] is torch.bfloat16
    assert found["generator"].initial_seed() == 5


def test_reports_show_values_as_code() -> None:
    shown = scalars(case_of_everything())
    assert shown["meta"] == "Meta(lens=meta.lens, mode=Mode.SUBTRACT, dtype=torch.float32)"
    assert shown["named"] == "Pair(first=named.first, size=3)"
    assert shown["level"] == "Level.HIGH"
    assert shown["generator"] == "torch.Generator().manual_seed(5)"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Forgetful(3), "size"),
        (object(), "is a object"),
        (st.just(1), "is a strategy"),
    ],
)
def test_what_cannot_be_made_again_is_refused(value: object, says: str) -> None:
    with pytest.raises(InvalidDocument, match=says):
        Case(x=value)


def test_a_class_inside_a_function_is_refused() -> None:
    class Local(enum.Enum):
        ONE = 1

    with pytest.raises(InvalidDocument, match="define it at module level"):
        Case(x=Local.ONE)


def test_a_document_cannot_choose_code() -> None:
    for kind in ("subprocess:Popen", "no_such_module:Meta", f"{__name__}:NoSuchClass", "builtins:dict"):
        with pytest.raises(SpecError, match="is not there"):
            class_named(kind, "x")


def test_a_class_is_found_where_its_file_was_loaded_under_another_name() -> None:
    last = __name__.rpartition(".")[2]
    assert class_named(f"elsewhere.{last}:Mode", "x") is Mode


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"enum": {"class": 3, "name": "A"}}, "args.x.class"),
        ({"enum": {"class": "m:A"}}, "args.x.name"),
        ({"object": {"class": "m:A", "fields": [1]}}, "args.x.fields"),
        ({"generator": "7"}, "args.x"),
    ],
)
def test_a_malformed_document_names_the_place(data: object, where: str) -> None:
    document = {"schema": "kcheck.case/1", "backings": {}, "args": {"x": data}}
    with pytest.raises(InvalidDocument) as raised:
        case_from_json(document)
    assert raised.value.where == where


def add(xs: Any, meta: Meta, generator: torch.Generator, bias: Any) -> torch.Tensor:
    total: torch.Tensor = sum(x * meta.mode.value for x in xs)
    noise = torch.rand(4, generator=generator, device=xs[0].device)
    return (total + noise).to(meta.dtype)


def forgets_the_mode(xs: Any, meta: Meta, generator: torch.Generator, bias: Any) -> torch.Tensor:
    return add(xs, Meta(meta.lens, Mode.ADD), generator, bias)


def judge(function: Any) -> Judgement:
    target = kcheck.target(cases=st.nothing(), oracle=add)(function)
    lens = Tensor("int32", Layout((Dim(3),)))
    xs = [Tensor("float32", NARROWED), Tensor("float32", NARROWED)]
    case = Case(xs=xs, meta=Meta(lens, Mode.SUBTRACT), generator=GeneratorValue(5), bias=None)
    return Judge(open_backend("interpret")).judge(target, case)


def test_the_oracle_gets_the_same_values_and_a_generator_of_its_own() -> None:
    assert judge(add).verdict is CaseVerdict.MATCH
    assert [finding.kind for finding in judge(forgets_the_mode).findings] == [Kind.VALUE_MISMATCH]


@settings(deadline=None)
@given(st.data())
def test_strategies_of_host_tensors_and_generators(data: st.DataObject) -> None:
    lens = data.draw(ks.host(ks.tensors((3,), "int32")))
    assert lens.host
    assert lens.shape == (3,)
    first, second = data.draw(ks.generators()), data.draw(ks.generators())
    assert first != second
