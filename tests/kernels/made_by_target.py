"""Tensors that a wrapper makes itself: left unwritten, read before they are written, left behind."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def double_kernel(out_ptr, x_ptr, count, stride, WRITTEN: tl.constexpr, TILE: tl.constexpr):
    lanes = tl.arange(0, TILE)
    values = tl.load(x_ptr + lanes * stride, mask=lanes < count)
    tl.store(out_ptr + lanes, values * 2, mask=lanes < count - 1 if WRITTEN else lanes < count)


@triton.jit
def accumulate_kernel(out_ptr, x_ptr, count, stride, TILE: tl.constexpr):
    lanes = tl.arange(0, TILE)
    tl.atomic_add(out_ptr + lanes, tl.load(x_ptr + lanes * stride, mask=lanes < count), mask=lanes < count)


@triton.jit
def copy_kernel(out, x, count, TILE: tl.constexpr):
    lanes = tl.arange(0, TILE)
    tl.store(out + lanes, tl.load(x + lanes, mask=lanes < count + 1), mask=lanes < count)


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", max_value=20)),), "float32")))


def doubled(x, short):
    out = torch.empty(x.shape[0])
    double_kernel[(1,)](out, x, x.shape[0], x.stride(0), WRITTEN=short, TILE=32)
    return out


@kcheck.target(cases=cases(), oracle=lambda x: x * 2, kernels=[double_kernel])
def unwritten(x):
    return doubled(x, True)


@kcheck.target(cases=cases(), kernels=[double_kernel])
def unwritten_without_oracle(x):
    return doubled(x, True)


@kcheck.target(cases=cases(), oracle=lambda x: x * 2, kernels=[double_kernel], unwritten_ok=["return"])
def may_stay(x):
    return doubled(x, True)


@kcheck.target(cases=cases(), oracle=lambda x: x * 2, kernels=[double_kernel])
def fixed(x):
    return doubled(x, False)


@kcheck.target(cases=cases(), oracle=lambda x: x.clone(), kernels=[accumulate_kernel])
def into_empty(x):
    out = torch.empty(x.shape[0])
    accumulate_kernel[(1,)](out, x, x.shape[0], x.stride(0), TILE=32)
    return out


@kcheck.target(cases=cases(), oracle=lambda x: x.clone(), kernels=[accumulate_kernel])
def into_zeros(x):
    out = torch.zeros(x.shape[0])
    accumulate_kernel[(1,)](out, x, x.shape[0], x.stride(0), TILE=32)
    return out


@kcheck.target(cases=cases(), oracle=lambda x: x * 2, kernels=[copy_kernel])
def temporary(x):
    """Reads one element behind a temporary; the kernel's parameter has the name of the target's argument."""
    out, twice = torch.empty(x.shape[0]), x * 2
    copy_kernel[(1,)](out, twice, x.shape[0], TILE=32)
    return out
