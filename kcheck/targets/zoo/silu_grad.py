"""The gradient of ``x * sigmoid(x)``.

``y.sum().backward()`` sends in an expanded gradient: one element, strides 0. The wrong one reads it as if it were
contiguous.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def forward_kernel(y, x, columns, x_row, x_column, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * x_row + column * x_column, mask=column < columns)
    tl.store(y + row * columns + column, value * tl.sigmoid(value), mask=column < columns)


@triton.jit
def backward_kernel(dx, dy, x, columns, dy_row, dy_column, x_row, x_column, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * x_row + column * x_column, mask=column < columns)
    grad = tl.load(dy + row * dy_row + column * dy_column, mask=column < columns)
    gate = tl.sigmoid(value)
    tl.store(dx + row * columns + column, grad * gate * (1 + value * (1 - gate)), mask=column < columns)


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, right):
        ctx.save_for_backward(x)
        ctx.right = right
        y = torch.empty(x.shape, device=x.device)
        forward_kernel[(x.shape[0],)](y, x, x.shape[1], *x.stride(), BLOCK=32)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty(x.shape, device=x.device)
        strides = dy.stride() if ctx.right else (x.shape[1], 1)
        backward_kernel[(x.shape[0],)](dx, dy, x, x.shape[1], *strides, *x.stride(), BLOCK=32)
        return dx, None


@st.composite
def cases(draw):
    shape = draw(ks.dims("rows", max_value=16)), draw(ks.dims("columns", max_value=32))
    return kcheck.Case(x=draw(ks.tensors(shape)), grad_output=draw(ks.tensors(shape, kinds=["contiguous", "expanded"])))


declare = kcheck.target(cases=cases(), oracle=lambda x: x * x.sigmoid(), kernels=[backward_kernel], grad=["x"])


@declare
def silu_grad(x):
    return Silu.apply(x, True)


@declare
def silu_grad_wrong(x):
    return Silu.apply(x, False)
