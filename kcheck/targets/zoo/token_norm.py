"""Sum of squares of each token, over all its heads.

A tensor of one token is contiguous whatever its first stride is, and ``contiguous()`` leaves it alone. The wrong one
takes that stride for the number of elements of a token.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def norm_kernel(out, x, size, TILE: tl.constexpr):
    token, total = tl.program_id(0), tl.zeros((TILE,), tl.float32)
    for start in range(0, size, TILE):
        lane = start + tl.arange(0, TILE)
        value = tl.load(x + token * size + lane, mask=lane < size, other=0.0)
        total += value * value
    tl.store(out + token, tl.sum(total, axis=0))


def launch(x, size):
    out = torch.empty(x.shape[0], device=x.device)
    norm_kernel[out.shape](out, x, size, TILE=32)
    return out


@st.composite
def cases(draw):
    shape = draw(ks.dims("tokens", max_value=8)), draw(ks.dims("heads", max_value=8)), draw(ks.options("size", [8, 16]))
    return kcheck.Case(x=draw(ks.tensors(shape)))


declare = kcheck.target(cases=cases(), oracle=lambda x: x.square().sum((1, 2)), kernels=[norm_kernel])


@declare
def token_norm(x):
    return launch(x.contiguous(), x.shape[1] * x.shape[2])


@declare
def token_norm_wrong(x):
    x = x.contiguous()
    return launch(x, x.stride(0))
