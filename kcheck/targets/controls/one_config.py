"""Control: an autotuned kernel with one configuration, under heuristics that look at the arguments."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.autotune([triton.Config({"TILE": 32}, num_warps=2)], key=["columns"])
@triton.heuristics({"EVEN": lambda given: given["columns"] % given["TILE"] == 0})
@triton.jit
def square_kernel(out, x, columns, x_row, x_column, TILE: tl.constexpr, EVEN: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * TILE + tl.arange(0, TILE)
    if EVEN:  # no mask is needed
        value = tl.load(x + row * x_row + column * x_column)
        tl.store(out + row * columns + column, value * value)
    else:
        value = tl.load(x + row * x_row + column * x_column, mask=column < columns)
        tl.store(out + row * columns + column, value * value, mask=column < columns)


@st.composite
def cases(draw):
    shape = draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=96, boundaries=[32]))
    return kcheck.Case(x=draw(ks.tensors(shape)))


@kcheck.target(cases=cases(), oracle=lambda x: x * x, kernels=[square_kernel])
def one_config(x):
    out = torch.empty(x.shape, device=x.device)
    grid = x.shape[0], triton.cdiv(x.shape[1], 32)
    square_kernel[grid](out, x, x.shape[1], *x.stride())
    return out
