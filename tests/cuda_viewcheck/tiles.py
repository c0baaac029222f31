"""Kernels whose accesses are linear forms; each reads once and writes once."""
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def row_kernel(out_ptr, x_ptr, count, step, start, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    value = tl.load(x_ptr + start + lane * step, mask=lane < count)
    tl.store(out_ptr + lane, value, mask=lane < count)


@triton.jit
def unmasked_kernel(out_ptr, x_ptr, count, step, start, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + lane, tl.load(x_ptr + (lane - start) * step))


@triton.jit
def window_kernel(out_ptr, x_ptr, count, step, start, TILE: tl.constexpr):
    lane = tl.arange(0, TILE)
    place = tl.program_id(0) * TILE + lane - start
    value = tl.load(x_ptr + place * step, mask=(place >= 0) & (place < count), other=0.0)
    tl.store(out_ptr + lane, value)


@triton.jit
def tile_kernel(out_ptr, x_ptr, count, step, start, TILE: tl.constexpr):
    row = tl.program_id(0) * 4 + tl.arange(0, 4)
    column = tl.arange(0, TILE)
    inside = (row < start)[:, None] & (column < count)[None, :]
    value = tl.load(x_ptr + row[:, None] * step + column[None, :], mask=inside)
    tl.store(out_ptr + row[:, None] * TILE + column[None, :], value, mask=inside)


@triton.jit
def backwards_kernel(out_ptr, x_ptr, count, step, start, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    value = tl.load(x_ptr + (count - 1 - lane) * step, mask=count > lane)
    tl.store(out_ptr + lane, value, mask=lane < count)
