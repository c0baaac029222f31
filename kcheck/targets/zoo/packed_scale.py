"""Scale packed sequences, each by a factor of its own.

The last tile of a sequence is not full. The wrong one masks it by the end of all tokens, and writes into the sequence
behind it, which another program writes too.
"""
# mypy: ignore-errors

import itertools

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.fill import Fill


@triton.jit
def packed_kernel(out, x, factors, starts, total, x_stride, OWN_END: tl.constexpr, TILE: tl.constexpr):
    sequence = tl.program_id(0)
    start, end = tl.load(starts + sequence), tl.load(starts + sequence + 1)
    factor = tl.load(factors + sequence)
    for first in range(start, end, TILE):
        token = first + tl.arange(0, TILE)
        mask = token < end if OWN_END else token < total
        tl.store(out + token, factor * tl.load(x + token * x_stride, mask=mask), mask=mask)


def launch(x, factors, starts, own_end):
    out = torch.empty(x.shape, device=x.device)
    packed_kernel[factors.shape](out, x, factors, starts, x.shape[0], x.stride(0), OWN_END=own_end, TILE=8)
    return out


def oracle(x, factors, starts):
    return x * factors.repeat_interleave(starts.diff().long())


@st.composite
def cases(draw):
    lengths = draw(st.lists(st.integers(1, 20), min_size=1, max_size=6))
    starts = [0, *itertools.accumulate(lengths)]
    return kcheck.Case(
        x=draw(ks.tensors((starts[-1],))),
        factors=draw(ks.tensors((len(lengths),), kinds=ks.DENSE)),
        starts=draw(ks.tensors((len(starts),), "int32", fill=Fill.of(starts), kinds=ks.DENSE)),
    )


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[packed_kernel])


@declare
def packed_scale(x, factors, starts):
    return launch(x, factors, starts, True)


@declare
def packed_scale_wrong(x, factors, starts):
    return launch(x, factors, starts, False)
