"""One result of many programs. Every program of the wrong one writes it: the last wins, which in program order is what
the oracle gives. The fixed one has a single writer; an atomic sum of integers is right in any order.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def last_kernel(out_ptr, x_ptr, x_stride, GUARDED: tl.constexpr):
    i = tl.program_id(0)
    value = tl.load(x_ptr + i * x_stride)
    if GUARDED:
        if i == tl.num_programs(0) - 1:
            tl.store(out_ptr, value)
    else:
        tl.store(out_ptr, value)


@triton.jit
def atomic_sum_kernel(out_ptr, x_ptr, x_stride):
    tl.atomic_add(out_ptr, tl.load(x_ptr + tl.program_id(0) * x_stride))


@st.composite
def cases(draw):
    count = draw(ks.dims("count", min_value=2, max_value=16))
    x = draw(ks.tensors((count,), "int32", low=-1000, high=1000))
    return kcheck.Case(out=draw(ks.outputs((1,), "int32")), x=x)


def last(out, x):
    return x[-1:]


def total(out, x):
    return x.sum(dim=0, keepdim=True).int()


@kcheck.target(cases=cases(), oracle=last, kernels=[last_kernel], outputs=["out"])
def wrong(out, x):
    last_kernel[(x.shape[0],)](out, x, x.stride(0), GUARDED=False)


@kcheck.target(cases=cases(), oracle=last, kernels=[last_kernel], outputs=["out"])
def fixed(out, x):
    last_kernel[(x.shape[0],)](out, x, x.stride(0), GUARDED=True)


@kcheck.target(cases=cases(), oracle=total, kernels=[atomic_sum_kernel], outputs=["out"], deterministic=True)
def atomic_sum(out, x):
    out.zero_()
    atomic_sum_kernel[(x.shape[0],)](out, x, x.stride(0))
