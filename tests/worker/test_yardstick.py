"""What results are held against, and how far they may be off, for a test outside of kcheck."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import torch
from hypothesis import find, settings

from kcheck import Case, loader
from kcheck.case import Role, Tensor
from kcheck.client import Client
from kcheck.fill import Fill
from kcheck.layout import Dim, Layout
from kcheck.protocol import Held
from kcheck.worker.arena import dense_values
from kcheck.worker.compare import TOLERANCES

HERE = Path(__file__).parent.parent
KERNELS, OWN = HERE / "kernels", HERE / "emit" / "emitted_kernels.py"


def held(client: Client, spec: str, case: Case | None = None) -> dict[str, Held]:
    (loaded,) = loader.load(spec)
    client.load(spec)
    quick = settings(database=None, max_examples=10)
    first: Any = case or find(loaded.target.cases, lambda _: True, random=Random(0), settings=quick)
    answer = client.yardstick(spec, first)
    assert not answer.problem
    return {one.actual: one for one in answer.results}


def test_names_of_what_is_returned_and_of_what_the_oracle_returns(client: Client) -> None:
    found = held(client, f"{OWN}::nested_fixed")
    assert {name: one.expected for name, one in found.items()} == {
        "return['rows']": "return[0]",
        "return['sums']": "return[1]",
    }
    assert found["return['rows']"].same_dtype
    assert found["return['sums']"].dtype == "float64"
    assert not found["return['sums']"].same_dtype


def test_an_oracle_that_writes_its_own_outputs(client: Client) -> None:
    (one,) = held(client, f"{OWN}::in_place_fixed").values()
    assert (one.actual, one.expected) == ("x", "x")


def test_without_an_oracle_a_result_is_held_against_itself(client: Client) -> None:
    found = held(client, f"{OWN}::without_oracle_fixed")
    assert all(one.actual == one.expected for one in found.values())


def test_a_target_that_always_raises_is_told_by_its_oracle(client: Client) -> None:
    found = held(client, f"{OWN}::always_raises")
    assert {name: one.expected for name, one in found.items()} == {"return[0]": "return[0]", "return[1]": "return[1]"}


def test_exact_means_no_tolerance(client: Client) -> None:
    (one,) = held(client, "builtin:paged_gather").values()
    assert (one.rtol, one.atol) == (0.0, 0.0)


def test_the_tolerance_covers_another_order_of_summation(client: Client) -> None:
    case = Case(x=Tensor("float32", Layout((Dim(700),)), Fill(seed=3, exponent=6), Role.INPUT))
    (one,) = held(client, f"{KERNELS / 'rounding.py'}::sequential_sum", case).values()
    values = dense_values(case)["x"]
    total = torch.zeros(())
    for value in values:
        total += value
    rtol, atol = TOLERANCES[torch.float32]
    assert one.rtol == rtol
    assert one.atol > atol
    torch.testing.assert_close(total, values.sum(), rtol=one.rtol, atol=one.atol)
    assert one.atol < 0.05 * float(values.abs().sum())  # and no more than that


def test_a_failing_oracle_is_a_problem_not_an_answer(client: Client) -> None:
    spec = f"{KERNELS / 'oracle_raises.py'}::wrong"
    (loaded,) = loader.load(spec)
    client.load(spec)
    case = find(loaded.target.cases, lambda _: True, random=Random(0), settings=settings(database=None))
    assert "the oracle raised KeyError" in client.yardstick(spec, case).problem
