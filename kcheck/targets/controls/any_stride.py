"""Control: any layout in, any layout out, tails masked in both dimensions, no launch if there is nothing to do."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def add_kernel(out, x, rows, columns, out_row, out_column, x_row, x_column, TILE: tl.constexpr):
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE))[None, :]
    inside = (row < rows) & (column < columns)
    value = tl.load(x + row * x_row + column * x_column, mask=inside)
    tl.store(out + row * out_row + column * out_column, value + 1, mask=inside)


@st.composite
def cases(draw):
    shape = tuple(draw(ks.dims(name, min_value=0, max_value=40, boundaries=[16])) for name in ("rows", "columns"))
    dtype = draw(ks.options("dtype", ["float32", "bfloat16", "int8"]))
    return kcheck.Case(out=draw(ks.outputs(shape, dtype)), x=draw(ks.tensors(shape, dtype)))


@kcheck.target(cases=cases(), oracle=lambda out, x: x + 1, kernels=[add_kernel], outputs=["out"])
def any_stride(out, x):
    grid = triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16)
    if 0 not in grid:
        add_kernel[grid](out, x, *x.shape, *out.stride(), *x.stride(), TILE=16)
