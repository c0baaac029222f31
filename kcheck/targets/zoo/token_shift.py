"""Move tokens down by a few rows: ``out[row] = x[row - shift]``, and 0 where there is no such row.

The wrong one leaves out the rows without a source, and they keep what `torch.empty` held.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def shift_kernel(out, x, shift, x_row, ZEROS: tl.constexpr, SIZE: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, SIZE)
    source = row - shift
    if ZEROS:
        tl.store(out + row * SIZE + lane, tl.load(x + source * x_row + lane, mask=source >= 0, other=0.0))
    elif source >= 0:
        tl.store(out + row * SIZE + lane, tl.load(x + source * x_row + lane))


def launch(x, shift, zeros):
    out = torch.empty(x.shape, device=x.device)
    shift_kernel[x.shape[:1]](out, x, shift, x.stride(0), ZEROS=zeros, SIZE=x.shape[1])
    return out


def oracle(x, shift):
    return torch.cat([torch.zeros_like(x)[:shift], x])[: x.shape[0]]


@st.composite
def cases(draw):
    rows, shift = draw(ks.dims("rows", max_value=16)), draw(ks.options("shift", [0, 1, 3]))
    return kcheck.Case(x=draw(ks.tensors((rows, 8), kinds=ks.CONTIGUOUS_LAST)), shift=shift)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[shift_kernel])


@declare
def token_shift(x, shift):
    return launch(x, shift, True)


@declare
def token_shift_wrong(x, shift):
    return launch(x, shift, False)
