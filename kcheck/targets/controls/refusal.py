"""Control: a wrapper that refuses what its kernel cannot do, before anything is launched."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def relu_kernel(out, x, columns, x_row, TILE: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, TILE)
    value = tl.load(x + row * x_row + column, mask=column < columns)
    tl.store(out + row * columns + column, tl.maximum(value, 0), mask=column < columns)


@st.composite
def cases(draw):
    shape = draw(ks.dims("rows", max_value=16)), draw(ks.dims("columns", max_value=40))
    return kcheck.Case(x=draw(ks.tensors(shape)))


@kcheck.target(cases=cases(), oracle=lambda x: x.relu(), kernels=[relu_kernel], exact=True)
def refusal(x):
    if x.stride(1) != 1:
        raise ValueError(f"x: its last stride is {x.stride(1)}; expected 1")
    if x.shape[1] > 32:
        raise NotImplementedError(f"x has {x.shape[1]} columns; at most 32 are supported")
    out = torch.empty(x.shape, device=x.device)
    relu_kernel[x.shape[:1]](out, x, x.shape[1], x.stride(0), TILE=32)
    return out
