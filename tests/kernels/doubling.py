"""Doubling by rows: with the wrong row stride, with the right one, and with a kernel that never launches."""
# mypy: ignore-errors

import os

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def double_kernel(out, x, columns, row_stride, column_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, TILE)
    value = tl.load(x + row * row_stride + column * column_stride, mask=column < columns)
    tl.store(out + row * columns + column, value * 2, mask=column < columns)


def double(x, row_stride):
    rows, columns = x.shape
    out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
    double_kernel[(rows,)](out, x, columns, row_stride, x.stride(1), TILE=triton.next_power_of_2(columns))
    return out


@st.composite
def cases(draw):
    rows = draw(ks.dims("rows", min_value=1, max_value=8))
    columns = draw(ks.dims("columns", min_value=1, max_value=20))
    return kcheck.Case(x=draw(ks.tensors((rows, columns), "float32")))


def oracle(x):
    return x * 2


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[double_kernel])


@target
def wrong(x):
    return double(x, x.shape[1])


@target
def fixed(x):
    return double(x, x.stride(0))


@target
def by_variable(x):
    return double(x, x.shape[1] if os.environ.get("KCHECK_TEST_WRONG") else x.stride(0))


@kcheck.target(cases=cases(), oracle=oracle, kernels=["never_kernel"])
def unlaunched(x):
    return double(x, x.stride(0))
