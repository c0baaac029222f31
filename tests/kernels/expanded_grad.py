"""Backward of a square. The wrong one reads the incoming gradient as if it were dense; the gradient of a sum is one
element expanded with stride 0.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def square_backward_kernel(
    dx_ptr, x_ptr, grad_ptr, columns, dx_row, dx_column, x_row, x_column, grad_row, grad_column, TILE: tl.constexpr
):
    row, column = tl.program_id(0), tl.arange(0, TILE)
    inside = column < columns
    x = tl.load(x_ptr + row * x_row + column * x_column, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + row * grad_row + column * grad_column, mask=inside, other=0.0)
    tl.store(dx_ptr + row * dx_row + column * dx_column, 2 * x * grad, mask=inside)


def launch(dx, x, grad, grad_strides):
    rows, columns = x.shape
    tile = triton.next_power_of_2(columns)
    square_backward_kernel[(rows,)](dx, x, grad, columns, *dx.stride(), *x.stride(), *grad_strides, TILE=tile)


def oracle(dx, x, grad):
    return 2 * x * grad


@st.composite
def cases(draw):
    shape = (draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=33)))
    return kcheck.Case(
        dx=draw(ks.outputs(shape, "float32")),
        x=draw(ks.tensors(shape, "float32")),
        grad=draw(ks.tensors(shape, "float32")),
    )


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[square_backward_kernel], outputs=["dx"])


@target
def wrong(dx, x, grad):
    launch(dx, x, grad, grad_strides=(grad.shape[1], 1))


@target
def fixed(dx, x, grad):
    launch(dx, x, grad, grad_strides=grad.stride())
