"""A correct fp32 matmul, deep enough that torch's default tolerance alone calls it wrong."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

DEPTH = 1024


@triton.jit
def matmul_kernel(
    c_ptr, a_ptr, b_ptr, m, n, depth, c_row, c_col, a_row, a_col, b_row, b_col, TILE: tl.constexpr, STEP: tl.constexpr
):
    row, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, depth, STEP):
        k = start + tl.arange(0, STEP)
        a = tl.load(a_ptr + row[:, None] * a_row + k[None, :] * a_col, mask=row[:, None] < m, other=0.0)
        b = tl.load(b_ptr + k[:, None] * b_row + column[None, :] * b_col, mask=column[None, :] < n, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c_ptr + row[:, None] * c_row + column[None, :] * c_col, total, mask=inside)


@st.composite
def cases(draw):
    m, n = draw(ks.dims("m", max_value=20)), draw(ks.dims("n", max_value=20))
    return kcheck.Case(
        c=draw(ks.outputs((m, n), "float32")),
        a=draw(ks.tensors((m, DEPTH), "float32")),
        b=draw(ks.tensors((DEPTH, n), "float32")),
    )


@kcheck.target(cases=cases(), oracle=lambda c, a, b: a @ b, kernels=[matmul_kernel], outputs=["c"])
def matmul(c, a, b):
    grid = triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16)
    strides = (*c.stride(), *a.stride(), *b.stride())
    matmul_kernel[grid](c, a, b, a.shape[0], b.shape[1], DEPTH, *strides, TILE=16, STEP=64)
