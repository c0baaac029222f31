"""Copy rows whose length is a multiple of 4.

The wrong one promises the compiler that the row stride is a multiple of 4 as well. It is in a contiguous tensor; in a
view it need not be, and then a GPU reads from misaligned addresses.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def rows_kernel(out, x, columns, row_stride, HINT: tl.constexpr, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, TILE)
    if HINT:
        row_stride = tl.multiple_of(row_stride, 4)
    value = tl.load(x + row * row_stride + column, mask=column < columns)
    tl.store(out + row * columns + column, value, mask=column < columns)


def launch(x, hint):
    out = torch.empty(x.shape, device=x.device)
    rows_kernel[x.shape[:1]](out, x, x.shape[1], x.stride(0), HINT=hint, TILE=32)
    return out


@st.composite
def cases(draw):
    rows, quads = draw(ks.dims("rows", max_value=16)), draw(ks.dims("quads", max_value=8))
    return kcheck.Case(x=draw(ks.tensors((rows, 4 * quads), kinds=ks.CONTIGUOUS_LAST)))


declare = kcheck.target(cases=cases(), oracle=lambda x: x.clone(), kernels=[rows_kernel], exact=True)


@declare
def aligned_rows(x):
    return launch(x, False)


@declare
def aligned_rows_wrong(x):
    return launch(x, True)
