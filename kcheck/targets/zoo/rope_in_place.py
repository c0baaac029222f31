"""Rotary embedding that may work in place: the output is the input in some cases.

The wrong one gives each half of a row to a program of its own. Both halves of the result need both halves of the input,
so in place one program reads what the other one has written, or not yet.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def halves_kernel(out, x, angles, half, out_row, x_row, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, first, lane = tl.program_id(0), tl.program_id(1), tl.arange(0, BLOCK)
    mask = lane < half
    angle = tl.load(angles + row * half + lane, mask=mask)
    left = tl.load(x + row * x_row + lane, mask=mask)
    right = tl.load(x + row * x_row + half + lane, mask=mask)
    for part in range(first, 2, PARTS):
        turned = (
            left * tl.cos(angle) - right * tl.sin(angle) if part == 0 else right * tl.cos(angle) + left * tl.sin(angle)
        )
        tl.store(out + row * out_row + part * half + lane, turned, mask=mask)


def launch(out, x, angles, parts):
    rows, half = angles.shape
    halves_kernel[(rows, parts)](out, x, angles, half, out.stride(0), x.stride(0), PARTS=parts, BLOCK=32)


def oracle(out, x, angles):
    left, right = x.chunk(2, 1)
    return torch.cat([left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()], 1)


@st.composite
def cases(draw):
    rows, half = draw(ks.dims("rows", max_value=16)), draw(ks.dims("half", max_value=32))
    x = draw(ks.tensors((rows, 2 * half), kinds=ks.Kinds(ks.WRITABLE.allowed, unit_last=True)))
    out = x if draw(ks.options("in_place", [False, True])) else draw(ks.outputs(x.shape, kinds=ks.CONTIGUOUS_LAST))
    return kcheck.Case(out=out, x=x, angles=draw(ks.tensors((rows, half), kinds=ks.DENSE)))


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[halves_kernel], outputs=["out"], aliases={"out": "x"})


@declare
def rope_in_place(out, x, angles):
    launch(out, x, angles, 1)


@declare
def rope_in_place_wrong(out, x, angles):
    launch(out, x, angles, 2)
