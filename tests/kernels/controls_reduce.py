"""Correct reductions that a layout checker must not complain of: order of additions and of programs is free in them."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def column_sum_kernel(total_ptr, x_ptr, columns, total_stride, x_row, x_column, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, TILE)
    values = tl.load(x_ptr + row * x_row + column * x_column, mask=column < columns, other=0.0)
    tl.atomic_add(total_ptr + column * total_stride, values, mask=column < columns)


@triton.jit
def last_block_kernel(total_ptr, x_ptr, part_ptr, done_ptr, columns, x_row, x_column, TILE: tl.constexpr):
    """Each program leaves its part; the one that finishes last, by a counter, adds them up."""
    row, lane, programs = tl.program_id(0), tl.arange(0, TILE), tl.num_programs(0)
    values = tl.load(x_ptr + row * x_row + lane * x_column, mask=lane < columns, other=0.0)
    tl.store(part_ptr + row, tl.sum(values, axis=0))
    if tl.atomic_add(done_ptr, 1, sem="acq_rel") == programs - 1:
        parts = tl.load(part_ptr + lane, mask=lane < programs, other=0.0)
        tl.store(total_ptr, tl.sum(parts, axis=0))


@st.composite
def sum_cases(draw, per_column):
    shape = (draw(ks.dims("rows", max_value=30)), draw(ks.dims("columns", max_value=30)))
    total = draw(ks.outputs((shape[1] if per_column else 1,), "float32"))
    return kcheck.Case(total=total, x=draw(ks.tensors(shape, "float32")))


@kcheck.target(
    cases=sum_cases(per_column=True), oracle=lambda total, x: x.sum(0), kernels=[column_sum_kernel], outputs=["total"]
)
def atomic_column_sum(total, x):
    total.zero_()
    column_sum_kernel[(x.shape[0],)](total, x, x.shape[1], total.stride(0), *x.stride(), TILE=32)


@kcheck.target(
    cases=sum_cases(per_column=False),
    oracle=lambda total, x: x.sum().reshape(1),
    kernels=[last_block_kernel],
    outputs=["total"],
)
def last_block_sum(total, x):
    parts = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    done = torch.zeros(1, dtype=torch.int32, device=x.device)
    last_block_kernel[(x.shape[0],)](total, x, parts, done, x.shape[1], *x.stride(), TILE=32)
