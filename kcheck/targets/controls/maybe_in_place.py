"""Control: works on its input in place, or on an output of its own; every element is read before it is written."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def gelu_kernel(out, x, rows, columns, out_row, out_column, x_row, x_column, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    value = tl.load(x + row * x_row + column * x_column, mask=column < columns)
    tl.store(out + row * out_row + column * out_column, value * tl.sigmoid(1.702 * value), mask=column < columns)


@st.composite
def cases(draw):
    x = draw(
        ks.tensors((draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=40))), kinds=ks.WRITABLE)
    )
    return kcheck.Case(out=x if draw(ks.options("in_place", [False, True])) else draw(ks.outputs(x.shape)), x=x)


def oracle(out, x):
    return x * torch.sigmoid(1.702 * x)


@kcheck.target(cases=cases(), oracle=oracle, kernels=[gelu_kernel], outputs=["out"], aliases={"out": "x"})
def maybe_in_place(out, x):
    grid = x.shape[0], triton.cdiv(x.shape[1], 16)
    gelu_kernel[grid](out, x, *x.shape, *out.stride(), *x.stride(), TILE=16)
