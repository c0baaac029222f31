"""Sum of a vector of floats that must have the same bits in every run.

The wrong one adds the parts by float atomics, in the order in which programs happen to finish.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def stable_kernel(out, x, count, stride, TILE: tl.constexpr):
    total = tl.zeros((TILE,), tl.float32)
    for start in range(0, count, TILE):
        lane = start + tl.arange(0, TILE)
        total += tl.load(x + lane * stride, mask=lane < count, other=0.0)
    tl.store(out, tl.sum(total, axis=0))


@triton.jit
def atomic_kernel(out, x, count, stride, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.atomic_add(out, tl.sum(tl.load(x + lane * stride, mask=lane < count, other=0.0), axis=0))


@st.composite
def cases(draw):
    count = draw(ks.dims("count", max_value=200, boundaries=[16, 17, 32]))
    return kcheck.Case(x=draw(ks.tensors((count,))))


declare = kcheck.target(cases=cases(), oracle=lambda x: x.sum(0, True), deterministic=True)


@declare
def stable_sum(x):
    out = torch.zeros(1, device=x.device)
    stable_kernel[(1,)](out, x, x.shape[0], x.stride(0), TILE=16)
    return out


@declare
def stable_sum_wrong(x):
    out = torch.zeros(1, device=x.device)
    atomic_kernel[(triton.cdiv(x.shape[0], 16),)](out, x, x.shape[0], x.stride(0), TILE=16)
    return out
