"""What the view check reports on kernels before a fix, and that it is silent after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from kcheck.worker.backends.base import CompileFailed, Fault, Place, Region, Watch
from kcheck.worker.backends.interpret import InterpretBackend


def _watch(
    *, read_only: Sequence[str] = (), spans: Sequence[tuple[int, int]] = (), seed: int = 0, **tensors: torch.Tensor
) -> Any:
    regions = [Region(name, tensor, name not in read_only) for name, tensor in tensors.items()]
    return InterpretBackend().watch(regions, spans=spans, decoy_seed=seed)


def _only(watch: Watch) -> Fault:
    assert len(watch.faults) == 1, watch.faults
    assert not watch.gaps
    return watch.faults[0]


def _whole(tensor: torch.Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


@pytest.mark.parametrize("fixed", [True, False])
def test_row_stride_of_a_narrowed_table(bugs: Any, fixed: bool) -> None:
    backing = torch.full((4, 8), 99, dtype=torch.int32)
    backing[:, :3] = torch.randint(0, 10, (4, 3), dtype=torch.int32)
    table, pool, out = backing[:, :3], torch.randn(10, 8), torch.zeros(4, 3, 8)
    with _watch(out=out, pool=pool, table=table) as watch:
        bugs.run_gather(out, pool, table, fixed=fixed)
    if fixed:
        assert not watch.faults
        assert torch.equal(out, pool[table.long()])
        return
    fault = _only(watch)
    assert (fault.access, fault.place, fault.argument, fault.parameter) == ("read", Place.GAP, "table", "table")
    assert (fault.kernel, fault.frame.function) == ("gather_rows", "gather_rows")
    assert fault.frame.source == "block = tl.load(table + row * table_stride + page)"
    assert fault.frame.file.endswith("bug_kernels.py")
    assert fault.chain == (fault.frame,)
    # Program (1, 0) reads element 3 of the backing, one past the first row.
    assert (fault.index, fault.byte_offset, fault.between) == ((0, 3), 12, False)
    # x runs fastest: 3, 6, 9 are read by (1..3, 0); of 3 r + p only 0, 1, 2, 8, 9, 10 lie in the view.
    assert fault.program == (1, 0, 0)
    outside = sum(3 * r + p not in (0, 1, 2, 8, 9, 10) for r in range(4) for p in range(3))
    assert (fault.lanes, fault.programs) == (outside, outside)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("padding", [0, 100])
def test_store_past_the_tail(bugs: Any, fixed: bool, padding: int) -> None:
    x, backing = torch.randn(13), torch.zeros(13 + padding)
    out = backing[:13]
    with _watch(x=x, out=out) as watch:
        bugs.run_double(x, out, fixed=fixed)
    assert torch.equal(out, x * 2)
    assert torch.equal(backing[13:], torch.zeros(padding))
    if fixed:
        assert not watch.faults
        return
    fault = _only(watch)
    assert (fault.access, fault.place) == ("write", Place.GAP if padding else Place.OUTSIDE)
    assert (fault.index, fault.byte_offset, fault.lanes, fault.programs) == ((13,), 52, 3, 1)
    assert fault.program == (1, 0, 0)


@pytest.mark.parametrize("fixed", [True, False])
def test_page_stride_of_an_interleaved_pool(bugs: Any, fixed: bool) -> None:
    pool = torch.randn(5, 2, 8)
    k, v = pool.unbind(1)
    out = torch.zeros(5)
    with _watch(k=k, v=v, out=out) as watch:
        bugs.run_sum_pages(out, k, fixed=fixed)
    if fixed:
        assert not watch.faults
        torch.testing.assert_close(out, k.sum(1))
        return
    fault = _only(watch)
    assert (fault.argument, fault.place, fault.index) == ("k", Place.GAP, (0, 8))
    assert (fault.landed, fault.landed_index) == ("v", (0, 0))
    assert (fault.lanes, fault.programs) == (16, 2)


def test_slices_of_a_region_may_be_walked(bugs: Any) -> None:
    pool = torch.randn(5, 2, 8)
    k, v = pool.unbind(1)
    out = torch.zeros(3)
    with _watch(k=k, v=v, out=out) as watch:
        bugs.sum_pages[(3,)](out, v[2:3], v.stride(0), SIZE=8)
    assert not watch.faults
    torch.testing.assert_close(out, v[2:].sum(1))


def test_access_that_lands_in_another_tensor(bugs: Any) -> None:
    storage = torch.arange(16.0)
    x, y, out = storage[:8], storage[8:], torch.zeros(8)
    with _watch(x=x, y=y, out=out) as watch:
        bugs.shift[(1,)](x, out, 8, 3, BLOCK=8)
    fault = _only(watch)
    assert (fault.argument, fault.index, fault.landed, fault.landed_index) == ("x", (8,), "y", (0,))
    assert fault.lanes == 3
    # y's values must not be taken for x's.
    assert out[:5].tolist() == [3, 4, 5, 6, 7]
    assert all(-1 <= value <= 1 for value in out[5:].tolist())


def test_landing_in_another_allocation_keeps_its_provenance(bugs: Any) -> None:
    x, y, out = torch.randn(8), torch.randn(8), torch.zeros(8)
    distance = (y.data_ptr() - x.data_ptr()) // 4
    with _watch(x=x, y=y, out=out) as watch:
        bugs.shift[(1,)](x, out, 8, distance, BLOCK=8)
    fault = _only(watch)
    assert (fault.argument, fault.place, fault.landed, fault.landed_index) == ("x", Place.OUTSIDE, "y", (0,))
    assert (fault.index, fault.byte_offset) == ((distance,), 4 * distance)


@pytest.mark.parametrize("slack", [0, 2])
def test_pointer_table(bugs: Any, slack: int) -> None:
    backing = torch.randn(3, 10)
    rows, out = backing[:, :8], torch.zeros(3)
    with _watch(rows=rows, out=out) as watch:
        pointers = torch.tensor([row.data_ptr() for row in rows])
        bugs.sum_tables[(3,)](pointers, out, 8 + slack, BLOCK=16)
    if not slack:
        assert not watch.faults
        torch.testing.assert_close(out, rows.sum(1))
        return
    fault = _only(watch)
    assert (fault.argument, fault.parameter, fault.place) == ("", "", Place.GAP)
    assert (fault.index, fault.lanes, fault.programs) == ((), 6, 3)


def test_pointer_table_of_tensors_that_the_wrapper_made(bugs: Any) -> None:
    rows, out = [torch.randn(8) for _ in range(3)], torch.zeros(3)
    with _watch(out=out) as watch:
        pointers = torch.tensor([row.data_ptr() for row in rows])
        bugs.sum_tables[(3,)](pointers, out, 8, BLOCK=8)
    assert not watch.faults
    assert not watch.gaps
    torch.testing.assert_close(out, torch.stack(rows).sum(1))


def test_pointer_to_a_tensor_that_nobody_knows_is_a_gap_not_a_fault(bugs: Any) -> None:
    hidden, out = torch.ones(8), torch.zeros(1)
    address = hidden.data_ptr()
    with _watch(out=out) as watch:
        bugs.sum_tables[(1,)](torch.tensor([address]), out, 8, BLOCK=8)
    assert not watch.faults
    assert len(watch.gaps) == 1
    assert "sum_tables" in watch.gaps[0]


@pytest.mark.parametrize("slack", [0, 4])
def test_scratch_made_by_the_wrapper(bugs: Any, slack: int) -> None:
    x, out = torch.randn(12), torch.zeros(12)
    with _watch(x=x, out=out) as watch:
        bugs.run_two_steps(x, out, slack=slack)
    assert torch.equal(out, x * 2 + 1)
    if not slack:
        assert not watch.faults
        return
    fault = _only(watch)
    assert (fault.access, fault.argument, fault.parameter) == ("write", "scratch", "scratch")
    assert (fault.place, fault.index, fault.lanes) == (Place.OUTSIDE, (12,), 4)


def test_chain_of_helper_functions(bugs: Any) -> None:
    x, out = torch.randn(4, 8), torch.zeros(4)
    with _watch(x=x, out=out) as watch:
        bugs.row_totals[(4,)](x, out, 8, BLOCK=8)
        assert not watch.faults
        bugs.row_totals[(4,)](x, out, 9, BLOCK=8)
    fault = _only(watch)
    assert [frame.function for frame in fault.chain] == ["row_totals", "_row_total", "_read_row"]
    assert fault.frame == fault.chain[-1]
    assert fault.frame.source == "return tl.load(x + row * stride + offs)"
    assert fault.chain[0].source == "tl.store(out + row, _row_total(x, row, stride, BLOCK))"
    assert (fault.index, fault.program, fault.lanes, fault.programs) == ((4, 0), (3, 0, 0), 3, 1)


@pytest.mark.parametrize("stride", [1, 2])
def test_between_the_elements_of_a_stepped_view(bugs: Any, stride: int) -> None:
    x, out = torch.arange(32.0)[::2], torch.zeros(16)
    with _watch(x=x, out=out) as watch:
        bugs.copy_dense[(1,)](x, out, 16, stride, BLOCK=16)
    if stride == 2:
        assert not watch.faults
        assert torch.equal(out, x)
        return
    fault = _only(watch)
    assert (fault.index, fault.between, fault.byte_offset) == ((0,), True, 4)
    assert (fault.place, fault.lanes) == (Place.GAP, 8)


@pytest.mark.parametrize("clamp", [True, False])
def test_negative_index(bugs: Any, clamp: bool) -> None:
    backing = torch.arange(20.0)
    x, out = backing[10:18], torch.zeros(8)
    with _watch(x=x, out=out) as watch:
        bugs.previous[(1,)](x, out, 8, CLAMP=clamp, BLOCK=8)
    if clamp:
        assert not watch.faults
        assert out.tolist() == [0, *range(10, 17)]
        return
    fault = _only(watch)
    assert (fault.index, fault.byte_offset, fault.place, fault.lanes) == ((-1,), -4, Place.GAP, 1)


def test_write_to_a_read_only_argument_is_reported_and_done(bugs: Any) -> None:
    x = torch.ones(8)
    with _watch(read_only=["x"], x=x) as watch:
        bugs.clear[(2,)](x, 8, BLOCK=8)
    fault = _only(watch)
    assert (fault.access, fault.place, fault.argument, fault.index) == ("write", Place.READ_ONLY, "x", (0,))
    assert (fault.lanes, fault.programs, fault.landed) == (16, 2, "")
    assert torch.equal(x, torch.zeros(8))


def test_write_outside_a_read_only_argument_is_its_own_fault(bugs: Any) -> None:
    backing = torch.ones(16)
    x = backing[:8]
    with _watch(read_only=["x"], x=x) as watch:
        bugs.clear[(1,)](x, 10, BLOCK=16)
    assert sorted((fault.place.value, fault.index, fault.lanes) for fault in watch.faults) == [
        ("gap", (8,), 2),
        ("read-only", (0,), 8),
    ]
    assert backing.tolist() == [0.0] * 8 + [1.0] * 8


def test_in_place_tensor_that_is_both_input_and_output(bugs: Any) -> None:
    x = torch.ones(8)
    with InterpretBackend().watch([Region("x", x, False), Region("out", x, True)]) as watch:
        bugs.clear[(1,)](x, 8, BLOCK=8)
    assert not watch.faults


def test_stray_atomic_is_dropped(bugs: Any) -> None:
    backing = torch.zeros(10)
    x = backing[:6]
    with _watch(x=x) as watch:
        bugs.add_atomically[(2,)](x, 8, BLOCK=8)
    fault = _only(watch)
    assert (fault.access, fault.index, fault.lanes, fault.programs) == ("atomic", (6,), 4, 2)
    assert backing.tolist() == [2.0] * 6 + [0.0] * 4


def test_second_line_with_the_same_text(bugs: Any) -> None:
    x, out = torch.randn(8), torch.zeros(8)
    with _watch(x=x, out=out) as watch:
        bugs.same_line_twice[(1,)](x, out, 4, BLOCK=8)
    assert _only(watch).occurrence == 1
    with _watch(x=x[:4], out=out) as watch:
        bugs.same_line_twice[(1,)](x[:4], out, 4, BLOCK=8)
    assert [fault.occurrence for fault in watch.faults] == [0, 1]
    assert watch.faults[0].frame.source == watch.faults[1].frame.source


def test_stray_reads_yield_what_safe_memory_holds(bugs: Any) -> None:
    storage = torch.arange(16.0)
    x, out = storage[:8], torch.zeros(8)
    with _watch(spans=[_whole(storage)], x=x, out=out) as watch:
        bugs.shift[(1,)](x, out, 8, 4, BLOCK=8)
    assert _only(watch).lanes == 4
    assert out.tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e5m2, torch.int64, torch.uint8])
def test_stray_reads_elsewhere_yield_small_values_set_by_the_seed(bugs: Any, dtype: torch.dtype) -> None:
    x = torch.zeros(8).to(dtype)
    seen = []
    for seed in (1, 1, 2):
        out = torch.zeros(64).to(dtype)
        with _watch(seed=seed, x=x, out=out) as watch:
            bugs.shift[(1,)](x, out, 64, 10**6, BLOCK=64)
        assert _only(watch).lanes == 64
        seen.append(out.double().tolist())
    assert seen[0] == seen[1] != seen[2]
    low, high = (-1, 1) if dtype.is_floating_point else (0, 7)
    assert all(low <= value <= high for value in seen[0])
    assert len(set(seen[0])) > 3


@pytest.mark.parametrize("index", [2**48, -(2**48), 2**61, 2**40])
def test_offsets_beyond_the_address_space(bugs: Any, index: int) -> None:
    x, out = torch.randn(8), torch.zeros(1)
    where = torch.tensor([index])
    with _watch(x=x, index=where, out=out) as watch:
        bugs.far_away[(1,)](x, where, out)
    fault = _only(watch)
    assert (fault.access, fault.place, fault.lanes) == ("read", Place.OUTSIDE, 1)
    assert fault.frame.source == "tl.store(out, tl.load(x + tl.load(index)))"


def test_misaligned_read_inside_the_view_is_exact(bugs: Any) -> None:
    x, out = torch.randn(4), torch.zeros(1)
    with _watch(x=x, out=out) as watch:
        bugs.misaligned[(1,)](x, out)
    assert not watch.faults
    assert out.view(torch.uint8).tolist() == x.view(torch.uint8)[2:6].tolist()


def _layouts() -> list[tuple[str, torch.Tensor]]:
    base = torch.arange(40 * 40.0).view(40, 40)
    return [
        ("contiguous", torch.arange(63.0).view(7, 9)),
        ("narrowed", base[:7, :9]),
        ("offset", base[5:12, 3:12]),
        ("stepped", base[::3, ::2][:7, :9]),
        ("transposed", base[:9, :7].t()),
        ("expanded", base[:1, :9].expand(7, 9)),
        ("overlapping", torch.arange(40.0).as_strided((7, 9), (1, 2))),
        ("odd strides", torch.arange(400.0).as_strided((7, 9), (7, 13), 5)),
    ]


@pytest.mark.parametrize(("name", "x"), _layouts())
def test_a_correct_kernel_is_silent_on_every_layout(bugs: Any, name: str, x: torch.Tensor) -> None:
    for out_name, backing in _layouts():
        if out_name in ("expanded", "overlapping", "odd strides"):
            continue
        out = backing.zero_()
        with _watch(x=x, out=out) as watch:
            bugs.run_copy_matrix(x, out)
        assert not watch.faults, (name, out_name)
        assert torch.equal(out, x)


def test_a_wrappers_own_exception_passes_untouched(bugs: Any) -> None:
    x = torch.zeros(8)
    with _watch(x=x), pytest.raises(KeyError, match="mine"):
        bugs.clear[lambda meta: meta["mine"]](x, 8, BLOCK=8)


def test_what_no_compiler_takes_is_told_with_its_line(bugs: Any) -> None:
    x = torch.zeros(8)
    with _watch(x=x) as watch, pytest.raises(CompileFailed, match="power of 2") as caught:
        bugs.clear[(1,)](x, 8, BLOCK=7)
    assert caught.value.frame is not None
    assert caught.value.frame.source == "offs = tl.arange(0, BLOCK)"
    assert watch.launches[0].programs == 1


def test_a_function_that_the_language_does_not_have_does_not_compile(bugs: Any) -> None:
    x = torch.zeros(8)
    with _watch(x=x), pytest.raises(CompileFailed, match=r"module triton\.language has no laod") as caught:
        bugs.misspelt[(1,)](x)
    assert caught.value.frame is not None
    assert "tl.laod" in caught.value.frame.source


def test_a_slice_may_not_leave_the_region_it_was_cut_from(bugs: Any) -> None:
    pool = torch.randn(5, 2, 8)
    k, v = pool.unbind(1)
    out = torch.zeros(3)
    with _watch(k=k, v=v, out=out) as watch:
        bugs.sum_pages[(2,)](out, v[2:3], 8, SIZE=8)
    fault = _only(watch)
    assert (fault.argument, fault.landed, fault.landed_index, fault.lanes) == ("v", "k", (3, 0), 8)


def test_an_identical_region_is_preferred_to_one_that_contains_it(bugs: Any) -> None:
    pool = torch.randn(5, 2, 8)
    k = pool[:, 0]
    out = torch.zeros(5)
    with _watch(pool=pool, k=k, out=out) as watch:
        bugs.run_sum_pages(out, k, fixed=False)
    fault = _only(watch)
    assert (fault.argument, fault.landed, fault.landed_index, fault.lanes) == ("k", "pool", (0, 1, 0), 16)


def test_a_tensor_that_spans_several_regions_may_touch_them_all(bugs: Any) -> None:
    pool = torch.randn(5, 2, 8)
    k, v = pool.unbind(1)
    out = torch.zeros(5)
    with _watch(k=k, v=v, out=out) as watch:
        bugs.sum_pages[(5,)](out, pool.view(5, 16), 16, SIZE=16)
    assert not watch.faults
    torch.testing.assert_close(out, pool.sum((1, 2)))


def test_a_program_counts_once_however_often_it_strays(bugs: Any) -> None:
    x, out = torch.ones(4), torch.zeros(3)
    with _watch(x=x, out=out) as watch:
        bugs.walk[(3,)](x, out, 4, 6)
    fault = _only(watch)
    assert (fault.lanes, fault.programs, fault.index, fault.program) == (6, 3, (4,), (0, 0, 0))


def test_a_pointer_as_an_integer_is_the_plain_address(bugs: Any) -> None:
    x, out = torch.ones(4), torch.zeros(1, dtype=torch.int64)
    with _watch(x=x, out=out) as watch:
        bugs.address_of[(1,)](x, out)
    assert not watch.faults
    assert out.item() == x.data_ptr()
