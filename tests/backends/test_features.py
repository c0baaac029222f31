"""One test per feature of Triton; expected values come from torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kcheck.worker.backends.base import CompileFailed, DeviceAssertFailed, EndlessLoop, Region, Unsupported
from kcheck.worker.backends.interpret import InterpretBackend

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
FP8 = [(torch.float8_e4m3fn, tl.float8e4nv), (torch.float8_e5m2, tl.float8e5)]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int8]
)
def test_addition(features: Any, silent: Any, dtype: torch.dtype) -> None:
    x, y = (torch.randn(1000).mul(10).to(dtype) for _ in range(2))
    o = torch.zeros(1000, dtype=dtype)
    with silent(x=x, y=y, o=o):
        features.add[(triton.cdiv(1000, 256),)](x, y, o, 1000, B=256)
    assert torch.equal(o, x + y)


def test_loop_with_runtime_bound(features: Any, silent: Any) -> None:
    x, o = torch.randn(4, 100), torch.zeros(4)
    with silent(x=x, o=o):
        features.row_sum[(4,)](x, o, 100, x.stride(0), B=32)
    torch.testing.assert_close(o, x.sum(1))


def test_softmax(features: Any, silent: Any) -> None:
    x, o = torch.randn(4, 100), torch.zeros(4, 100)
    with silent(x=x, o=o):
        features.softmax[(4,)](x, o, 100, 100, B=128)
    torch.testing.assert_close(o, x.softmax(1))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int8]
)
def test_dot(features: Any, silent: Any, dtype: torch.dtype) -> None:
    a, b = torch.randn(16, 32).mul(3).to(dtype), torch.randn(32, 16).mul(3).to(dtype)
    c = torch.zeros(16, 16, dtype=torch.int32 if dtype == torch.int8 else torch.float32)
    with silent(a=a, b=b, c=c):
        features.dot[(1,)](a, b, c, 16, 16, 32)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-4)


def test_dot_of_float32_is_not_tf32(features: Any, silent: Any) -> None:
    a, b, c = torch.full((16, 32), 1 + 2**-18), torch.ones(32, 16), torch.zeros(16, 16)
    with silent(a=a, b=b, c=c):
        features.dot[(1,)](a, b, c, 16, 16, 32)
    torch.testing.assert_close(c, torch.full((16, 16), 32 * (1 + 2**-18)), rtol=2**-20, atol=0)


@pytest.mark.parametrize(("dtype", "kind"), FP8)
def test_every_fp8_value_as_float32(features: Any, silent: Any, dtype: torch.dtype, kind: Any) -> None:
    x, o = torch.arange(256).to(torch.uint8), torch.zeros(256)
    with silent(x=x, o=o):
        features.bitcast_bytes[(1,)](x, o, 256, kind)
    torch.testing.assert_close(o, x.view(dtype).float(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("target", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize("source", [torch.float32, torch.float16, torch.bfloat16])
def test_casts_round_to_nearest_even(features: Any, silent: Any, source: torch.dtype, target: torch.dtype) -> None:
    x = torch.cat([torch.randn(2048), torch.linspace(-440, 440, 2048)]).to(source)
    o = torch.zeros(4096).to(target)
    with silent(x=x, o=o):
        features.cast_to_output[(4,)](x, o, 4096, B=1024)
    assert torch.equal(o.float(), x.float().to(target).float())


def test_casts_to_fp8_saturate_and_keep_nan(features: Any, silent: Any) -> None:
    x = torch.tensor([1e6, float("-inf"), float("nan"), 449.0])
    for dtype, largest in ((torch.float8_e4m3fn, 448.0), (torch.float8_e5m2, 57344.0)):
        o = torch.zeros(4).to(dtype)
        with silent(x=x, o=o):
            features.cast_to_output[(1,)](x, o, 4, B=4)
        assert o.float()[:2].tolist() == [largest, -largest]
        assert o.float()[2].isnan()
        assert o.float()[3].item() == 448.0


def test_floats_to_integers_saturate(features: Any, silent: Any) -> None:
    x = torch.tensor([1.9, -1.9, 3e9, -3e9, float("inf"), float("nan"), 0.0, 2147483520.0])
    o = torch.zeros(8, dtype=torch.int32)
    with silent(x=x, o=o):
        features.float_to_integer[(1,)](x, o, B=8)
    assert o.tolist() == [1, -1, 2**31 - 1, -(2**31), 2**31 - 1, 0, 0, 2147483520]


@pytest.mark.parametrize("flag", [True, False])
def test_bool_argument(features: Any, silent: Any, flag: bool) -> None:
    x, o = torch.zeros(8), torch.zeros(8)
    with silent(x=x, o=o):
        features.branch_on_bool[(1,)](x, o, flag, B=8)
    assert torch.equal(o, torch.full((8,), float(flag)))


def test_none_argument(features: Any, silent: Any) -> None:
    x, o = torch.ones(8), torch.zeros(8)
    with silent(x=x, o=o):
        features.optional_pointer[(1,)](x, o, None, B=8)
        assert torch.equal(o, x)
        features.optional_pointer[(1,)](x, o, x, B=8)
    assert torch.equal(o, x * 2)


def test_nested_function(features: Any, silent: Any) -> None:
    x, o = torch.ones(8), torch.zeros(8)
    with silent(x=x, o=o):
        features.nested[(1,)](x, o, B=8)
    assert torch.equal(o, x * 2 + 1)


def test_static_range_assertions_and_hints(features: Any, silent: Any) -> None:
    x, o = torch.ones(8), torch.zeros(8)
    with silent(x=x, o=o):
        features.static_and_hints[(1,)](x, o, 8, 3)
    assert torch.equal(o, x + 6)


@pytest.mark.parametrize("name", ["failing_device_assert", "failing_python_assert"])
def test_device_assert_fires(features: Any, name: str) -> None:
    with InterpretBackend().watch([]) as watch, pytest.raises(DeviceAssertFailed, match="lane too high") as caught:
        getattr(features, name)[(1,)](torch.ones(8), B=8)
    assert caught.value.frame is not None
    assert "i < 4" in caught.value.frame.source
    assert [launch.programs for launch in watch.launches] == [1]


def test_static_assert_is_a_compile_failure(features: Any) -> None:
    with InterpretBackend().watch([]), pytest.raises(CompileFailed, match="B must be 16"):
        features.failing_static_assert[(1,)](torch.ones(8), B=8)


def test_autotune_runs_the_first_config(features: Any, silent: Any) -> None:
    x, o = torch.ones(200), torch.zeros(200)
    with silent(x=x, o=o) as watch:
        features.autotuned[lambda meta: (triton.cdiv(200, meta["B"]),)](x, o, 200)
    assert torch.equal(o, x + 64)
    assert [launch.grid for launch in watch.launches] == [(4, 1, 1)]


def test_autotune_prunes_resets_and_calls_hooks(features: Any, silent: Any) -> None:
    x, o = torch.ones(200), torch.full((200,), 9.0)
    features.HOOKED.clear()
    with silent(x=x, o=o):
        features.autotuned_pruned[lambda meta: (triton.cdiv(200, meta["B"]),)](x, o, 200)
    assert torch.equal(o, x + 128)
    assert features.HOOKED == [128]


@pytest.mark.parametrize("n", [192, 200])
def test_heuristics_and_do_not_specialize(features: Any, silent: Any, n: int) -> None:
    x, o = torch.ones(n), torch.zeros(n)
    with silent(x=x, o=o):
        features.heuristic[lambda meta: (triton.cdiv(n, meta["B"]),)](x, o, n)
    assert torch.equal(o, x + 1)


def test_launch_options_are_ignored(features: Any, silent: Any) -> None:
    x, o = torch.ones(200), torch.zeros(200)
    with silent(x=x, o=o):
        features.add[(1,)](x, x, o, 200, B=256, num_warps=4, num_stages=2, num_ctas=1, maxnreg=64)
    assert torch.equal(o, x * 2)


def test_views_of_one_storage(features: Any, silent: Any) -> None:
    storage = torch.zeros(32)
    a, b = storage[:8], storage[8:16]
    with silent(a=a, b=b):
        a.fill_(2)
        features.add[(1,)](a, a, b, 8, B=8)
    assert torch.equal(storage[8:16], torch.full((8,), 4.0))
    assert torch.equal(storage[16:], torch.zeros(16))


def test_float_atomics(features: Any, silent: Any) -> None:
    x = torch.randn(16)
    o = torch.tensor([0.0] * 4 + [-9.0] * 4 + [9.0] * 4)
    with silent(x=x, o=o):
        features.atomics[(1,)](x, o, B=16)
    columns = x.view(4, 4)
    torch.testing.assert_close(o, torch.cat([columns.sum(0), columns.amax(0), columns.amin(0)]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int32])
def test_atomic_addition(features: Any, silent: Any, dtype: torch.dtype) -> None:
    x, o = torch.ones(16, dtype=dtype), torch.zeros(4, dtype=dtype)
    with silent(x=x, o=o):
        features.atomic_add_only[(1,)](x, o, B=16)
    assert o.tolist() == [4, 4, 4, 4]


def test_integer_atomics(features: Any, silent: Any) -> None:
    o = torch.tensor([0, 0, 1, 6, 1], dtype=torch.int32)
    with silent(o=o):
        features.atomic_integers[(1,)](o)
    assert o.tolist() == [7, 5, 7, 2, 0]


@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_lanes_of_an_atomic_that_are_masked_off_yield_zero(features: Any, engine: str) -> None:
    np.full(1 << 10, 77, np.int32)  # freed again: what memory held before is not zero
    x, before = torch.arange(5, 21, dtype=torch.int32), torch.full((16,), -1, dtype=torch.int32)
    regions = [Region("x", x, True), Region("before", before, True)]
    with InterpretBackend(engine=engine).watch(regions):
        features.masked_atomic[(1,)](x, before, 10, B=16)
    assert before.tolist() == [*range(5, 15), *[0] * 6]
    assert x.tolist() == [*range(6, 16), *range(15, 21)]


def test_sort_and_topk(features: Any, silent: Any) -> None:
    x, o, top = torch.randn(16), torch.zeros(16), torch.zeros(4)
    with silent(x=x, o=o, top=top):
        features.sort[(1,)](x, o, B=16)
        features.topk[(1,)](x, top, 16, 4)
    assert torch.equal(o, x.sort()[0])
    assert torch.equal(top, x.topk(4)[0])


def test_gather(features: Any, silent: Any) -> None:
    x, index, o = torch.randn(16), torch.randperm(16).int(), torch.zeros(16)
    with silent(x=x, index=index, o=o):
        features.gather[(1,)](x, index, o, B=16)
    assert torch.equal(o, x[index.long()])


@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum(features: Any, silent: Any, reverse: bool) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.cumsum[(1,)](x, o, B=16, REVERSE=reverse)
    torch.testing.assert_close(o, x.flip(0).cumsum(0).flip(0) if reverse else x.cumsum(0))


def test_scan_and_reduction_keep_the_order_of_operands(features: Any, silent: Any) -> None:
    a, b, o, last = torch.rand(16), torch.randn(16), torch.zeros(16), torch.zeros(1)
    with silent(a=a, b=b, o=o, last=last):
        features.recurrence[(1,)](a, b, o, last, B=16)
    h, expected = torch.zeros(()), []
    for step in range(16):
        h = h * a[step] + b[step]
        expected.append(h)
    torch.testing.assert_close(o, torch.stack(expected))
    torch.testing.assert_close(last[0], expected[-1])


def test_reduction_that_branches_on_values(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(1)
    with silent(x=x, o=o):
        features.reduce_with_branch[(1,)](x, o, B=16)
    assert o.item() == x.max().item()


def test_argmax_argmin_and_indices(features: Any, silent: Any) -> None:
    x, o = torch.tensor([1.0, 5.0, -2.0, 5.0, -2.0, 0.0, 3.0, 4.0]), torch.zeros(3, dtype=torch.int32)
    with silent(x=x, o=o):
        features.extremes[(1,)](x, o, B=8)
    assert o.tolist() == [1, 2, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bfloat16, torch.float16])
def test_sums_along_axes(features: Any, silent: Any, dtype: torch.dtype) -> None:
    x = torch.randn(8, 16).mul(10).to(dtype)
    rows, columns, total = (torch.zeros(n, dtype=dtype) for n in (8, 16, 1))
    with silent(x=x, rows=rows, columns=columns, total=total):
        features.axis_sums[(1,)](x, rows, columns, total, 8, 16)
    # In 16 bits the partial sums are rounded, too.
    rtol, atol = {torch.int32: (0.0, 0.0), torch.float32: (1e-5, 1e-5)}.get(dtype, (2**-6, 1.0))
    torch.testing.assert_close(rows.double(), x.double().sum(1), rtol=rtol, atol=atol)
    torch.testing.assert_close(columns.double(), x.double().sum(0), rtol=rtol, atol=atol)
    torch.testing.assert_close(total[0].double(), x.double().sum(), rtol=rtol, atol=atol)


@pytest.mark.skipif(VERSION >= (3, 9), reason="Triton 3.9 has no block pointers")
@pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
def test_block_pointers(features: Any, silent: Any) -> None:
    x, o = torch.randn(12, 20), torch.zeros(12, 20)
    with silent(x=x, o=o):
        features.block_pointers[(1,)](x, o, 12, 20, B=16)
    assert torch.equal(o, x + 1)


def test_tensor_descriptors_made_in_the_kernel(features: Any, silent: Any) -> None:
    x, o = torch.randn(16, 16), torch.zeros(16, 16)
    with silent(x=x, o=o):
        features.device_descriptors[(1,)](x, o, 16, 16, B=16)
    assert torch.equal(o, x + 1)


def test_tensor_descriptors_made_on_the_host(features: Any, silent: Any) -> None:
    x, o = torch.randn(16, 16), torch.zeros(16, 16)
    with silent(x=x, o=o):
        d, e = (TensorDescriptor.from_tensor(t, [16, 16]) for t in (x, o))
        features.host_descriptors[(1,)](d, e, B=16)
    assert torch.equal(o, x + 1)


def test_atomics_through_a_descriptor(features: Any, silent: Any) -> None:
    x, o = torch.randn(16, 16), torch.ones(16, 16)
    with silent(x=x, o=o):
        features.descriptor_atomics[(1,)](x, o, 16, 16, B=16)
    assert torch.equal(o, x + 1)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("inline_assembly", "inline assembly"),
        ("unknown_libdevice", "libdevice.byte_perm"),
        ("unsupported_builtin", "reshape"),
    ],
)
def test_what_cannot_run_is_named(features: Any, name: str, feature: str) -> None:
    x, o = torch.zeros(16, dtype=torch.int32), torch.zeros(16)
    with InterpretBackend().watch([]), pytest.raises(Unsupported, match=f"kernel {name} uses .*{feature}") as caught:
        getattr(features, name)[(1,)](x, o, B=16)
    assert caught.value.frame is not None
    assert caught.value.frame.function == name


def test_libdevice(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.libdevice_functions[(1,)](x, o, B=16)
    torch.testing.assert_close(o, x.tanh() + x**2 + x.round())


def test_functions_imported_by_name(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.names_imported_directly[(1,)](x, o, B=16)
    torch.testing.assert_close(o, x.exp() + x.tanh())


def test_closures(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.make_closure(3)[(1,)](x, o, B=16)
        assert torch.equal(o, x * 3)
        features.make_closure_over_function()[(1,)](x, o, B=16)
    assert torch.equal(o, x + 1)


def test_global_constexpr(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.global_constant[(1,)](x, o, B=16)
    assert torch.equal(o, x + 5)


def test_zero_dimensional_and_stepped_tensors(features: Any, silent: Any) -> None:
    x, o, s = torch.arange(48.0)[::3], torch.zeros(32)[::2], torch.tensor(2.0)
    with silent(x=x, o=o, s=s):
        features.stepped_by_hand[(1,)](x, s, o, B=16)
    assert torch.equal(o, x * 2)


def test_bfloat16_times_a_float_argument(features: Any, silent: Any) -> None:
    x, o = torch.randn(16).bfloat16(), torch.zeros(16).bfloat16()
    with silent(x=x, o=o):
        features.times_scalar[(1,)](x, o, 2.0, B=16)
    assert torch.equal(o, x * 2)


def test_float_argument_is_float32(features: Any, silent: Any) -> None:
    x, o = torch.full((16,), 1.0).half(), torch.zeros(16)
    with silent(x=x, o=o):
        features.float_argument[(1,)](x, o, 1 + 2**-20, B=16)
    assert torch.equal(o, torch.full((16,), 1 + 2**-20))  # a half would have lost it


def test_bfloat16_comparison_and_maximum(features: Any, silent: Any) -> None:
    x, o = torch.randn(16).bfloat16(), torch.zeros(2).bfloat16()
    with silent(x=x, o=o):
        features.compare_and_max[(1,)](x, o, B=16)
    assert o.tolist() == [x.max().item(), float((x > 0).sum())]


def test_bfloat16_arithmetic(features: Any, silent: Any) -> None:
    x, o = torch.randn(16).bfloat16(), torch.zeros(16).bfloat16()
    with silent(x=x, o=o):
        features.grow_bfloat16[(1,)](x, o, B=16)
    # The division is done in float32 and takes the rest of the expression with it, as in Triton's promotion rules.
    expected = ((-x * x).float() + x.float() / 3.0) - x.abs().float()
    torch.testing.assert_close(o.float(), expected.bfloat16().float(), rtol=2**-7, atol=2**-7)


def test_math_functions(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.math_functions[(1,)](x, o, B=16)
    expected = (
        x.sigmoid() + torch.exp2(x) + torch.rsqrt(x.abs() + 1) + torch.erf(x) + x.clamp(min=0) + x.clamp(-1, 1)
        + (x * x + x) + torch.log2(x.abs() + 1)
    )  # fmt: skip
    torch.testing.assert_close(o, expected)


def test_random_numbers(features: Any, silent: Any) -> None:
    o = torch.full((64,), -1.0)
    with silent(o=o):
        features.rand[(1,)](o, B=64)
    assert ((o >= 0) & (o < 1)).all()
    assert len(set(o.tolist())) == 64


def test_reshape_transpose_join_split(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.reshaping[(1,)](x, o, B=16)
    torch.testing.assert_close(o, x.view(4, 4).t().reshape(-1))


def test_histogram(features: Any, silent: Any) -> None:
    x, o = torch.randint(0, 8, (64,), dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    with silent(x=x, o=o):
        features.histogram[(1,)](x, o, 64, 8)
    assert o.tolist() == torch.bincount(x, minlength=8).tolist()


@pytest.mark.parametrize(("dtype", "name"), [(torch.float8_e4m3fn, "e4m3"), (torch.float8_e5m2, "e5m2")])
def test_dot_scaled(features: Any, silent: Any, dtype: torch.dtype, name: str) -> None:
    a, b, c = torch.randn(16, 64).to(dtype), torch.randn(64, 16).to(dtype), torch.zeros(16, 16)
    scale_a, scale_b = (torch.randint(124, 131, (16, 2), dtype=torch.uint8) for _ in range(2))
    with silent(a=a, scale_a=scale_a, b=b, scale_b=scale_b, c=c):
        features.dot_scaled[(1,)](a, scale_a, b, scale_b, c, name, 64)
    left = a.float() * torch.exp2(scale_a.float() - 127).repeat_interleave(32, 1)
    right = b.float() * torch.exp2(scale_b.float() - 127).repeat_interleave(32, 1).t()
    torch.testing.assert_close(c, left @ right)


def test_chained_comparison(features: Any, silent: Any) -> None:
    o = torch.zeros(8, dtype=torch.int32)
    with silent(o=o):
        features.chained_comparison[(1,)](o, 5, B=8)
    assert o.tolist() == [0, 0, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("flag", [True, False])
def test_block_mask_and_scalar_bool(features: Any, silent: Any, flag: bool) -> None:
    o = torch.zeros(8, dtype=torch.int32)
    with silent(o=o):
        features.block_and_scalar_mask[(1,)](o, 5, flag, B=8)
    assert o.tolist() == [int(flag)] * 5 + [0] * 3


def test_chained_assignment_and_docstring(features: Any, silent: Any) -> None:
    o = torch.zeros(8, dtype=torch.int32)
    with silent(o=o):
        features.chained_assignment[(1,)](o, B=8)
        assert o.tolist() == [2 * (i + 1) for i in range(8)]
        features.docstring[(1,)](o, B=8)
    assert o.tolist() == list(range(8))


def test_tuple_argument(features: Any, silent: Any) -> None:
    x, o = torch.ones(8), torch.zeros(8)
    with silent(x=x, o=o):
        features.tuple_argument[(1,)]((x, x), o, B=8)
    assert torch.equal(o, x * 2)


def test_while_and_if_on_loaded_values(features: Any, silent: Any) -> None:
    x, o = torch.tensor([4], dtype=torch.int32), torch.zeros(5, dtype=torch.int32)
    with silent(x=x, o=o):
        features.while_and_if[(1,)](x, o)
    assert o.tolist() == [0, 0, 1, 1, 0]


def test_and_evaluates_both_sides_as_on_a_gpu(features: Any) -> None:
    from kcheck.worker.backends.base import Region

    x, o = torch.ones(4), torch.zeros(8)
    with InterpretBackend().watch([Region("x", x, False), Region("o", o, True)]) as watch:
        features.both_sides_evaluated[(6,)](x, o, 4)
    assert o.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert [(fault.argument, fault.index, fault.lanes, fault.programs) for fault in watch.faults] == [("x", (4,), 2, 2)]


def test_constants_do_cut_short(features: Any, silent: Any) -> None:
    x, o = torch.ones(1), torch.zeros(2)
    with silent(o=o):
        features.constant_short_cut[(1,)](None, o, HAS=False)
        assert o.tolist() == [0, 1]
    with silent(x=x, o=o):
        features.constant_short_cut[(1,)](x, o.zero_(), HAS=True)
    assert o.tolist() == [1, 1]


def test_nan_is_ignored_by_maximum(features: Any, silent: Any) -> None:
    x, o = torch.tensor([1.0, float("nan"), 3.0, 0.0]), torch.zeros(2)
    with silent(x=x, o=o):
        features.nan_maximum[(1,)](x, o, B=4)
    assert o.tolist() == [3.0, 3.0]


def test_division_rounds_towards_zero(features: Any, silent: Any) -> None:
    x, o = torch.randn(8), torch.zeros(8)
    q, r = torch.zeros(8, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    with silent(x=x, o=o, q=q, r=r):
        features.division[(1,)](x, o, q, r, B=8)
    k = torch.arange(8) - 4
    assert torch.equal(o, x)
    assert q.tolist() == torch.div(k, 3, rounding_mode="trunc").tolist()
    assert r.tolist() == torch.fmod(k, 3).tolist()


def test_flip(features: Any, silent: Any) -> None:
    o = torch.zeros(8, dtype=torch.int32)
    with silent(o=o):
        features.flip[(1,)](o, B=8)
    assert o.tolist() == list(range(7, -1, -1))


def test_int32_wraps_around(features: Any, silent: Any) -> None:
    o = torch.zeros(1, dtype=torch.int64)
    with silent(o=o):
        features.wrapping[(1,)](o, 1)
    assert o.item() == -(2**31)


def test_annotation_sets_the_type_of_an_integer(features: Any, silent: Any) -> None:
    o = torch.zeros(2, dtype=torch.int64)
    with silent(o=o):
        features.annotated[(1,)](o, 65536, 65536)
    assert o.tolist() == [2**32, 0]


def test_constexpr_dtype_and_function(features: Any, silent: Any) -> None:
    x, o = torch.randn(16), torch.zeros(16)
    with silent(x=x, o=o):
        features.constexpr_dtype[(1,)](x, o, tl.bfloat16, B=16)
        assert torch.equal(o, x.bfloat16().float())
        features.constexpr_function_argument[(1,)](x, o, features.relu, B=16)
    assert torch.equal(o, x.relu())


def test_program_ids(features: Any, silent: Any) -> None:
    o = torch.full((24,), -1, dtype=torch.int32)
    with silent(o=o) as watch:
        features.program_numbers[(2, 3, 4)](o)
    assert o.tolist() == list(range(24))
    assert (watch.launches[0].grid, watch.launches[0].programs) == ((2, 3, 4), 24)


@pytest.mark.parametrize("name", ["spin", "spin_on_lock"])
def test_a_program_that_waits_for_another_is_unsupported(features: Any, name: str) -> None:
    flag = torch.full((1,), int(name == "spin_on_lock"), dtype=torch.int32)
    o = torch.zeros(1)
    with InterpretBackend().watch([]), pytest.raises(Unsupported, match="waits for another program"):
        getattr(features, name)[(1,)](flag, o)


def test_a_loop_that_changes_nothing_never_ends(features: Any) -> None:
    o, x = torch.zeros(1), torch.zeros(16)
    with InterpretBackend().watch([]), pytest.raises(EndlessLoop, match="kernel endless never ends"):
        features.endless[(1,)](o, 0)
    with InterpretBackend().watch([]), pytest.raises(EndlessLoop, match="kernel endless_reader never ends"):
        features.endless_reader[(1,)](o, x, 0)


@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_a_long_loop_is_not_mistaken_for_waiting(features: Any, engine: str) -> None:
    n, o = torch.tensor([5000], dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with InterpretBackend(engine=engine).watch([Region("n", n, True), Region("o", o, True)]):
        features.long_loop[(1,)](n, o)
    assert o.item() == 5000


def test_an_argument_of_one_is_a_constant(features: Any, silent: Any) -> None:
    """As on a GPU: the load on the right of ``or`` is not made."""
    o = torch.zeros(1, dtype=torch.int32)
    with silent(o=o):
        features.one_cuts_short[(1,)](torch.ones(0), o, 1)
    assert o.item() == 1


def test_converting_an_argument_of_one_does_not_compile(features: Any, silent: Any) -> None:
    o = torch.zeros(1, dtype=torch.int64)
    with silent(o=o):
        features.converts_argument[(1,)](o, 2)
        assert o.item() == 8
        features.converts_unspecialised_argument[(1,)](o, 1)
        assert o.item() == 4
    with InterpretBackend().watch([]), pytest.raises(CompileFailed, match="when n is 1"):
        features.converts_argument[(1,)](o, 1)


def test_bool_tensors(features: Any, silent: Any) -> None:
    x, o = torch.tensor([True, False] * 4), torch.ones(8, dtype=torch.bool)
    with silent(x=x, o=o):
        features.copy_bools[(1,)](x, o, B=8)
    assert torch.equal(o, x & (torch.arange(8) < 5))


def test_string_that_reaches_further_left_than_the_kernel(features: Any, silent: Any) -> None:
    o = torch.zeros(1)
    with silent(o=o):
        features.make_kernel_with_far_left_string()[(1,)](o)
    assert o.item() == 1
