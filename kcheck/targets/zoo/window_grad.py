"""The gradient of ``x[start : start + rows]``, where `start` may be negative: rows before the first were padding.

The wrong one clips the window at the end only, and writes in front of the gradient.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def window_kernel(dx, dy, start, rows, dx_row, dy_row, CLIPPED: tl.constexpr, SIZE: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, SIZE)
    target = start + row
    inside = (target >= 0) & (target < rows) if CLIPPED else target < rows
    value = tl.load(dy + row * dy_row + lane)
    tl.store(dx + target * dx_row + lane, value, mask=inside)


def launch(dx, dy, start, clipped):
    window_kernel[dy.shape[:1]](dx, dy, start, dx.shape[0], dx.stride(0), dy.stride(0), CLIPPED=clipped, SIZE=8)


def oracle(dx, dy, start):
    for row, value in enumerate(dy):
        if 0 <= start + row < dx.shape[0]:
            dx[start + row] = value
    return dx


@st.composite
def cases(draw):
    rows, window = draw(ks.dims("rows", max_value=16)), draw(ks.dims("window", max_value=8))
    start = draw(ks.options("start", [0, -1, 1, -3, 3, 15]))
    dx = draw(ks.inouts((rows, 8), kinds=ks.CONTIGUOUS_LAST))
    return kcheck.Case(dx=dx, dy=draw(ks.tensors((window, 8), kinds=ks.CONTIGUOUS_LAST)), start=start)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[window_kernel], inout=["dx"])


@declare
def window_grad(dx, dy, start):
    launch(dx, dy, start, True)


@declare
def window_grad_wrong(dx, dy, start):
    launch(dx, dy, start, False)
