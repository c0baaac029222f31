"""Doubling in tiles of 64. The wrong kernel masks its load and forgets the mask of its store: the last tile runs past
the end of the output, also of a contiguous one.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def double_kernel(y_ptr, x_ptr, count, y_stride, x_stride, MASKED: tl.constexpr, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x_ptr + lanes * x_stride, mask=lanes < count, other=0.0)
    if MASKED:
        tl.store(y_ptr + lanes * y_stride, 2 * values, mask=lanes < count)
    else:
        tl.store(y_ptr + lanes * y_stride, 2 * values)


def launch(y, x, masked):
    count = x.shape[0]
    double_kernel[(triton.cdiv(count, 64),)](y, x, count, y.stride(0), x.stride(0), MASKED=masked, TILE=64)


def oracle(y, x):
    return 2 * x


@st.composite
def cases(draw):
    count = draw(ks.dims("count", max_value=200, boundaries=[63, 64, 65]))
    return kcheck.Case(y=draw(ks.outputs((count,), "float32")), x=draw(ks.tensors((count,), "float32")))


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[double_kernel], outputs=["y"])


@target
def wrong(y, x):
    launch(y, x, masked=False)


@target
def fixed(y, x):
    launch(y, x, masked=True)
