"""Correct kernels that a layout checker must not complain of: any layout, in place, masked tails, a clean rejection."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def add_kernel(out_ptr, x_ptr, rows, columns, out_row, out_column, x_row, x_column, ADD, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE))[None, :]
    inside = (row < rows) & (column < columns)
    values = tl.load(x_ptr + row * x_row + column * x_column, mask=inside, other=0.0)
    tl.store(out_ptr + row * out_row + column * out_column, values + ADD, mask=inside)


def launch(out, x, add):
    grid = triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16)
    if 0 not in grid:
        add_kernel[grid](out, x, *x.shape, *out.stride(), *x.stride(), add, TILE=16)


@st.composite
def cases(draw):
    rows = draw(ks.dims("rows", min_value=0, max_value=40, boundaries=[15, 16, 17]))
    shape = (rows, draw(ks.dims("columns", max_value=40, boundaries=[15, 16, 17])))
    return kcheck.Case(out=draw(ks.outputs(shape, "float32")), x=draw(ks.tensors(shape, "float32")))


@st.composite
def cases_in_place(draw):
    shape = (draw(ks.dims("rows", max_value=20)), draw(ks.dims("columns", max_value=20)))
    return kcheck.Case(x=draw(ks.inouts(shape, "float32")))


def copied(out, x):
    return x.clone()


def incremented(x):
    return x + 1


def shifted(out, x):
    return x + 1


@kcheck.target(cases=cases(), oracle=copied, kernels=[add_kernel], outputs=["out"], exact=True)
def any_stride_copy(out, x):
    launch(out, x, 0.0)


@kcheck.target(cases=cases_in_place(), oracle=incremented, kernels=[add_kernel], inout=["x"])
def in_place(x):
    launch(x, x, 1.0)


@kcheck.target(cases=cases(), oracle=shifted, kernels=[add_kernel], outputs=["out"])
def masked_tail(out, x):
    launch(out, x, 1.0)


@kcheck.target(cases=cases(), oracle=shifted, kernels=[add_kernel], outputs=["out"])
def clean_rejection(out, x):
    if not x.is_contiguous():
        raise ValueError("x must be contiguous")
    launch(out, x, 1.0)
