# mypy: ignore-errors
# ruff: noqa: SIM108
"""Kernels before and after a fix, and wrappers that launch them."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_rows(out, pool, table, pages, table_stride, PAGE: tl.constexpr):
    row = tl.program_id(0)
    page = tl.program_id(1)
    block = tl.load(table + row * table_stride + page)
    offs = tl.arange(0, PAGE)
    values = tl.load(pool + block * PAGE + offs)
    tl.store(out + (row * pages + page) * PAGE + offs, values)


def run_gather(out, pool, table, *, fixed):
    stride = table.stride(0) if fixed else table.shape[-1]
    gather_rows[tuple(table.shape)](out, pool, table, table.shape[1], stride, PAGE=pool.shape[1])


@triton.jit
def double(x, out, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offs, mask=offs < n, other=0.0)
    if MASKED:
        tl.store(out + offs, values * 2, mask=offs < n)
    else:
        tl.store(out + offs, values * 2)


def run_double(x, out, *, fixed):
    double[(triton.cdiv(x.numel(), 8),)](x, out, x.numel(), MASKED=fixed, BLOCK=8)


@triton.jit
def sum_pages(out, k, page_stride, SIZE: tl.constexpr):
    page = tl.program_id(0)
    offs = tl.arange(0, SIZE)
    tl.store(out + page, tl.sum(tl.load(k + page * page_stride + offs), axis=0))


def run_sum_pages(out, k, *, fixed):
    sum_pages[(k.shape[0],)](out, k, k.stride(0) if fixed else k.shape[1], SIZE=k.shape[1])


@triton.jit
def shift(x, out, n, by, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs + by, mask=offs < n), mask=offs < n)


@triton.jit
def sum_tables(pointers, out, n, BLOCK: tl.constexpr):
    start = tl.load(pointers + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    offs = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(start + offs, mask=offs < n, other=0.0), axis=0))


@triton.jit
def two_steps(x, scratch, out, n, slack, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(scratch + offs, tl.load(x + offs, mask=offs < n) * 2, mask=offs < n + slack)
    tl.store(out + offs, tl.load(scratch + offs, mask=offs < n) + 1, mask=offs < n)


def run_two_steps(x, out, *, slack):
    scratch = torch.empty(x.numel())
    two_steps[(1,)](x, scratch, out, x.numel(), slack, BLOCK=16)


@triton.jit
def _read_row(x, row, stride, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    return tl.load(x + row * stride + offs)


@triton.jit
def _row_total(x, row, stride, BLOCK: tl.constexpr):
    return tl.sum(_read_row(x, row, stride, BLOCK), axis=0)


@triton.jit
def row_totals(x, out, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out + row, _row_total(x, row, stride, BLOCK))


@triton.jit
def copy_dense(x, out, n, stride, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs * stride, mask=offs < n), mask=offs < n)


@triton.jit
def previous(x, out, n, CLAMP: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    if CLAMP:
        before = tl.load(x + offs - 1, mask=mask & (offs > 0), other=0.0)
    else:
        before = tl.load(x + offs - 1, mask=mask)
    tl.store(out + offs, before, mask=mask)


@triton.jit
def clear(x, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x + offs, 0.0, mask=offs < n)


@triton.jit
def same_line_twice(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    a = tl.load(x + offs)
    offs += n
    a = tl.load(x + offs)
    tl.store(out + tl.arange(0, BLOCK), a)


@triton.jit
def copy_matrix(x, out, M, N, xm, xn, om, on, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (rows < M) & (columns < N)
    tl.store(out + rows * om + columns * on, tl.load(x + rows * xm + columns * xn, mask=mask), mask=mask)


def run_copy_matrix(x, out):
    M, N = x.shape
    grid = (triton.cdiv(M, 4), triton.cdiv(N, 4))
    copy_matrix[grid](x, out, M, N, *x.stride(), *out.stride(), BM=4, BN=4)


@triton.jit
def add_atomically(x, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.atomic_add(x + offs, 1.0, mask=offs < n)


@triton.jit
def far_away(x, index, out):
    tl.store(out, tl.load(x + tl.load(index)))


@triton.jit
def misaligned(x, out):
    wide = (x.to(tl.pointer_type(tl.int8)) + 2).to(tl.pointer_type(tl.float32))
    tl.store(out, tl.load(wide))


@triton.jit
def touch(x, offsets, mask, out, values, n, WRITE: tl.constexpr, BLOCK: tl.constexpr):
    """One access through `x` at offsets that the test chooses; `out` and `values` are dense."""
    lanes = tl.arange(0, BLOCK)
    where = tl.load(offsets + lanes)
    active = tl.load(mask + lanes) != 0
    if WRITE:
        tl.store(x + where, tl.load(values + lanes), mask=active)
    else:
        tl.store(out + lanes, tl.load(x + where, mask=active, other=0))


@triton.jit
def walk(x, out, n, steps):
    total = 0.0
    for i in range(0, steps):
        total += tl.load(x + i)
    tl.store(out + tl.program_id(0), total)


@triton.jit
def address_of(x, out):
    tl.store(out, x.to(tl.int64))


@triton.jit
def misspelt(x):
    tl.store(x, tl.laod(x))
