"""Merge two parts of an attention by the logarithms of their sums, ``lse``, (heads, tokens).

The wrong one reads both with the strides of the first. One may be a part of a longer one: ``lse[:, :tokens]``.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def merge_kernel(out, a, b, lse_a, lse_b, size, a_head, a_token, b_head, b_token, BLOCK: tl.constexpr):
    token, head, lane = tl.program_id(0), tl.program_id(1), tl.arange(0, BLOCK)
    first = tl.load(lse_a + head * a_head + token * a_token)
    second = tl.load(lse_b + head * b_head + token * b_token)
    share = tl.sigmoid(first - second)
    place = (token * tl.num_programs(1) + head) * size + lane
    left, right = tl.load(a + place, mask=lane < size), tl.load(b + place, mask=lane < size)
    tl.store(out + place, share * left + (1 - share) * right, mask=lane < size)


def launch(a, b, lse_a, lse_b, b_strides):
    out = torch.empty_like(a)
    merge_kernel[a.shape[:2]](out, a, b, lse_a, lse_b, a.shape[2], *lse_a.stride(), *b_strides, BLOCK=16)
    return out


def oracle(a, b, lse_a, lse_b):
    share = torch.sigmoid(lse_a - lse_b).T[:, :, None]
    return share * a + (1 - share) * b


@st.composite
def cases(draw):
    tokens, heads = draw(ks.dims("tokens", max_value=16)), draw(ks.dims("heads", max_value=8))
    parts = ks.tensors((tokens, heads, 16), kinds=["contiguous"])
    return kcheck.Case(
        a=draw(parts), b=draw(parts), lse_a=draw(ks.tensors((heads, tokens))), lse_b=draw(ks.tensors((heads, tokens)))
    )


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[merge_kernel])


@declare
def merge_states(a, b, lse_a, lse_b):
    return launch(a, b, lse_a, lse_b, lse_b.stride())


@declare
def merge_states_wrong(a, b, lse_a, lse_b):
    return launch(a, b, lse_a, lse_b, lse_a.stride())
