"""Columns scaled in tiles. The grid of the wrong one covers half of the columns: nobody writes the rest."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

TILE = 16


@triton.jit
def scale_kernel(out_ptr, x_ptr, columns, out_row, out_column, x_row, x_column, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    values = tl.load(x_ptr + row * x_row + column * x_column, mask=column < columns, other=0.0)
    tl.store(out_ptr + row * out_row + column * out_column, 0.5 * values, mask=column < columns)


def launch(out, x, tiles):
    scale_kernel[(x.shape[0], tiles)](out, x, x.shape[1], *out.stride(), *x.stride(), TILE=TILE)


def oracle(out, x):
    return 0.5 * x


@st.composite
def cases(draw):
    shape = (draw(ks.dims("rows", max_value=4)), draw(ks.options("columns", [32, 64])))
    return kcheck.Case(out=draw(ks.outputs(shape, "float32")), x=draw(ks.tensors(shape, "float32")))


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[scale_kernel], outputs=["out"])


@target
def wrong(out, x):
    launch(out, x, tiles=x.shape[1] // TILE // 2)


@target
def fixed(out, x):
    launch(out, x, tiles=x.shape[1] // TILE)
