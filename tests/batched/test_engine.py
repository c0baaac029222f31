"""What the batched engine runs, what it leaves to the sequential one, and that nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import torch

from kcheck.findings import Kind
from kcheck.worker.backends.base import Conditions, DeviceAssertFailed, Region, Watch
from kcheck.worker.backends.batched import engine, memory, record
from kcheck.worker.backends.interpret import InterpretBackend


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def watched(launch: Callable[[], object], name: str = "batched", **tensors: torch.Tensor) -> Watch:
    with InterpretBackend(engine=name).watch([Region(key, value, True) for key, value in tensors.items()]) as watch:
        launch()
    return watch


def test_programs_that_leave_a_while_loop_at_different_times(kernels: Any, together: list[bool]) -> None:
    x = torch.randint(1, 200, (100,), dtype=torch.int32)
    o = torch.full((100,), -1, dtype=torch.int32)
    watched(lambda: kernels.collatz[(110,)](x, o, 90), x=x, o=o)

    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            count += 1
        return count

    assert o[:90].tolist() == [steps(int(v)) for v in x[:90]]
    assert (o[90:] == -1).all()
    assert together == [True]


def test_helpers_return_from_their_branches(kernels: Any, together: list[bool]) -> None:
    x, o = torch.randint(-3, 8, (64,), dtype=torch.int32), torch.zeros(64, 4)
    watched(lambda: kernels.helpers_that_part[(64,)](x, o, B=4), x=x, o=o)
    expected = []
    for i, v in enumerate(x.tolist()):
        a, b = (v * 2, 0) if v < 0 else (v + 100 * (v > 3),) * 2
        for turn in range(i % 3):
            b += turn
            a -= turn == 1
        expected.append(a + b)
    assert o[:, 0].tolist() == expected
    assert together == [True]


def test_ragged_loops(kernels: Any, together: list[bool]) -> None:
    lengths = torch.randint(0, 60, (40,))
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(torch.int32)
    x, o = torch.randn(int(starts[-1])), torch.zeros(40)
    watched(lambda: kernels.ragged_sums[(40,)](x, starts, o, B=16), x=x, starts=starts, o=o)
    expected = torch.stack([part.sum() for part in torch.split(x, lengths.tolist())])
    torch.testing.assert_close(o, expected)
    assert together == [True]


def test_atomics_take_effect_in_the_order_of_programs(kernels: Any, together: list[bool]) -> None:
    counter, most = torch.zeros(1, dtype=torch.int32), torch.full((3,), -1, dtype=torch.int32)
    o = torch.zeros(50, dtype=torch.int32)
    watched(lambda: kernels.tickets[(50,)](counter, o, most), counter=counter, o=o, most=most)
    assert o.tolist() == list(range(50))
    assert counter.item() == 50
    assert most.tolist() == [48, 49, 47]
    assert together == [True]


def test_float_atomics_round_as_one_after_the_other(kernels: Any, together: list[bool]) -> None:
    x, o, expected = torch.randn(40, 8), torch.zeros(8), torch.zeros(8)
    watched(lambda: kernels.float_sums[(40,)](x, o, B=8), x=x, o=o)
    for row in x:
        expected += row
    assert torch.equal(o, expected)
    assert together == [True]


def test_a_program_may_read_what_it_writes(kernels: Any, together: list[bool]) -> None:
    x = torch.zeros(100)
    watched(lambda: kernels.in_place[(13,)](x, 100, B=8), x=x)
    assert (x == 1).all()
    assert together == [True]


@pytest.mark.parametrize("programs", [1, engine.MIN_PROGRAMS - 1, engine.MIN_PROGRAMS, 100])
def test_small_launches_run_one_after_the_other(kernels: Any, together: list[bool], programs: int) -> None:
    x = torch.zeros(programs * 8)
    watch = watched(lambda: kernels.in_place[(programs,)](x, len(x), B=8), "auto", x=x)
    assert (x == 1).all()
    assert together == [programs >= engine.MIN_PROGRAMS]
    assert not watch.sequential
    assert watch.launches[0].programs == programs


def test_races_are_found_all_the_same(kernels: Any, together: list[bool]) -> None:
    x = torch.randn(64)
    watch = watched(lambda: kernels.shift_left[(8,)](x, 64, B=8), x=x)
    assert [hazard.kind for hazard in watch.hazards] == [Kind.RACE]
    o = torch.zeros(1)
    watch = watched(lambda: kernels.same_value_everywhere[(9,)](o), o=o)
    assert [(hazard.kind, hazard.changed) for hazard in watch.hazards] == [(Kind.RACE, False)]
    o, flag = torch.zeros(9, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    watch = watched(lambda: kernels.one_writes_all_read[(9,)](o, flag), o=o, flag=flag)
    assert [hazard.kind for hazard in watch.hazards] == [Kind.RACE]
    assert together == [False] * 3


def test_a_stray_access_is_reported_as_ever(kernels: Any, together: list[bool]) -> None:
    pool, o = torch.randn(20, 16), torch.zeros(10, 8)
    views = dict.fromkeys(("sequential", "batched"), pool[:10, :8])
    faults = {}
    for name, x in views.items():
        watch = watched(lambda x=x: kernels.out_of_view[(10,)](x, o, 15, B=8), name, x=x, o=o)  # type: ignore[misc]
        faults[name] = watch.faults
    assert faults["batched"] == faults["sequential"]
    (fault,) = faults["batched"]
    assert fault.argument == "x"
    assert fault.program == (1, 0, 0)
    assert fault.index == (0, 15)  # row 1 is read from element 15 on: one element in the gap behind row 0
    assert together == [False]


def test_what_was_written_before_a_fault_is_undone(kernels: Any, together: list[bool]) -> None:
    x, o = torch.randn(39 * 8 + 4), torch.full((40, 8), 7.0)
    seen: list[torch.Tensor] = []
    undo_all = memory.Memory.undo

    def undo(self: Any) -> None:
        assert (o[:30] != 7).all()  # there was something to undo
        undo_all(self)
        seen.append(o.clone())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory.Memory, "undo", undo)
        watched(lambda: kernels.late_fault[(40,)](x, o, 8, B=8), x=x, o=o)
    assert (seen[0] == 7).all()
    assert torch.equal(o[:39].flatten(), x[: 39 * 8])
    assert together == [False]


def test_a_wrapped_offset_is_a_finding(kernels: Any, together: list[bool]) -> None:
    x, o = torch.randn(12), torch.zeros(12)
    watched(lambda: kernels.wraps_on_the_way[(12,)](x, o, 60_000), x=x, o=o)  # only program 0, whose offset is 0
    assert together == [False]
    watched(lambda: kernels.wraps_on_the_way[(12,)](x, o, 6), x=x, o=o)
    assert together == [False, True]


def test_the_feature_that_is_missing_is_named(kernels: Any, together: list[bool], capsys: Any) -> None:
    o = torch.zeros(9, dtype=torch.int32)
    watch = watched(lambda: kernels.prints[(9,)](o), o=o)
    assert watch.sequential == {"prints": "tl.device_print"}
    assert o.tolist() == list(range(9))
    assert capsys.readouterr().out.count("here") == 9
    assert together == [False]


def test_a_variable_that_only_some_programs_have(kernels: Any, together: list[bool]) -> None:
    x, o = torch.randn(10), torch.zeros(10)
    watched(lambda: kernels.assigned_by_some[(10,)](x, o), x=x, o=o)
    assert torch.equal(o[::2], x[::2])
    assert (o[1::2] == 0).all()


def test_fewer_programs_run_at_a_time_where_their_blocks_are_wide(
    kernels: Any, together: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first try wrote is undone: nothing is added twice."""
    monkeypatch.setattr(engine, "_LANES", 1 << 12)
    monkeypatch.setattr(engine, "_widths", WeakKeyDictionary())
    chunks: list[object] = []
    begin = record.Record.begin_chunk

    def begun(self: Any) -> None:
        chunks.append(self)
        begin(self)

    monkeypatch.setattr(record.Record, "begin_chunk", begun)
    starts = torch.arange(0, 301 * 64, 64, dtype=torch.int32)
    x, o, counted = torch.ones(300 * 64), torch.zeros(300), torch.zeros(1, dtype=torch.int32)
    watched(lambda: kernels.counts_then_sums[(300,)](x, starts, o, counted, B=64), x=x, starts=starts, o=o, c=counted)
    assert (o == 64).all()
    assert counted.item() == 300
    assert together == [True]
    assert len(chunks) == 1 + 5  # all at once, then 64 at a time


def test_a_failed_assertion_is_the_kernels(kernels: Any) -> None:
    x = torch.arange(10, dtype=torch.int32)
    with pytest.raises(DeviceAssertFailed, match="too large"):
        watched(lambda: kernels.asserts[(10,)](x), x=x)


def test_memory_without_a_value(kernels: Any, together: list[bool]) -> None:
    """Poison that is read is a finding, whether the launch before ran here or there."""
    x = torch.zeros(64, dtype=torch.int32)
    x.view(torch.uint8).fill_(0xA5)
    regions = [Region("x", x, True, valueless=True)]
    with InterpretBackend(engine="batched").watch(regions, conditions=Conditions(0xA5)) as watch:
        kernels.in_place[(8,)](x, 64, B=8)
    assert [hazard.kind for hazard in watch.hazards] == [Kind.UNINITIALIZED_READ]
    o = torch.zeros(64)
    o.view(torch.uint8).fill_(0xA5)
    value = o[0].item()
    regions = [Region("x", torch.full((64,), value), False), Region("o", o, True, valueless=True)]
    with InterpretBackend(engine="batched").watch(regions, conditions=Conditions(0xA5)) as watch:
        kernels.out_of_view[(8,)](regions[0].tensor, o, 8, B=8)  # writes what looks like poison
        kernels.in_place[(8,)](o, 64, B=8)
    assert not watch.hazards
    assert not watch.faults
    assert together == [False, True, True]
    assert (o == value + 1).all()
