"""Control: the places of lanes behind the end go round to the beginning.

The hint that places are consecutive is false there, and harmless: those lanes are masked.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def wrapped_kernel(out, x, count, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    place = tl.max_contiguous(tl.multiple_of(lane % count, TILE), TILE)
    tl.store(out + lane, tl.load(x + place, mask=lane < count) * 2, mask=lane < count)


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", max_value=100)),), kinds=["contiguous"])))


@kcheck.target(cases=cases(), oracle=lambda x: x * 2, kernels=[wrapped_kernel])
def wrapped_lanes(x):
    out = torch.empty(x.shape, device=x.device)
    wrapped_kernel[(triton.cdiv(x.shape[0], 32),)](out, x, x.shape[0], TILE=32)
    return out
