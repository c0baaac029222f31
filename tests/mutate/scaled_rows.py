"""Rows times two: a right kernel, with a target that draws any layout and one that draws dense ones only."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def doubled(value):
    return value * 2


@triton.jit
def scale_kernel(out, x, columns, out_stride, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(
        x + row * row_stride + column * column_stride,
        mask=inside,  # é: bytes are not characters
        other=0.0,
    )
    tl.store(out + row * out_stride + column, doubled(value), mask=inside)


class Scale:
    @staticmethod
    def launch(x):
        rows, columns = x.shape
        out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
        if x.dtype == torch.float64:  # no target draws it
            x = x.contiguous()
        grid = rows, triton.cdiv(columns, 16)
        scale_kernel[grid](out, x, columns, out.stride(0), x.stride(0), x.stride(1), BLOCK=16)
        return out


def cases(kinds):
    @st.composite
    def draw_case(draw):
        shape = draw(ks.dims("rows", min_value=1, max_value=9)), draw(ks.dims("columns", min_value=1, max_value=40))
        return kcheck.Case(x=draw(ks.tensors(shape, "float32", kinds=kinds)))

    return draw_case()


@kcheck.target(cases=cases(ks.ANY), oracle=lambda x: x * 2, kernels=[scale_kernel])
def any_layout(x):
    return Scale.launch(x)


@kcheck.target(cases=cases(ks.DENSE), oracle=lambda x: x * 2, kernels=[scale_kernel])
def dense_only(x):
    return Scale.launch(x)


@kcheck.target(cases=cases(ks.ANY), oracle=lambda x: x * 3)
def wrong_oracle(x):
    return Scale.launch(x)


@kcheck.target(cases=cases(ks.ANY), oracle=lambda x: x * 2)
def no_kernel(x):
    return x * 2
