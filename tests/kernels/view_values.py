"""Memory without a value, lanes without a value, and offsets that wrap, before and after a fix."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.layout import LayoutKind


@triton.jit
def padded_sum_kernel(out_ptr, parts_ptr, x_ptr, count, x_stride, MASKED: tl.constexpr, TILE: tl.constexpr):
    """Parts of a sum go through scratch that is as long as a tile; the tail of it is not written."""
    lanes = tl.arange(0, TILE)
    mask = lanes < count
    tl.store(parts_ptr + lanes, tl.load(x_ptr + lanes * x_stride, mask=mask, other=0.0), mask=mask)
    if MASKED:
        parts = tl.load(parts_ptr + lanes, mask=mask, other=0.0)
    else:
        parts = tl.load(parts_ptr + lanes)
    tl.store(out_ptr, tl.sum(parts, axis=0))


@triton.jit
def zeroed_kernel(out_ptr, parts_ptr, x_ptr, count, x_stride, SELECTED: tl.constexpr, TILE: tl.constexpr):
    """As before, but the tail is made zero after the load: by a product, which keeps NaN, or by a choice."""
    lanes = tl.arange(0, TILE)
    mask = lanes < count
    tl.store(parts_ptr + lanes, tl.load(x_ptr + lanes * x_stride, mask=mask, other=0.0), mask=mask)
    parts = tl.load(parts_ptr + lanes)
    parts = tl.where(mask, parts, 0.0) if SELECTED else parts * mask.to(tl.float32)
    tl.store(out_ptr, tl.sum(parts, axis=0))


@triton.jit
def row_max_kernel(out_ptr, x_ptr, columns, x_row, x_column, FILLED: tl.constexpr, TILE: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, TILE)
    mask = lanes < columns
    if FILLED:
        values = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=float("-inf"))
    else:
        values = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask)
    tl.store(out_ptr + row, tl.max(values, axis=0))


@triton.jit
def rows_kernel(out_ptr, x_ptr, columns, x_row, x_column, WIDE: tl.constexpr, TILE: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, TILE)
    start = row.to(tl.int64) * x_row if WIDE else row * x_row
    mask = lanes < columns
    values = tl.load(x_ptr + start + lanes * x_column, mask=mask, other=0.0)
    tl.store(out_ptr + row * columns + lanes, values, mask=mask)


@triton.jit
def hashed_kernel(out_ptr, table_ptr, x_ptr, count, x_stride, TILE: tl.constexpr):
    """A hash wraps by design."""
    lanes = tl.arange(0, TILE)
    mask = lanes < count
    slot = (tl.load(x_ptr + lanes * x_stride, mask=mask, other=0) * 1103515245 + 12345) & 7
    tl.store(out_ptr + lanes, tl.load(table_ptr + slot, mask=mask, other=0), mask=mask)


@triton.jit
def clamped_rows_kernel(out_ptr, ids_ptr, pool_ptr, pool_row, width, GUARDED: tl.constexpr, TILE: tl.constexpr):
    """Rows of a pool by their ids, where -1 is padding."""
    row, lanes = tl.program_id(0), tl.arange(0, TILE)
    page = tl.load(ids_ptr + row)
    mask = (lanes < width) & (page >= 0) if GUARDED else lanes < width
    values = tl.load(pool_ptr + page * pool_row + lanes, mask=mask, other=0.0)
    tl.store(out_ptr + row * width + lanes, values, mask=lanes < width)


@triton.jit
def clear_kernel(out_ptr, value, columns, row_stride, BY_STRIDE: tl.constexpr, TILE: tl.constexpr):
    """Fills rows; the wrong one takes the stride for the width."""
    row, lanes = tl.program_id(0), tl.arange(0, TILE)
    width = row_stride if BY_STRIDE else columns
    tl.store(out_ptr + row * row_stride + lanes, tl.zeros((TILE,), tl.float32) + value, mask=lanes < width)


@st.composite
def vectors(draw):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", min_value=1, max_value=15)),), "float32")))


def through_scratch(x, kernel, good):
    out, parts = torch.empty(1, device=x.device), torch.empty(16, device=x.device)
    kernel[(1,)](out, parts, x, x.shape[0], x.stride(0), good, TILE=16)
    return out


def summed(x):
    return x.sum().reshape(1)


@kcheck.target(cases=vectors(), oracle=summed, kernels=[padded_sum_kernel])
def padded_sum_wrong(x):
    return through_scratch(x, padded_sum_kernel, False)


@kcheck.target(cases=vectors(), oracle=summed, kernels=[padded_sum_kernel])
def padded_sum_right(x):
    return through_scratch(x, padded_sum_kernel, True)


@kcheck.target(cases=vectors(), oracle=summed, kernels=[zeroed_kernel])
def zeroed_wrong(x):
    return through_scratch(x, zeroed_kernel, False)


@kcheck.target(cases=vectors(), oracle=summed, kernels=[zeroed_kernel])
def zeroed_harmless(x):
    return through_scratch(x, zeroed_kernel, True)


@st.composite
def matrices(draw):
    shape = (draw(ks.dims("rows", max_value=4)), draw(ks.dims("columns", min_value=2, max_value=15)))
    return kcheck.Case(x=draw(ks.tensors(shape, "float32")))


def row_max(x, filled):
    out = torch.empty(x.shape[0], device=x.device)
    row_max_kernel[(x.shape[0],)](out, x, x.shape[1], *x.stride(), FILLED=filled, TILE=16)
    return out


@kcheck.target(cases=matrices(), oracle=lambda x: x.amax(1), kernels=[row_max_kernel])
def row_max_wrong(x):
    return row_max(x, False)


@kcheck.target(cases=matrices(), oracle=lambda x: x.amax(1), kernels=[row_max_kernel])
def row_max_right(x):
    return row_max(x, True)


@st.composite
def far_rows(draw):
    shape = (draw(ks.dims("rows", min_value=3, max_value=4)), draw(ks.dims("columns", min_value=2, max_value=15)))
    return kcheck.Case(x=draw(ks.tensors(shape, "float32", kinds=ks.Kinds(frozenset(LayoutKind)))))


def rows(x, wide):
    out = torch.empty(x.shape, device=x.device)
    rows_kernel[(x.shape[0],)](out, x, x.shape[1], *x.stride(), WIDE=wide, TILE=16)
    return out


@kcheck.target(cases=far_rows(), oracle=lambda x: x.clone(), kernels=[rows_kernel])
def rows_wrong(x):
    return rows(x, False)


@kcheck.target(cases=far_rows(), oracle=lambda x: x.clone(), kernels=[rows_kernel])
def rows_right(x):
    return rows(x, True)


@st.composite
def keys(draw):
    x = draw(ks.tensors((draw(ks.dims("count", max_value=15)),), "int32", low=2**28, high=2**31 - 1))
    return kcheck.Case(x=x, table=draw(ks.tensors((8,), "int32", kinds=ks.DENSE)))


def looked_up(x, table):
    return table[(x.long() * 1103515245 + 12345) & 7]


@kcheck.target(cases=keys(), oracle=looked_up, kernels=[hashed_kernel])
def hashed(x, table):
    out = torch.empty_like(x)
    hashed_kernel[(1,)](out, table, x, x.shape[0], x.stride(0), TILE=16)
    return out


@st.composite
def pools(draw):
    rows, width = draw(ks.dims("rows", min_value=1, max_value=8)), draw(ks.options("width", [8, 16]))
    return kcheck.Case(
        ids=draw(ks.indices((rows,), bound=4, min_value=-1, dtype="int32", kinds=ks.DENSE)),
        pool=draw(ks.tensors((4, width), "float32", kinds=ks.CONTIGUOUS_LAST)),
    )


def picked(ids, pool):
    return torch.where((ids >= 0)[:, None], pool[ids.clamp(min=0).long()], 0.0)


def pick(ids, pool, guarded):
    out = torch.empty(ids.shape[0], pool.shape[1], device=ids.device)
    clamped_rows_kernel[ids.shape](out, ids, pool, pool.stride(0), pool.shape[1], GUARDED=guarded, TILE=16)
    return out


@kcheck.target(cases=pools(), oracle=picked, kernels=[clamped_rows_kernel])
def pick_wrong(ids, pool):
    return pick(ids, pool, False)


@kcheck.target(cases=pools(), oracle=picked, kernels=[clamped_rows_kernel])
def pick_right(ids, pool):
    return pick(ids, pool, True)


@st.composite
def blocks(draw):
    shape = (draw(ks.dims("rows", max_value=4)), draw(ks.dims("columns", max_value=12)))
    out = draw(ks.outputs(shape, "float32", kinds=ks.Kinds(ks.WRITABLE.allowed, unit_last=True)))
    return kcheck.Case(out=out, value=draw(ks.options("value", [1.0, 2.0])))


def filled(out, value):
    return torch.full_like(out, value)


def clear(out, value, by_stride):
    clear_kernel[(out.shape[0],)](out, value, out.shape[1], out.stride(0), BY_STRIDE=by_stride, TILE=64)


@kcheck.target(cases=blocks(), oracle=filled, kernels=[clear_kernel], outputs=["out"])
def clear_wrong(out, value):
    clear(out, value, True)


@kcheck.target(cases=blocks(), oracle=filled, kernels=[clear_kernel], outputs=["out"])
def clear_right(out, value):
    clear(out, value, False)
