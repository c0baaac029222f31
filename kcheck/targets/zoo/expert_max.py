"""The largest router weight that each expert was given.

The wrong one updates all experts with one store. Two tokens of one expert are two values for one address, and a GPU may
keep either.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def max_kernel(most, weight, expert, tokens, w_stride, e_stride, ATOMIC: tl.constexpr, TILE: tl.constexpr):
    lane = tl.arange(0, TILE)
    index = tl.load(expert + lane * e_stride, mask=lane < tokens, other=0)
    value = tl.load(weight + lane * w_stride, mask=lane < tokens, other=0)
    if ATOMIC:
        tl.atomic_max(most + index, value, mask=lane < tokens)
    else:
        tl.store(most + index, tl.maximum(tl.load(most + index), value), mask=lane < tokens)


def launch(weight, expert, experts, atomic):
    most = torch.zeros(experts, dtype=torch.int32, device=weight.device)
    strides = weight.stride(0), expert.stride(0)
    max_kernel[(1,)](most, weight, expert, weight.shape[0], *strides, ATOMIC=atomic, TILE=32)
    return most


def oracle(weight, expert, experts):
    most = torch.zeros(experts, dtype=torch.int32, device=weight.device)
    return most.scatter_reduce(0, expert.long(), weight, "amax")


@st.composite
def cases(draw):
    tokens, experts = draw(ks.dims("tokens", max_value=32)), draw(ks.options("experts", [8, 16]))
    weight = draw(ks.tensors((tokens,), "int32", low=0, high=1000))
    return kcheck.Case(
        weight=weight, expert=draw(ks.indices((tokens,), bound=experts, kinds=ks.WRITABLE)), experts=experts
    )


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[max_kernel])


@declare
def expert_max(weight, expert, experts):
    return launch(weight, expert, experts, True)


@declare
def expert_max_wrong(weight, expert, experts):
    return launch(weight, expert, experts, False)
