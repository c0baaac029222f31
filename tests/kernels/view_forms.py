"""One bug in many forms: rows of a matrix are copied with its width for its row stride; ``*_right`` passes the stride.

What differs is how the kernel gets at memory: by scalars, tiles, an alias, helpers, pointers that a loop moves or a
branch chooses, addresses in memory, descriptors, atomics.
"""

# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

TILE = 8
fetch = tl.load


@triton.jit
def scalar_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    for column in range(columns):
        tl.store(out_ptr + row * out_stride + column, tl.load(x_ptr + row * row_stride + column))


@triton.jit
def tile_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    value = tl.load(x_ptr + row * row_stride + lane, mask=lane < columns)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.jit
def alias_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    value = fetch(x_ptr + row * row_stride + lane, mask=lane < columns, other=0.0)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.jit
def fetch_row(x_ptr, row, row_stride, lane, columns):
    return tl.load(x_ptr + row * row_stride + lane, mask=lane < columns, other=0.0)


@triton.jit
def helper_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    value = fetch_row(x_ptr, row, row_stride, lane, columns)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.jit(noinline=True)
def fetch_element(x_ptr, row, row_stride, column):
    return tl.load(x_ptr + row * row_stride + column)


@triton.jit
def noinline_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    for column in range(columns):
        tl.store(out_ptr + row * out_stride + column, fetch_element(x_ptr, row, row_stride, column))


@triton.jit
def moved_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, 2)
    x_ptrs = x_ptr + row * row_stride + lane
    out_ptrs = out_ptr + row * out_stride + lane
    for start in range(0, columns, 2):
        value = tl.load(x_ptrs, mask=start + lane < columns)
        tl.store(out_ptrs, value, mask=start + lane < columns)
        x_ptrs += 2
        out_ptrs += 2


@triton.jit
def chosen_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    if row > 0:
        x_ptrs = x_ptr + row * row_stride + lane
    else:
        x_ptrs = x_ptr + lane
    value = tl.load(x_ptrs, mask=lane < columns)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.jit
def early_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    if columns == 0:
        return
    value = tl.load(x_ptr + row * row_stride + lane, mask=lane < columns)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.jit
def while_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    column = 0
    x_at = x_ptr + row * row_stride
    while column < columns:
        tl.store(out_ptr + row * out_stride + column, tl.load(x_at))
        x_at += 1
        column += 1


@triton.jit
def atomic_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    value = tl.atomic_add(x_ptr + row * row_stride + lane, 0.0, mask=lane < columns)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.jit
def descriptor_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    matrix = tl.make_tensor_descriptor(x_ptr, [row + 1, columns], [row_stride, 1], [1, TILE])
    value = matrix.load([row, 0]).reshape(TILE)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.jit
def table_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    address = tl.load(x_ptr).to(tl.pointer_type(tl.float32))
    value = tl.load(address + row * row_stride + lane, mask=lane < columns)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


@triton.autotune([triton.Config({"TILE": 8}), triton.Config({"TILE": 16})], key=["columns"])
@triton.jit
def tuned_kernel(out_ptr, x_ptr, columns, row_stride, out_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    value = tl.load(x_ptr + row * row_stride + lane, mask=lane < columns)
    tl.store(out_ptr + row * out_stride + lane, value, mask=lane < columns)


KERNELS = {
    "scalar": scalar_kernel,
    "tile": tile_kernel,
    "alias": alias_kernel,
    "helper": helper_kernel,
    "noinline": noinline_kernel,
    "moved": moved_kernel,
    "chosen": chosen_kernel,
    "early": early_kernel,
    "while": while_kernel,
    "atomic": atomic_kernel,
    "descriptor": descriptor_kernel,
    "table": table_kernel,
    "tuned": tuned_kernel,
}


def oracle(x):
    return x.clone()


def oracle_of_both(x):
    return x.clone(), x.clone()


@st.composite
def cases(draw, inout=()):
    rows, columns = draw(ks.dims("rows", max_value=8)), draw(ks.dims("columns", max_value=TILE))
    kinds = ks.CONTIGUOUS_LAST.without("expanded") if inout else ks.CONTIGUOUS_LAST
    return kcheck.Case(x=draw(ks.tensors((rows, columns), "float32", kinds=kinds)))


def launch(kernel, x, row_stride):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        given = x
        if kernel is table_kernel:
            given = torch.tensor([x.data_ptr()], dtype=torch.int64, device=x.device)
        tile = {} if kernel is tuned_kernel else {"TILE": TILE}
        kernel[(x.shape[0],)](out, given, x.shape[1], row_stride, out.stride(0), **tile)
    return out


def made(form, kernel, right):
    inout = ["x"] if kernel is atomic_kernel else []
    name = f"{form}_{'right' if right else 'wrong'}"

    @kcheck.target(
        cases=cases(inout), oracle=oracle_of_both if inout else oracle, kernels=[kernel], inout=inout, name=name
    )
    def copied(x):
        return launch(kernel, x, x.stride(0) if right else x.shape[1])

    return copied


for _form, _kernel in KERNELS.items():
    globals()[f"{_form}_wrong"] = made(_form, _kernel, False)
    globals()[f"{_form}_right"] = made(_form, _kernel, True)
