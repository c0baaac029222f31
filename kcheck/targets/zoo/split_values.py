"""Weighted sum of value vectors; programs share the vector among them, a tile each.

In the wrong one every program stores its tile at the front: they race, and the rest is never written.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def split_kernel(out, share, values, count, size, PLACED: tl.constexpr, TILE: tl.constexpr):
    row, lane = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE,), tl.float32)
    for index in range(0, count):
        weight = tl.load(share + row * count + index)
        total += weight * tl.load(values + index * size + lane, mask=lane < size, other=0.0)
    place = lane if PLACED else tl.arange(0, TILE)
    tl.store(out + row * size + place, total, mask=lane < size)


def launch(out, share, values, placed):
    count, size = values.shape
    grid = share.shape[0], triton.cdiv(size, 16)
    split_kernel[grid](out, share, values, count, size, PLACED=placed, TILE=16)


@st.composite
def cases(draw):
    rows, count = draw(ks.dims("rows", max_value=4)), draw(ks.dims("count", max_value=8))
    size = draw(ks.dims("size", min_value=8, max_value=64, boundaries=[16, 17]))
    return kcheck.Case(
        out=draw(ks.outputs((rows, size), kinds=ks.DENSE)),
        share=draw(ks.tensors((rows, count), kinds=ks.DENSE)),
        values=draw(ks.tensors((count, size), kinds=ks.DENSE)),
    )


def oracle(out, share, values):
    return share @ values


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[split_kernel], outputs=["out"])


@declare
def split_values(out, share, values):
    launch(out, share, values, True)


@declare
def split_values_wrong(out, share, values):
    launch(out, share, values, False)
