"""Keep the last inputs of each request for the next step of a causal convolution, three tokens wide.

A request that is shorter keeps a part of its old state. The wrong one reads in front of its first token: the last ones
of the request before it, or nothing at all.
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
def state_kernel(state, x, starts, x_row, x_column, GUARDED: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    request, lane = tl.program_id(0), tl.arange(0, SIZE)
    start, end = tl.load(starts + request), tl.load(starts + request + 1)
    for place in range(0, WIDTH):  # upwards: an old entry moves down before it is overwritten
        token = end - WIDTH + place
        entry = state + (request * WIDTH + place) * SIZE + lane
        if (token >= start) | (not GUARDED):
            tl.store(entry, tl.load(x + token * x_row + lane * x_column))
        else:
            tl.store(entry, tl.load(entry + (end - start) * SIZE))


def launch(state, x, starts, guarded):
    sizes = {"WIDTH": state.shape[1], "SIZE": state.shape[2]}
    state_kernel[state.shape[:1]](state, x, starts, *x.stride(), GUARDED=guarded, **sizes)


def oracle(state, x, starts):
    for request, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
        state[request] = torch.cat([state[request], x[start:end]])[-state.shape[1] :]
    return state


@st.composite
def cases(draw):
    lengths = draw(st.lists(st.sampled_from([3, 1, 2, 4, 9]), min_size=1, max_size=6))
    starts = [0, *itertools.accumulate(lengths)]
    return kcheck.Case(
        state=draw(ks.inouts((len(lengths), 3, 8), kinds=["contiguous"])),
        x=draw(ks.tensors((starts[-1], 8))),
        starts=draw(ks.tensors((len(starts),), "int32", fill=Fill.of(starts), kinds=ks.DENSE)),
    )


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[state_kernel], inout=["state"])


@declare
def conv_state(state, x, starts):
    launch(state, x, starts, True)


@declare
def conv_state_wrong(state, x, starts):
    launch(state, x, starts, False)
