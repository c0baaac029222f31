"""Layer norm of rows that are narrower than a tile.

Lanes behind the row hold 0. After the mean is taken away they do not, and the wrong one counts them into the variance.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def norm_kernel(out, x, weight, columns, x_row, x_column, w_stride, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    value = tl.load(x + row * x_row + column * x_column, mask=mask, other=0.0)
    value -= tl.sum(value, axis=0) / columns
    if MASKED:
        value = tl.where(mask, value, 0.0)
    scale = 1 / tl.sqrt(tl.sum(value * value, axis=0) / columns + 1e-5)
    factor = tl.load(weight + column * w_stride, mask=mask)
    tl.store(out + row * columns + column, value * scale * factor, mask=mask)


def launch(x, weight, masked):
    rows, columns = x.shape
    out = torch.empty(rows, columns, device=x.device)
    norm_kernel[(rows,)](out, x, weight, columns, *x.stride(), weight.stride(0), MASKED=masked, BLOCK=64)
    return out


def oracle(x, weight):
    return torch.nn.functional.layer_norm(x, weight.shape, weight)


@st.composite
def cases(draw):
    shape = draw(ks.dims("rows", max_value=16)), draw(ks.dims("columns", min_value=2, max_value=64))
    return kcheck.Case(x=draw(ks.tensors(shape)), weight=draw(ks.tensors(shape[1:])))


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[norm_kernel])


@declare
def layer_norm(x, weight):
    return launch(x, weight, True)


@declare
def layer_norm_wrong(x, weight):
    return launch(x, weight, False)
