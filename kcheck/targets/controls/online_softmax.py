"""Control: softmax in one pass over the tiles of a row. Whole tiles may be masked, and hold minus infinity alone."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def softmax_kernel(out, x, lengths, columns, x_row, x_column, TILE: tl.constexpr):
    row, length = tl.program_id(0), tl.load(lengths + tl.program_id(0))
    most, total = float("-inf"), 0.0
    for start in range(0, columns, TILE):
        column = start + tl.arange(0, TILE)
        value = tl.load(x + row * x_row + column * x_column, mask=column < length, other=float("-inf"))
        above = tl.maximum(most, tl.max(value, axis=0))
        safe = tl.where(above == float("-inf"), 0.0, above)  # nothing seen so far: inf minus inf would be NaN
        total = total * tl.exp(most - safe) + tl.sum(tl.exp(value - safe), axis=0)
        most = above
    safe, total = tl.where(most == float("-inf"), 0.0, most), tl.where(total == 0.0, 1.0, total)
    for start in range(0, columns, TILE):
        column = start + tl.arange(0, TILE)
        value = tl.load(x + row * x_row + column * x_column, mask=column < length, other=float("-inf"))
        tl.store(out + row * columns + column, tl.exp(value - safe) / total, mask=column < columns)


def tail(x, lengths):
    return torch.arange(x.shape[1], device=x.device) >= lengths[:, None]


def oracle(x, lengths):
    return x.masked_fill(tail(x, lengths), float("-inf")).softmax(1).nan_to_num(0.0)


@st.composite
def cases(draw):
    rows, columns = draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=64, boundaries=[16]))
    lengths = draw(ks.tensors((rows,), "int32", low=0, high=columns, kinds=ks.DENSE))
    return kcheck.Case(x=draw(ks.tensors((rows, columns), exponent=4)), lengths=lengths)


@kcheck.target(cases=cases(), oracle=oracle, kernels=[softmax_kernel], dead={"x": tail})
def online_softmax(x, lengths):
    out = torch.empty(x.shape, device=x.device)
    softmax_kernel[lengths.shape](out, x, lengths, x.shape[1], *x.stride(), TILE=16)
    return out
