"""Kernels that compute beside their addresses; none is launched."""
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def norm_kernel(out, x, row_stride, columns, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0) * row_stride
    column = tl.arange(0, BLOCK)
    value = tl.load(x + start + column, mask=column < columns, other=0.0)
    variance = tl.sum(value * value) / columns + eps
    tl.store(out + start + column, value * (1.0 / tl.sqrt(variance + 1)), mask=column < columns)
    tl.store(out + (columns - 1 - column), value, mask=(column < columns) & (column >= 0))


@triton.jit
def largest_kernel(out, x, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    most = tl.max(tl.load(x + column, mask=column < columns, other=-float("inf")))
    least = tl.min(tl.load(x + column, column < columns, other=0))
    tl.store(
        out + column,
        most - least,
        mask=column < columns,
    )
