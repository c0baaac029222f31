"""Scores of query heads against the keys of one token; several query heads share a key head.

The wrong one takes the key head as the remainder, where it is the quotient. With as many key heads as query heads, and
with a single key head, that is the same.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def score_kernel(out, q, k, key_heads, q_token, k_token, QUOTIENT: tl.constexpr, SIZE: tl.constexpr):
    token, head, heads, lane = tl.program_id(0), tl.program_id(1), tl.num_programs(1), tl.arange(0, SIZE)
    if QUOTIENT:
        shared = head // (heads // key_heads)
    else:
        shared = head % key_heads
    query = tl.load(q + token * q_token + head * SIZE + lane)
    key = tl.load(k + token * k_token + shared * SIZE + lane)
    tl.store(out + token * heads + head, tl.sum(query * key, axis=0))


def launch(q, k, quotient):
    out = torch.empty(q.shape[:2], device=q.device)
    score_kernel[q.shape[:2]](out, q, k, k.shape[1], q.stride(0), k.stride(0), QUOTIENT=quotient, SIZE=q.shape[2])
    return out


def oracle(q, k):
    return (q * k.repeat_interleave(q.shape[1] // k.shape[1], 1)).sum(2)


@st.composite
def cases(draw):
    tokens, key_heads = draw(ks.dims("tokens", max_value=16)), draw(ks.options("key_heads", [1, 2, 4]))
    heads = key_heads * draw(ks.options("group", [1, 2, 4]))
    q = draw(ks.tensors((tokens, heads, 8), kinds=["contiguous"]))
    return kcheck.Case(q=q, k=draw(ks.tensors((tokens, key_heads, 8), kinds=["contiguous"])))


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[score_kernel])


@declare
def grouped_heads(q, k):
    return launch(q, k, True)


@declare
def grouped_heads_wrong(q, k):
    return launch(q, k, False)
