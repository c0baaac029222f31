"""Control: an autotuned kernel that resets its output before each trial, with several configurations."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.autotune([triton.Config({"TILE": tile}) for tile in (16, 32, 64)], key=["count"], reset_to_zero=["total"])
@triton.jit
def sum_kernel(total, x, count, stride, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.atomic_add(total, tl.sum(tl.load(x + lane * stride, mask=lane < count, other=0), axis=0))


@st.composite
def cases(draw):
    count = draw(ks.dims("count", max_value=100, compiled=True))
    return kcheck.Case(x=draw(ks.tensors((count,), "int32")))


@kcheck.target(cases=cases(), oracle=lambda x: x.sum(0, True).int(), kernels=[sum_kernel])
def autotuned(x):
    total = torch.zeros(1, dtype=torch.int32, device=x.device)
    sum_kernel[lambda chosen: (triton.cdiv(x.shape[0], chosen["TILE"]),)](total, x, x.shape[0], x.stride(0))
    return total
