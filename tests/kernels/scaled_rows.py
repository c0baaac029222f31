"""Rows of 1,024 elements, doubled: correct for any row stride, and as large as one likes."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

WIDTH = 1024


@triton.jit
def double_rows_kernel(out_ptr, x_ptr, out_row, x_row, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    tl.store(out_ptr + row * out_row + lanes, tl.load(x_ptr + row * x_row + lanes) * 2)


@st.composite
def cases(draw):
    shape = (draw(ks.dims("rows", max_value=16384)), WIDTH)
    return kcheck.Case(
        out=draw(ks.outputs(shape, "float32", kinds=["contiguous"])),
        x=draw(ks.tensors(shape, "float32", kinds=["contiguous", "narrowed"])),
    )


@kcheck.target(cases=cases(), oracle=lambda out, x: x * 2, kernels=[double_rows_kernel], outputs=["out"])
def doubled(out, x):
    double_rows_kernel[(x.shape[0],)](out, x, out.stride(0), x.stride(0), WIDTH)
