"""A copy whose wrapper reads address 0 where the input is not contiguous: the process dies."""
# mypy: ignore-errors

import ctypes

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def copy_kernel(out_ptr, x_ptr, count, out_stride, x_stride, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x_ptr + lanes * x_stride, mask=lanes < count, other=0.0)
    tl.store(out_ptr + lanes * out_stride, values, mask=lanes < count)


@st.composite
def cases(draw):
    count = draw(ks.dims("count", max_value=40))
    return kcheck.Case(out=draw(ks.outputs((count,), "float32")), x=draw(ks.tensors((count,), "float32")))


def oracle(out, x):
    return x.clone()


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[copy_kernel], outputs=["out"])


@target
def wrong(out, x):
    if x.stride(0) != 1:
        ctypes.string_at(0)
    fixed.function(out, x)


@target
def fixed(out, x):
    copy_kernel[(triton.cdiv(x.shape[0], 16),)](out, x, x.shape[0], out.stride(0), x.stride(0), TILE=16)
