"""The largest magnitude of each row, for a quantisation; tiles of a row are brought together by an atomic maximum.

The wrong one lets the maximum begin with what `torch.empty` holds.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def scale_kernel(most, x, columns, x_row, x_column, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    value = tl.load(x + row * x_row + column * x_column, mask=column < columns, other=0.0)
    tl.atomic_max(most + row, tl.max(tl.abs(value), axis=0))


def launch(most, x):
    grid = x.shape[0], triton.cdiv(x.shape[1], 32)
    scale_kernel[grid](most, x, x.shape[1], *x.stride(), TILE=32)
    return most


@st.composite
def cases(draw):
    shape = draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=100, boundaries=[32]))
    return kcheck.Case(x=draw(ks.tensors(shape)))


declare = kcheck.target(cases=cases(), oracle=lambda x: x.abs().amax(1), kernels=[scale_kernel], exact=True)


@declare
def row_scale(x):
    return launch(torch.zeros(x.shape[0], device=x.device), x)


@declare
def row_scale_wrong(x):
    return launch(torch.empty(x.shape[0], device=x.device), x)
