"""Rows minus their largest element. The result of the wrong one is right, but it leaves the difference in its input
too.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def shift_kernel(out_ptr, x_ptr, columns, out_row, out_column, x_row, x_column, IN_PLACE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, 64)
    inside = column < columns
    x_ptr += row * x_row + column * x_column
    values = tl.load(x_ptr, mask=inside, other=float("-inf"))
    values -= tl.max(values, axis=0)
    if IN_PLACE:
        tl.store(x_ptr, values, mask=inside)
    tl.store(out_ptr + row * out_row + column * out_column, values, mask=inside)


def launch(out, x, in_place):
    shift_kernel[(x.shape[0],)](out, x, x.shape[1], *out.stride(), *x.stride(), IN_PLACE=in_place)


def oracle(out, x):
    return x - x.amax(dim=1, keepdim=True)


@st.composite
def cases(draw):
    shape = (draw(ks.dims("rows", max_value=4)), draw(ks.dims("columns", min_value=2, max_value=64)))
    x = draw(ks.tensors(shape, "float32", kinds=ks.WRITABLE))  # an expanded input would differ in value too
    return kcheck.Case(out=draw(ks.outputs(shape, "float32")), x=x)


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[shift_kernel], outputs=["out"])


@target
def wrong(out, x):
    launch(out, x, in_place=True)


@target
def fixed(out, x):
    launch(out, x, in_place=False)
