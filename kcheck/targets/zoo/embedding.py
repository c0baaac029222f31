"""Rows of an embedding by their ids.

The wrong one multiplies a 32-bit id with the row stride: beyond 2**31 elements the product wraps. The `far` layout has
such rows, in memory that costs nothing.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.layout import LayoutKind


@triton.jit
def rows_kernel(out, weight, ids, row_stride, WIDE: tl.constexpr, SIZE: tl.constexpr):
    token, lane = tl.program_id(0), tl.arange(0, SIZE)
    row = tl.load(ids + token)
    if WIDE:
        row = row.to(tl.int64)
    tl.store(out + token * SIZE + lane, tl.load(weight + row * row_stride + lane))


def launch(weight, ids, wide):
    out = torch.empty(ids.shape[0], weight.shape[1], device=weight.device)
    rows_kernel[ids.shape](out, weight, ids, weight.stride(0), WIDE=wide, SIZE=weight.shape[1])
    return out


@st.composite
def cases(draw):
    rows, tokens = draw(ks.dims("rows", min_value=3, max_value=16)), draw(ks.dims("tokens", max_value=16))
    weight = draw(ks.tensors((rows, 8), kinds=ks.Kinds(ks.CONTIGUOUS_LAST.allowed | {LayoutKind.FAR}, unit_last=True)))
    return kcheck.Case(weight=weight, ids=draw(ks.indices((tokens,), bound=rows, dtype="int32", kinds=ks.DENSE)))


declare = kcheck.target(cases=cases(), oracle=lambda weight, ids: weight[ids.long()], kernels=[rows_kernel])


@declare
def embedding(weight, ids):
    return launch(weight, ids, True)


@declare
def embedding_wrong(weight, ids):
    return launch(weight, ids, False)
