"""Right kernels whose results differ from the oracle's by rounding alone, where rounding shows most: equal terms, sums
that cancel, variances of zero. All must be silent.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def sequential_sum_kernel(out_ptr, x_ptr, count, stride):
    total = 0.0
    for i in range(0, count):
        total += tl.load(x_ptr + i * stride)
    tl.store(out_ptr, total)


@triton.jit
def atomic_sum_kernel(out_ptr, x_ptr, count, stride, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + lanes * stride, mask=lanes < count, other=0.0), 0))


@triton.jit
def layer_norm_kernel(out_ptr, x_ptr, columns, row_stride, column_stride, eps, TILE: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, TILE)
    inside = lanes < columns
    x = tl.load(x_ptr + row * row_stride + lanes * column_stride, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, 0) / columns, 0.0)
    variance = tl.sum(centred * centred, 0) / columns
    tl.store(out_ptr + row * columns + lanes, centred / tl.sqrt(variance + eps), mask=inside)


@st.composite
def vectors(draw, most=700):
    exponent = draw(st.sampled_from([0, 6]))
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", max_value=most)),), "float32", exponent=exponent)))


@st.composite
def matrices(draw):
    shape = draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=100))
    return kcheck.Case(x=draw(ks.tensors(shape, "float32", exponent=draw(st.sampled_from([0, 8])))))


@kcheck.target(cases=vectors(), oracle=lambda x: x.sum(), kernels=[sequential_sum_kernel])
def sequential_sum(x):
    out = torch.empty(())
    sequential_sum_kernel[(1,)](out, x, x.shape[0], x.stride(0))
    return out


@kcheck.target(cases=vectors(5000), oracle=lambda x: x.sum(), kernels=[atomic_sum_kernel])
def atomic_sum(x):
    out = torch.zeros(())
    atomic_sum_kernel[(triton.cdiv(x.shape[0], 32),)](out, x, x.shape[0], x.stride(0), TILE=32)
    return out


@kcheck.target(cases=vectors())
def two_orders(x):
    """No oracle, and another order of summation for another layout."""
    out = torch.zeros(())
    if x.is_contiguous():
        atomic_sum_kernel[(triton.cdiv(x.shape[0], 32),)](out, x, x.shape[0], x.stride(0), TILE=32)
    else:
        sequential_sum_kernel[(1,)](out, x, x.shape[0], x.stride(0))
    return out


@kcheck.target(
    cases=matrices(), oracle=lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), kernels=[layer_norm_kernel]
)
def layer_norm(x):
    rows, columns = x.shape
    out = torch.empty(rows, columns)
    layer_norm_kernel[(rows,)](out, x, columns, *x.stride(), 1e-5, TILE=triton.next_power_of_2(columns))
    return out
