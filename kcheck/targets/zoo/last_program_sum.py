"""Sum of a vector in one launch: the program that finishes last adds up the parts of the others.

The wrong one counts with a relaxed atomic: a part that another program has stored need not be seen yet.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def sum_kernel(out, parts, done, x, count, stride, ORDER: tl.constexpr, TILE: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    lane = program * TILE + tl.arange(0, TILE)
    tl.store(parts + program, tl.sum(tl.load(x + lane * stride, mask=lane < count, other=0), axis=0))
    if tl.atomic_add(done, 1, sem=ORDER) == programs - 1:
        index = tl.arange(0, TILE)
        tl.store(out, tl.sum(tl.load(parts + index, mask=index < programs, other=0), axis=0))


def launch(x, order):
    programs = triton.cdiv(x.shape[0], 16)
    out, parts = (torch.empty(size, dtype=torch.int32, device=x.device) for size in (1, programs))
    done = torch.zeros(1, dtype=torch.int32, device=x.device)
    sum_kernel[(programs,)](out, parts, done, x, x.shape[0], x.stride(0), ORDER=order, TILE=16)
    return out


@st.composite
def cases(draw):
    count = draw(ks.dims("count", max_value=200, boundaries=[16, 17, 32]))
    return kcheck.Case(x=draw(ks.tensors((count,), "int32")))


declare = kcheck.target(cases=cases(), oracle=lambda x: x.sum(0, True).int(), kernels=[sum_kernel])


@declare
def last_program_sum(x):
    return launch(x, "acq_rel")


@declare
def last_program_sum_wrong(x):
    return launch(x, "relaxed")
