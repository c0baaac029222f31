"""How often each expert was chosen, counted by several programs.

The wrong one loads, adds and stores. One program after the other that is right; at the same time, counts are lost.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def count_kernel(counts, choice, tokens, stride, ATOMIC: tl.constexpr, TILE: tl.constexpr):
    expert, lane = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    chosen = tl.load(choice + lane * stride, mask=lane < tokens, other=-1) == expert
    count = tl.sum(chosen.to(tl.int32), axis=0)
    if ATOMIC:
        tl.atomic_add(counts + expert, count)
    else:
        tl.store(counts + expert, tl.load(counts + expert) + count)


def launch(choice, experts, atomic):
    counts = torch.zeros(experts, dtype=torch.int32, device=choice.device)
    grid = experts, triton.cdiv(choice.shape[0], 16)
    count_kernel[grid](counts, choice, choice.shape[0], choice.stride(0), ATOMIC=atomic, TILE=16)
    return counts


def oracle(choice, experts):
    return torch.bincount(choice.long(), minlength=experts).int()


@st.composite
def cases(draw):
    tokens, experts = draw(ks.dims("tokens", max_value=64, boundaries=[16, 32])), draw(ks.options("experts", [4, 8]))
    return kcheck.Case(choice=draw(ks.indices((tokens,), bound=experts)), experts=experts)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[count_kernel])


@declare
def expert_counts(choice, experts):
    return launch(choice, experts, True)


@declare
def expert_counts_wrong(choice, experts):
    return launch(choice, experts, False)
