"""Rotary embedding of queries; a row of the table holds the cosines, then the sines, of a position.

A tile is wider than half a head of 96. The wrong kernel reads sines in every lane, and throws away what it has read
too much: behind the last position that is outside the table. Values agree with the oracle.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def rope_kernel(out, q, table, positions, half, q_row, q_column, table_row, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    token, lane = tl.program_id(0), tl.arange(0, BLOCK)
    mask = lane < half
    angles = table + tl.load(positions + token) * table_row
    cosine = tl.load(angles + lane, mask=mask)
    if MASKED:
        sine = tl.load(angles + half + lane, mask=mask)
    else:
        sine = tl.load(angles + half + lane)
    left = tl.load(q + token * q_row + lane * q_column, mask=mask)
    right = tl.load(q + token * q_row + (half + lane) * q_column, mask=mask)
    tl.store(out + token * 2 * half + lane, left * cosine - right * sine, mask=mask)
    tl.store(out + token * 2 * half + half + lane, right * cosine + left * sine, mask=mask)


def launch(q, table, positions, masked):
    tokens, size = q.shape
    out = torch.empty(tokens, size, device=q.device)
    rope_kernel[(tokens,)](out, q, table, positions, size // 2, *q.stride(), table.stride(0), MASKED=masked, BLOCK=64)
    return out


def oracle(q, table, positions):
    (left, right), (cosine, sine) = q.chunk(2, 1), table[positions.long()].chunk(2, 1)
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], 1)


@st.composite
def cases(draw):
    tokens, size = draw(ks.dims("tokens", max_value=16)), draw(ks.options("head_size", [64, 96, 128]))
    rows = draw(ks.dims("rows", max_value=8))
    return kcheck.Case(
        q=draw(ks.tensors((tokens, size))),
        table=draw(ks.tensors((rows, size), kinds=ks.CONTIGUOUS_LAST)),
        positions=draw(ks.indices((tokens,), bound=rows, kinds=ks.DENSE)),
    )


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[rope_kernel])


@declare
def rope(q, table, positions):
    return launch(q, table, positions, True)


@declare
def rope_wrong(q, table, positions):
    return launch(q, table, positions, False)
