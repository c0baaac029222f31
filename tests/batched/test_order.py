"""A result that hangs on the order of programs is found, whatever the order is about; others are not blamed."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

import kcheck
from kcheck.case import Case, Tensor
from kcheck.events import CaseVerdict
from kcheck.fill import Fill
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.protocol import Judgement
from kcheck.worker.backends.base import Region
from kcheck.worker.backends.batched import engine
from kcheck.worker.backends.interpret import InterpretBackend
from kcheck.worker.judge import Judge

PROGRAMS = 20


def judged(kernel: Any, oracle: Any, programs: int = PROGRAMS, name: str = "auto") -> Judgement:
    def call(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(1, dtype=torch.int32)
        kernel[(programs,)](out, x)
        return out

    target = kcheck.target(cases=st.nothing(), oracle=oracle)(call)
    return Judge(InterpretBackend(engine=name)).judge(
        target, Case(x=Tensor("int32", Layout((Dim(programs),)), Fill(low=1, high=99)))
    )


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum(0, keepdim=True).to(torch.int32)


def first(x: torch.Tensor) -> torch.Tensor:
    return x[:1]


def largest(x: torch.Tensor) -> torch.Tensor:
    return x.max().clamp(min=0).reshape(1)


@pytest.mark.parametrize("programs", [PROGRAMS, 3 * engine.RESIDENT])
@pytest.mark.parametrize("name", ["counts_in_two_steps", "lost_behind_a_branch", "first_that_came"])
def test_what_hangs_on_the_order_is_found(order_kernels: Any, name: str, programs: int) -> None:
    oracle = first if name == "first_that_came" else total
    judgement = judged(getattr(order_kernels, name), oracle, programs)
    assert judgement.verdict is CaseVerdict.FINDINGS
    assert {finding.kind for finding in judgement.findings} <= {Kind.NONDETERMINISM, Kind.VALUE_MISMATCH}


@pytest.mark.parametrize("programs", [PROGRAMS, 3 * engine.RESIDENT])
@pytest.mark.parametrize("name", ["counts_in_one_step", "counts_by_swapping", "smallest_that_came"])
def test_what_does_not_is_silent(order_kernels: Any, name: str, programs: int) -> None:
    oracle = largest if name == "smallest_that_came" else total
    assert judged(getattr(order_kernels, name), oracle, programs).verdict is CaseVerdict.MATCH


def test_only_programs_side_by_side_show_a_lost_step(order_kernels: Any) -> None:
    """One after the other, in any order, nothing comes between."""
    kernel = order_kernels.counts_in_two_steps
    assert judged(kernel, total, name="sequential").verdict is CaseVerdict.MATCH
    (finding,) = judged(kernel, total).findings
    assert finding.kind is Kind.NONDETERMINISM
    assert "order in which programs run" in finding.message


def launched(kernel: Any, order: Any, programs: int, *extra: torch.Tensor, name: str = "batched") -> torch.Tensor:
    out = torch.full((1,), -1, dtype=torch.int32)
    regions = [Region(f"t{at}", tensor, True) for at, tensor in enumerate((out, *extra))]
    with InterpretBackend(engine=name).watch(regions, order=order) as watch:
        kernel[(programs,)](out, *extra)
    assert not watch.faults
    assert not watch.hazards
    return out


@pytest.mark.parametrize("programs", [9, 200])
def test_turns_change_from_one_atomic_to_the_next(order_kernels: Any, programs: int) -> None:
    """Tickets in one order, stores in the other; forwards nothing but the order of the sequential engine is run."""
    for order, ends_as in (("forward", programs - 1), ("reverse", None)):
        out = launched(order_kernels.last_ticket_stays, order, programs, torch.zeros(1, dtype=torch.int32))
        assert (out.item() == programs - 1) is (ends_as is not None)
        out = launched(order_kernels.highest_ticket_stays, order, programs, torch.zeros(1, dtype=torch.int32))
        assert out.item() == programs - 1


def test_no_more_programs_take_turns_than_run_side_by_side(order_kernels: Any) -> None:
    """Of each chunk one step is left."""
    ones = torch.ones(4 * engine.RESIDENT, dtype=torch.int32)
    for programs, left in ((10, 1), (engine.RESIDENT, 1), (4 * engine.RESIDENT, 4)):
        out = launched(order_kernels.counts_in_two_steps, "reverse", programs, ones)
        assert out.item() == -1 + left


def test_programs_that_wait_are_noticed(order_kernels: Any) -> None:
    """No program goes on before another one has come, which one after the other none can."""
    flags, out = torch.zeros(40, dtype=torch.int32), torch.zeros(40, dtype=torch.int32)
    regions = [Region("flags", flags, True), Region("out", out, True)]
    began = time.perf_counter()
    with InterpretBackend(engine="batched").watch(regions, order="reverse") as watch:
        order_kernels.waits_for_a_neighbour[(40,)](flags, out)
    assert not watch.sequential  # side by side they need not wait
    assert (out == 1).all()
    flags.zero_()
    lock, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    regions = [Region("lock", lock, True), Region("out", out, True)]
    with InterpretBackend(engine="batched").watch(regions, order="reverse") as watch:
        order_kernels.guarded_by_a_lock[(40,)](lock, out)  # who has the lock stands behind those who wait for it
    assert list(watch.sequential.values()) == ["a while loop of many turns that may wait for another program"]
    assert out.item() == 40
    assert time.perf_counter() - began < 5
