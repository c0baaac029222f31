"""Races, reads of nothing, lost stores and wrapped offsets: as a plain model says, and silent where order is made."""

from __future__ import annotations

import gc
import weakref
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcheck.findings import Kind
from kcheck.worker.backends.base import Conditions, ProgramOrder, Region, Watch
from kcheck.worker.backends.interpret import InterpretBackend

POISON = 0xA5
ORDERS: list[ProgramOrder] = ["forward", "reverse", "shuffled"]
CELLS, LANES = 12, 4


def watched(
    launch: Any, order: ProgramOrder = "forward", *, stale: tuple[str, int] | None = None, **tensors: torch.Tensor
) -> Watch:
    regions = [Region(name, tensor, True, name == "blank") for name, tensor in tensors.items()]
    conditions = Conditions(poison=POISON, stale=stale)
    with InterpretBackend().watch(regions, order=order, conditions=conditions) as watch:
        launch()
    assert not watch.faults
    assert not watch.gaps
    return watch


def kinds(watch: Watch) -> list[Kind]:
    return [hazard.kind for hazard in watch.hazards]


def int32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


places = st.lists(st.integers(-1, CELLS - 1), min_size=LANES, max_size=LANES)


@given(st.lists(st.tuples(places, places), min_size=1, max_size=4), st.sampled_from(ORDERS))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_races_are_those_of_a_model(
    hazards: Any, programs: list[tuple[list[int], list[int]]], order: ProgramOrder
) -> None:
    reads = [{place for place in read if place >= 0} for read, _ in programs]
    writes = [{place for place in write if place >= 0} for _, write in programs]
    pairs = list(permutations(range(len(programs)), 2))
    both = {place for one, other in pairs for place in writes[one] & writes[other]}
    mixed = {place for one, other in pairs for place in reads[one] & writes[other]}
    x, out = torch.zeros(CELLS, dtype=torch.int32), torch.zeros(len(programs) * LANES, dtype=torch.int32)
    tables = [torch.tensor([row[i] for row in programs], dtype=torch.int64) for i in (0, 1)]
    values = torch.arange(1, len(programs) * LANES + 1, dtype=torch.int32)
    watch = watched(lambda: hazards.visit[(len(programs),)](x, *tables, values, out, LANES=LANES), order, x=x, out=out)
    found: dict[frozenset[str], set[int]] = {frozenset({"write"}): set(), frozenset({"read", "write"}): set()}
    for hazard in watch.hazards:
        if hazard.kind is Kind.RACE:
            assert hazard.argument == "x"
            found[frozenset(side.access for side in hazard.sides)] |= set((hazard.offsets // 4).tolist())
    assert found[frozenset({"write"})] == both
    assert found[frozenset({"read", "write"})] == mixed
    lost = {place for _, write in programs for place in write if place >= 0 and write.count(place) > 1}
    conflicts = [hazard for hazard in watch.hazards if hazard.kind is Kind.SCATTER_CONFLICT]
    assert {place for hazard in conflicts for place in (hazard.offsets // 4).tolist()} == lost


@pytest.mark.parametrize("order", ORDERS)
def test_an_acquire_of_what_was_released_orders(hazards: Any, order: ProgramOrder) -> None:
    def races(sem: str, claim: bool) -> list[Kind]:
        x, flag, out = int32(0), torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
        return kinds(
            watched(lambda: hazards.hand_over[(3,)](x, flag, out, SEM=sem, CLAIM=claim), order, x=x, flag=flag, out=out)
        )

    assert races("relaxed", True) == [Kind.RACE]
    assert races("acq_rel", False) == [Kind.RACE]  # another address: nothing is handed over
    assert races("acq_rel", True) == ([] if order == "forward" else [Kind.RACE])  # who runs first cannot have seen it


@pytest.mark.parametrize("meets", [True, False])
def test_bytes_count_not_elements(hazards: Any, meets: bool) -> None:
    x, out = torch.zeros(2, dtype=torch.int32), int32(0)
    watch = watched(lambda: hazards.halves[(2,)](x, out, WIDE=meets), x=x, out=out)
    assert kinds(watch) == ([Kind.RACE] if meets else [])


def test_a_volatile_read_is_no_race(hazards: Any) -> None:
    flag, out = int32(0), int32(0)
    assert not watched(lambda: hazards.volatile_flag[(2,)](flag, out), flag=flag, out=out).hazards


def test_one_program_and_one_launch_after_the_other_do_not_race(hazards: Any) -> None:
    x = torch.zeros(8, dtype=torch.int32)

    def launch() -> None:
        for _ in range(3):
            hazards.two_sizes[(1,)](x, 8, BLOCK=8)

    assert not watched(launch, x=x).hazards


def test_a_stale_read_yields_what_was_there_before_the_launch(hazards: Any) -> None:
    x, out = int32(5), torch.zeros(8, dtype=torch.int32)
    reads = torch.tensor([[-1] * 4, [0, -1, -1, -1]])
    writes = torch.tensor([[0, -1, -1, -1], [-1] * 4])
    values = torch.full((8,), 9, dtype=torch.int32)

    def run(stale: tuple[str, int] | None) -> Watch:
        x.fill_(5)
        return watched(lambda: hazards.visit[(2,)](x, reads, writes, values, out, LANES=4), stale=stale, x=x, out=out)

    (race,) = run(None).hazards
    assert out[4] == 9
    (line,) = {(side.frame.file, side.frame.line) for side in race.sides if side.access == "read"}
    run(line)
    assert out[4] == 5
    run((line[0], line[1] + 1))  # another line
    assert out[4] == 9


@pytest.mark.parametrize("made", [False, True])
def test_a_read_of_poison_that_nobody_wrote(hazards: Any, made: bool) -> None:
    blank, out = torch.full((CELLS,), 1, dtype=torch.int32), torch.zeros(LANES, dtype=torch.int32)
    blank[:3].view(torch.uint8).fill_(POISON)
    reads, writes = torch.tensor([0, 1, 5, -1]), torch.tensor([-1] * 4)
    given: dict[str, Any] = {"out": out} if made else {"blank": blank, "out": out}
    values = torch.zeros(4, dtype=torch.int32)
    watch = watched(lambda: hazards.visit[(1,)](blank, reads, writes, values, out, LANES=LANES), **given)
    (hazard,) = watch.hazards
    # Element 5 holds a value; that nobody is known to have written it is no proof.
    assert (hazard.kind, hazard.offsets.tolist(), hazard.lanes) == (Kind.UNINITIALIZED_READ, [0, 4], 2)
    assert (hazard.argument, hazard.scratch) == (("x", True) if made else ("blank", False))


def test_what_the_kernel_wrote_itself_is_initialised(hazards: Any) -> None:
    blank, out = torch.empty(CELLS, dtype=torch.int32), torch.zeros(LANES, dtype=torch.int32)
    blank.view(torch.uint8).fill_(POISON)
    poisoned = torch.full((LANES,), blank[0].item(), dtype=torch.int32)
    nothing, some = torch.tensor([-1] * 4), torch.tensor([0, 1, 2, 3])

    def launch() -> None:
        hazards.visit[(1,)](blank, nothing, some, poisoned, out, LANES=LANES)
        hazards.visit[(1,)](blank, some, nothing, poisoned, out, LANES=LANES)

    assert not watched(launch, blank=blank, poisoned=poisoned, out=out).hazards


def test_arithmetic_that_comes_back_is_no_overflow(hazards: Any) -> None:
    x, out = int32(3), torch.zeros(8)
    assert not watched(lambda: hazards.keeps_sum[(1,)](x, out), x=x, out=out).hazards
    assert out[3] == 1


def test_a_sum_that_wraps_into_the_view_is_an_overflow(hazards: Any) -> None:
    x, out = torch.arange(8, dtype=torch.int32), int32(0)
    where = int32(-(2**31), -(2**31) + 2)
    (hazard,) = watched(lambda: hazards.adds_up[(1,)](x, out, where), x=x, out=out, where=where).hazards
    assert (hazard.kind, hazard.argument, hazard.index) == (Kind.OFFSET_OVERFLOW, "x", (2,))
    assert hazard.exact == 4 * (2 - 2**32)
    assert hazard.cause is not None
    assert hazard.cause.source.startswith("tl.store(out, tl.load(x + (")


def test_nothing_is_held_after_a_watch(hazards: Any) -> None:
    def use(array: np.ndarray[Any, Any]) -> weakref.ref[np.ndarray[Any, Any]]:
        x = torch.from_numpy(array)
        watched(lambda: hazards.two_sizes[(1,)](x, 8, BLOCK=8), x=x)
        watched(lambda: hazards.two_sizes[(1,)](x, 8, BLOCK=8))  # here x is the target's own
        return weakref.ref(array)

    alive = use(np.zeros(1 << 16, np.int32))
    gc.collect()
    assert alive() is None


def test_types_are_made_once(hazards: Any) -> None:
    from kcheck.worker.backends.interpret import types

    def launch() -> None:
        hazards.two_sizes[(1,)](torch.zeros(8, dtype=torch.int32), 8, BLOCK=8)

    watched(launch)
    before = len(types._block_types)
    for _ in range(5):
        watched(launch)
    assert len(types._block_types) == before
