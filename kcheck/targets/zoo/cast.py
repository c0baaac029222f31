"""Cast to bf16, in tiles. The wrong one rounds the number of programs down, and the last elements are never written."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def cast_kernel(out, x, count, out_stride, x_stride, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    value = tl.load(x + lane * x_stride, mask=lane < count)
    tl.store(out + lane * out_stride, value.to(tl.bfloat16), mask=lane < count)


def launch(out, x, programs):
    cast_kernel[(programs,)](out, x, x.shape[0], out.stride(0), x.stride(0), TILE=16)


@st.composite
def cases(draw):
    shape = (draw(ks.dims("count", min_value=16, max_value=100)),)
    return kcheck.Case(out=draw(ks.outputs(shape, "bfloat16")), x=draw(ks.tensors(shape)))


declare = kcheck.target(cases=cases(), oracle=lambda out, x: x.bfloat16(), kernels=[cast_kernel], outputs=["out"])


@declare
def cast(out, x):
    launch(out, x, triton.cdiv(x.shape[0], 16))


@declare
def cast_wrong(out, x):
    launch(out, x, x.shape[0] // 16)
