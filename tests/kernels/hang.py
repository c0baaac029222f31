"""A sum that walks over its input. The wrong one steps by the stride until it has passed the last element, and never
passes it in an expanded input, whose stride is 0.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def sum_by_offset_kernel(total_ptr, x_ptr, count, x_stride):
    total, offset = 0.0, 0
    while offset <= (count - 1) * x_stride:
        total += tl.load(x_ptr + offset)
        offset += x_stride
    tl.store(total_ptr, total)


@triton.jit
def sum_by_index_kernel(total_ptr, x_ptr, count, x_stride):
    total, index = 0.0, 0
    while index < count:
        total += tl.load(x_ptr + index * x_stride)
        index += 1
    tl.store(total_ptr, total)


@st.composite
def cases(draw):
    count = draw(ks.dims("count", min_value=2, max_value=8))
    return kcheck.Case(total=draw(ks.outputs((1,), "float32")), x=draw(ks.tensors((count,), "float32")))


def oracle(total, x):
    return x.sum(dim=0, keepdim=True)


@kcheck.target(cases=cases(), oracle=oracle, kernels=[sum_by_offset_kernel], outputs=["total"])
def wrong(total, x):
    sum_by_offset_kernel[(1,)](total, x, x.shape[0], x.stride(0))


@kcheck.target(cases=cases(), oracle=oracle, kernels=[sum_by_index_kernel], outputs=["total"])
def fixed(total, x):
    sum_by_index_kernel[(1,)](total, x, x.shape[0], x.stride(0))
