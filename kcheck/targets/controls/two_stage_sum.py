"""Control: a float sum in two launches, parts first: the same bits in every run, though not those of torch."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def sum_kernel(out, x, count, stride, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    value = tl.load(x + lane * stride, mask=lane < count, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(value, axis=0))


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", max_value=500)),), exponent=8)))


@kcheck.target(cases=cases(), oracle=lambda x: x.sum(0, True), kernels=[sum_kernel], deterministic=True)
def two_stage_sum(x):
    programs = triton.cdiv(x.shape[0], 32)
    parts, out = torch.empty(programs, device=x.device), torch.empty(1, device=x.device)
    sum_kernel[(programs,)](parts, x, x.shape[0], x.stride(0), TILE=32)
    sum_kernel[(1,)](out, parts, programs, 1, TILE=32)
    return out
