"""Softmax of logits that are a part of a padded matrix: ``padded[:, :vocabulary]``.

The wrong one takes the distance between two rows from the vocabulary size.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def softmax_kernel(out, logits, columns, row_stride, column_stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    value = tl.load(logits + row * row_stride + column * column_stride, mask=mask, other=float("-inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + column, power / tl.sum(power, axis=0), mask=mask)


def launch(logits, row_stride):
    rows, columns = logits.shape
    out = torch.empty(rows, columns, device=logits.device)
    softmax_kernel[(rows,)](out, logits, columns, row_stride, logits.stride(1), BLOCK=64)
    return out


@st.composite
def cases(draw):
    rows = draw(ks.dims("rows", max_value=16))
    vocabulary = draw(ks.dims("vocabulary", min_value=2, max_value=64))
    return kcheck.Case(logits=draw(ks.tensors((rows, vocabulary))))


declare = kcheck.target(cases=cases(), oracle=lambda logits: logits.softmax(1), kernels=[softmax_kernel])


@declare
def softmax(logits):
    return launch(logits, logits.stride(0))


@declare
def softmax_wrong(logits):
    return launch(logits, logits.shape[1])
