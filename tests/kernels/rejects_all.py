"""Doubling whose wrapper refuses every case, contiguous ones too."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def double_kernel(out_ptr, x_ptr, count, out_stride, x_stride, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x_ptr + lanes * x_stride, mask=lanes < count, other=0.0)
    tl.store(out_ptr + lanes * out_stride, 2 * values, mask=lanes < count)


def launch(out, x):
    double_kernel[(triton.cdiv(x.shape[0], 16),)](out, x, x.shape[0], out.stride(0), x.stride(0), TILE=16)


@st.composite
def cases(draw):
    count = draw(ks.dims("count", max_value=40))
    return kcheck.Case(out=draw(ks.outputs((count,), "float32")), x=draw(ks.tensors((count,), "float32")))


def oracle(out, x):
    return 2 * x


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[double_kernel], outputs=["out"])


@target
def wrong(out, x):
    if x.dim() != 2:
        raise ValueError(f"x has {x.dim()} dimensions; expected 2")
    launch(out, x)


@target
def fixed(out, x):
    launch(out, x)
