"""Logits with a penalty for tokens that were seen.

The wrong one works in the logits that it was given, and the caller still needs them.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def penalty_kernel(out, logits, seen, columns, out_row, out_column, x_row, x_column, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, TILE)
    mask = column < columns
    value = tl.load(logits + row * x_row + column * x_column, mask=mask)
    again = tl.load(seen + row * columns + column, mask=mask, other=0) != 0
    tl.store(out + row * out_row + column * out_column, tl.where(again, value - 2.0, value), mask=mask)


def launch(out, logits, seen):
    penalty_kernel[seen.shape[:1]](out, logits, seen, seen.shape[1], *out.stride(), *logits.stride(), TILE=32)
    return out


def oracle(logits, seen):
    return logits - 2.0 * (seen != 0)


@st.composite
def cases(draw):
    shape = draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=32))
    logits = draw(ks.tensors(shape, kinds=ks.WRITABLE))
    return kcheck.Case(logits=logits, seen=draw(ks.tensors(shape, "int8", low=0, high=1, kinds=ks.DENSE)))


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[penalty_kernel])


@declare
def penalties(logits, seen):
    return launch(torch.empty_like(logits), logits, seen)


@declare
def penalties_wrong(logits, seen):
    return launch(logits, logits, seen)
