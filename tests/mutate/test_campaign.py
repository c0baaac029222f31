"""What becomes of mutants, in real workers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import choose
from kcheck.errors import CouldNotCheck
from kcheck.events import CaseVerdict
from kcheck.findings import Kind
from kcheck.layout import LayoutKind
from kcheck.mutate.campaign import Limits, MutantCampaign, attempt
from kcheck.mutate.mutants import mutants
from kcheck.mutate.reach import reached
from kcheck.mutation import Edit, Fate, Mutant, Mutation, MutationScore
from kcheck.plan import Plan

FILE = Path(__file__).with_name("scaled_rows.py")


@cache
def scored(client: Client, name: str) -> MutationScore:
    (one,) = loader.load(f"{FILE}::{name}")
    return MutantCampaign(one, [client], Limits(cases=16)).run()


def test_the_founding_bug_is_a_mutant_and_is_killed(client: Client) -> None:
    (one,) = loader.load("builtin:paged_gather")
    (founding,) = [
        mutant
        for mutant in mutants(reached(one.target, ["_paged_gather_kernel"]))
        if mutant.operator == "stride → shape" and "table_request_stride" in mutant.before[0]
    ]
    narrowed = Plan(small=True, layouts={"block_table": LayoutKind.NARROWED})
    cases = choose.random_cases(one.target, narrowed, 4, 0)
    client.load(one.spec)
    result = attempt(one.spec, founding, cases, client)
    assert result.fate is Fate.KILLED
    assert result.kind in (Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_BOUNDS_READ)
    assert "block_table" in result.message
    assert client.judge(one.spec, cases[0]).verdict is CaseVerdict.MATCH  # the next worker runs the target itself


def test_cases_of_any_layout_kill_all_mutants_but_one_that_no_case_runs(client: Client) -> None:
    score = scored(client, "any_layout")
    (left,) = score.of(Fate.SURVIVED)
    assert left.mutant.after == ("x = x",)
    assert not left.ran
    assert score.score == score.killed / (score.killed + 1)
    assert not score.interrupted
    assert score.made == len(score.results)


def test_dense_cases_let_wrong_strides_survive(client: Client) -> None:
    score = scored(client, "dense_only")
    survived = {(one.mutant.operator, " ".join(one.mutant.after)) for one in score.of(Fate.SURVIVED) if one.ran}
    launch = "scale_kernel[grid](out, x, columns, out.stride(0), x.shape[1:].numel(), x.stride(1), BLOCK=16)"
    assert ("stride → shape", launch) in survived
    assert {operator for operator, _ in survived} == {"stride → shape", "stride dropped"}


def test_the_score_as_json(client: Client) -> None:
    score = scored(client, "dense_only")
    document = json.loads(json.dumps(score.to_json()))
    assert document["schema"] == "kcheck.mutants/1"
    assert document["counts"]["killed"] + document["counts"]["survived"] == score.judged
    assert len(document["mutants"]) == document["made"]
    assert {"operator", "file", "line", "before", "after", "fate"} <= document["mutants"][0].keys()


def test_a_mutant_that_cannot_run_is_invalid(client: Client) -> None:
    (one,) = loader.load(f"{FILE}::any_layout")
    text = FILE.read_bytes()
    at = text.index(b"value * 2")
    for instead in ("value * (", "value + undefined_name"):
        change = Mutation("scaled_rows", "doubled", (Edit(at, at + 9, instead),))
        mutant = Mutant("by hand", change, change, str(FILE), 1, ("",), ("",))
        client.load(one.spec)
        result = attempt(one.spec, mutant, choose.random_cases(one.target, Plan(small=True), 3, 0), client)
        assert result.fate is Fate.INVALID
        assert result.kind or result.message.startswith("does not compile or always raises: ")
        assert "interpreter" not in result.message


@pytest.mark.parametrize(
    ("name", "says"),
    [("wrong_oracle", "itself shows value-mismatch"), ("no_kernel", "no mutant of no_kernel can be made")],
)
def test_a_target_that_proves_nothing_could_not_be_checked(client: Client, name: str, says: str) -> None:
    (one,) = loader.load(f"{FILE}::{name}")
    with pytest.raises(CouldNotCheck, match=says):
        MutantCampaign(one, [client], Limits(cases=3)).run()
