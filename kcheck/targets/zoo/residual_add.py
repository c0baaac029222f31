"""Add a residual, in tiles. The wrong one does not mask the store of the last tile, and writes past the end."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def add_kernel(out, x, residual, count, out_stride, x_stride, r_stride, MASKED: tl.constexpr, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    value = tl.load(x + lane * x_stride, mask=lane < count) + tl.load(residual + lane * r_stride, mask=lane < count)
    if MASKED:
        tl.store(out + lane * out_stride, value, mask=lane < count)
    else:
        tl.store(out + lane * out_stride, value)


def launch(out, x, residual, masked):
    strides = out.stride(0), x.stride(0), residual.stride(0)
    grid = (triton.cdiv(x.shape[0], 32),)
    add_kernel[grid](out, x, residual, x.shape[0], *strides, MASKED=masked, TILE=32)


@st.composite
def cases(draw):
    shape = (draw(ks.dims("count", max_value=100, boundaries=[32, 64])),)
    dtype = draw(ks.options("dtype", ["float32", "bfloat16"]))
    x, residual = draw(ks.tensors(shape, dtype)), draw(ks.tensors(shape, dtype))
    return kcheck.Case(out=draw(ks.outputs(shape, dtype)), x=x, residual=residual)


declare = kcheck.target(
    cases=cases(), oracle=lambda out, x, residual: x + residual, kernels=[add_kernel], outputs=["out"]
)


@declare
def residual_add(out, x, residual):
    launch(out, x, residual, True)


@declare
def residual_add_wrong(out, x, residual):
    launch(out, x, residual, False)
