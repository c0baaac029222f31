"""Dequantise rows of int8; each group of 16 columns has a scale, the last group may be smaller.

The wrong one computes the number of groups by a division that rounds down, and steps from row to row of the scales by
it.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def dequantise_kernel(out, q, scales, columns, scales_row, q_row, q_column, GROUP: tl.constexpr, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, TILE)
    mask = column < columns
    value = tl.load(q + row * q_row + column * q_column, mask=mask)
    scale = tl.load(scales + row * scales_row + column // GROUP, mask=mask)
    tl.store(out + row * columns + column, value * scale, mask=mask)


def launch(q, scales, groups):
    out = torch.empty(q.shape, device=q.device)
    dequantise_kernel[q.shape[:1]](out, q, scales, q.shape[1], groups, *q.stride(), GROUP=16, TILE=64)
    return out


def oracle(q, scales):
    return q * scales.repeat_interleave(16, 1)[:, : q.shape[1]]


@st.composite
def cases(draw):
    rows, columns = draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=64, boundaries=[16, 48]))
    scales = draw(ks.tensors((rows, -(-columns // 16)), kinds=ks.DENSE))
    return kcheck.Case(q=draw(ks.tensors((rows, columns), "int8")), scales=scales)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[dequantise_kernel])


@declare
def dequantise(q, scales):
    return launch(q, scales, triton.cdiv(q.shape[1], 16))


@declare
def dequantise_wrong(q, scales):
    return launch(q, scales, q.shape[1] // 16)
