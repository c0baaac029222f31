"""The mean of each row. The wrong one divides by the tile's width instead of the row's: wrong for every layout."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

TILE = 64


@triton.jit
def row_mean_kernel(mean_ptr, x_ptr, columns, divisor, mean_stride, x_row, x_column, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, TILE)
    values = tl.load(x_ptr + row * x_row + column * x_column, mask=column < columns, other=0.0)
    tl.store(mean_ptr + row * mean_stride, tl.sum(values, axis=0) / divisor)


def launch(mean, x, divisor):
    row_mean_kernel[(x.shape[0],)](mean, x, x.shape[1], float(divisor), mean.stride(0), *x.stride(), TILE=TILE)


def oracle(mean, x):
    return x.mean(dim=1)


@st.composite
def cases(draw):
    rows, columns = draw(ks.dims("rows", max_value=4)), draw(ks.dims("columns", max_value=TILE))
    return kcheck.Case(mean=draw(ks.outputs((rows,), "float32")), x=draw(ks.tensors((rows, columns), "float32")))


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[row_mean_kernel], outputs=["mean"])


@target
def wrong(mean, x):
    launch(mean, x, divisor=TILE)


@target
def fixed(mean, x):
    launch(mean, x, divisor=x.shape[1])
