"""A wrong kernel for each kind of finding that the CPU can show. The wrong lines are those of docs/findings.md, to the
letter; with the right ones in their place, nothing is found.
"""
# mypy: ignore-errors

import ctypes

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@st.composite
def matrices(draw, min_rows=2, kinds=ks.ANY, **further):
    shape = (draw(ks.dims("rows", min_value=min_rows, max_value=5)), draw(ks.dims("columns", min_value=2, max_value=9)))
    made = {name: draw(make(shape)) for name, make in further.items()}
    return kcheck.Case(x=draw(ks.tensors(shape, "float32", kinds=kinds)), **made)


@st.composite
def vectors(draw, kinds=ks.ANY, most=40, **further):
    n = draw(ks.dims("n", min_value=2, max_value=most))
    made = {name: draw(make((n,))) for name, make in further.items()}
    return kcheck.Case(x=draw(ks.tensors((n,), "float32", kinds=kinds)), **made)


def blocks(n):
    return (triton.cdiv(n, 16),)


@triton.jit
def copy_kernel(out_ptr, x_ptr, n, out_stride, x_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i * out_stride, tl.load(x_ptr + i * x_stride, mask=i < n), mask=i < n)


@triton.jit
def row_sum_kernel(out_ptr, x_ptr, columns, row_stride, column_stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x_ptr + row * row_stride + column * column_stride, mask=column < columns, other=1.0)
    tl.store(out_ptr + row, tl.sum(value, axis=0))


@kcheck.target(cases=matrices(), oracle=lambda x: x.sum(1))
def value_mismatch(x):
    out = torch.empty(x.shape[0])
    row_sum_kernel[(x.shape[0],)](out, x, x.shape[1], *x.stride(), BLOCK=16)
    return out


@triton.jit
def rows_kernel(out_ptr, x_ptr, columns, out_row, out_column, x_row, x_column, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < columns
    value = tl.load(x_ptr + row * x_row + column * x_column, mask=mask)
    tl.store(out_ptr + row * out_row + column * out_column, value, mask=mask)


@kcheck.target(cases=matrices(kinds=["transposed"]), oracle=lambda x: x)
def layout_variance(x):
    rows, columns = x.shape
    out = torch.empty(rows, columns)
    rows_kernel[(rows,)](out, x, columns, columns, 1, columns, 1, BLOCK=16)
    return out


@kcheck.target(cases=matrices(kinds=["narrowed"]), oracle=lambda x: x)
def out_of_view_read(x):
    out = torch.empty(x.shape)
    out_row, out_column = out.stride()
    x_row, x_column = x.shape[1], x.stride(1)
    rows_kernel[(x.shape[0],)](out, x, x.shape[1], out_row, out_column, x_row, x_column, BLOCK=16)
    return out


@kcheck.target(cases=matrices(out=ks.outputs), oracle=lambda x, out: x, outputs=["out"])
def out_of_view_write(x, out):
    x_row, x_column = x.stride()
    out_row, out_column = out.shape[1], out.stride(1)
    rows_kernel[(x.shape[0],)](out, x, x.shape[1], out_row, out_column, x_row, x_column, BLOCK=16)


@triton.jit
def sum_kernel(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + i)
    tl.store(out_ptr, tl.sum(tl.where(i < n, value, 0.0), axis=0))


@kcheck.target(cases=vectors(kinds=ks.DENSE), oracle=lambda x: x.sum().reshape(1))
def out_of_bounds_read(x):
    out = torch.empty(1)
    sum_kernel[(1,)](out, x, x.shape[0], BLOCK=64)
    return out


@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = i.to(tl.float32)
    tl.store(out_ptr + i, value)


@kcheck.target(
    cases=vectors(kinds=ks.DENSE, out=lambda shape: ks.outputs(shape, kinds=ks.DENSE)),
    oracle=lambda x, out: torch.arange(x.shape[0], dtype=torch.float32),
    outputs=["out"],
)
def out_of_bounds_write(x, out):
    fill_kernel[blocks(x.shape[0])](out, x.shape[0], BLOCK=16)


@kcheck.target(cases=vectors(out=ks.outputs), oracle=lambda x, out: x, outputs=["out"])
def unwritten_output(x, out):
    n, BLOCK = x.shape[0], 16
    grid = (n // BLOCK,)
    copy_kernel[grid](out, x, n, out.stride(0), x.stride(0), BLOCK)


@triton.jit
def relu_kernel(out_ptr, x_ptr, n, x_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.maximum(tl.load(x_ptr + i * x_stride, mask=i < n), 0.0)
    tl.store(x_ptr + i * x_stride, value, mask=i < n)
    tl.store(out_ptr + i, value, mask=i < n)


@kcheck.target(cases=vectors(kinds=ks.WRITABLE), oracle=lambda x: x.relu())
def input_mutated(x):
    out = torch.empty(x.shape)
    relu_kernel[blocks(x.shape[0])](out, x, x.shape[0], x.stride(0), BLOCK=16)
    return out


@triton.jit
def total_kernel(total_ptr, x_ptr, n, x_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + i * x_stride, mask=i < n, other=0.0)
    tl.atomic_add(total_ptr, tl.sum(value, axis=0))


@kcheck.target(cases=vectors(), oracle=lambda x: x.sum().reshape(1))
def uninitialized_read(x):
    total = torch.empty(1, device=x.device)
    total_kernel[blocks(x.shape[0])](total, x, x.shape[0], x.stride(0), BLOCK=16)
    return total


@triton.jit
def count_kernel(count_ptr, x_ptr, x_stride):
    value = (tl.load(x_ptr + tl.program_id(0) * x_stride) > 0).to(tl.int32)
    tl.store(count_ptr, tl.load(count_ptr) + value)


@kcheck.target(cases=vectors(), oracle=lambda x: (x > 0).sum(dtype=torch.int32).reshape(1))
def race(x):
    count = torch.zeros(1, dtype=torch.int32)
    count_kernel[(x.shape[0],)](count, x, x.stride(0))
    return count


@triton.jit
def scatter_kernel(out_ptr, index_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = tl.load(index_ptr + i, mask=i < n, other=0)
    value = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + place, value, mask=i < n)


@kcheck.target(
    cases=vectors(kinds=ks.DENSE, index=lambda shape: ks.indices(shape, bound=4, dtype="int64", kinds=ks.DENSE)),
    oracle=lambda x, index: torch.full((4,), -1.0).scatter_reduce_(0, index, x, "amax"),
)
def scatter_conflict(x, index):
    out = torch.full((4,), -1.0)
    scatter_kernel[(1,)](out, index, x, x.shape[0], BLOCK=64)
    return out


@triton.jit
def far_rows_kernel(out_ptr, x_ptr, columns, row_stride, column_stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x_ptr += row * row_stride
    value = tl.load(x_ptr + column * column_stride, mask=column < columns)
    tl.store(out_ptr + row * columns + column, value, mask=column < columns)


@kcheck.target(cases=matrices(min_rows=3, kinds=["far"]), oracle=lambda x: x)
def offset_overflow(x):
    out = torch.empty(x.shape)
    far_rows_kernel[(x.shape[0],)](out, x, x.shape[1], *x.stride(), BLOCK=16)
    return out


@triton.jit
def hinted_kernel(out_ptr, x_ptr, columns, row_stride, column_stride, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    if ALIGNED:
        row_stride = tl.multiple_of(row_stride, 4)
    value = tl.load(x_ptr + row * row_stride + column * column_stride, mask=column < columns)
    tl.store(out_ptr + row * columns + column, value, mask=column < columns)


@kcheck.target(cases=matrices(), oracle=lambda x: x)
def false_hint(x):
    out = torch.empty(x.shape)
    hinted_kernel[(x.shape[0],)](out, x, x.shape[1], *x.stride(), ALIGNED=True, BLOCK=16)
    return out


@triton.jit
def valid_sum_kernel(out_ptr, x_ptr, lengths_ptr, columns, row_stride, column_stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    valid = column < tl.load(lengths_ptr + row)
    value = tl.load(x_ptr + row * row_stride + column * column_stride, mask=column < columns, other=0.0)
    value = value * valid.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(value, axis=0))


def behind_length(x, lengths):
    return torch.arange(x.shape[1]) >= lengths[:, None]


@st.composite
def ragged(draw):
    rows, columns = draw(ks.dims("rows", max_value=5)), draw(ks.dims("columns", min_value=2, max_value=9))
    lengths = draw(ks.indices((rows,), bound=columns + 1, dtype="int32", kinds=ks.DENSE))
    return kcheck.Case(x=draw(ks.tensors((rows, columns), "float32")), lengths=lengths)


@kcheck.target(
    cases=ragged(),
    oracle=lambda x, lengths: x.masked_fill(behind_length(x, lengths), 0).sum(1),
    dead={"x": behind_length},
)
def dead_read(x, lengths):
    out = torch.empty(x.shape[0])
    valid_sum_kernel[(x.shape[0],)](out, x, lengths, x.shape[1], *x.stride(), BLOCK=16)
    return out


@kcheck.target(cases=vectors(most=300), oracle=lambda x: x.sum().reshape(1), deterministic=True)
def nondeterminism(x):
    total = torch.zeros(1, device=x.device)
    grid = blocks(x.shape[0])
    total_kernel[grid](total, x, x.shape[0], x.stride(0), BLOCK=16)
    return total


@kcheck.target(cases=vectors(), oracle=lambda x: x)
def crash(x):
    first = ctypes.c_float.from_address(x.data_ptr() if x.is_contiguous() else 0)
    out = torch.full_like(x, first.value)
    copy_kernel[blocks(x.shape[0])](out, x, x.shape[0], out.stride(0), x.stride(0), BLOCK=16)
    return out


@triton.jit
def walk_kernel(out_ptr, x_ptr, n, x_stride):
    total, offset = 0.0, 0
    while offset <= (n - 1) * x_stride:
        total += tl.load(x_ptr + offset)
        offset += x_stride
    tl.store(out_ptr, total)


@kcheck.target(cases=vectors(), oracle=lambda x: x.sum().reshape(1))
def timeout(x):
    out = torch.empty(1)
    walk_kernel[(1,)](out, x, x.shape[0], x.stride(0))
    return out


@triton.jit
def checked_kernel(out_ptr, x_ptr, n, x_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + i * x_stride, mask=i < n, other=1.0)
    tl.device_assert(value > 0, "expected a positive number")
    tl.store(out_ptr + i, tl.log(value), mask=i < n)


@kcheck.target(cases=vectors(), oracle=lambda x: x.abs().clamp(min=1e-3).log())
def device_assert(x):
    out = torch.empty(x.shape)
    checked_kernel[blocks(x.shape[0])](out, x, x.shape[0], x.stride(0), BLOCK=16)
    return out


@kcheck.target(cases=matrices(), oracle=lambda x: x)
def compile_error(x):
    out = torch.empty(x.shape)
    columns = x.shape[1]
    BLOCK = columns
    rows_kernel[(x.shape[0],)](out, x, columns, *out.stride(), *x.stride(), BLOCK)
    return out


@kcheck.target(cases=matrices(), oracle=lambda x: x.flatten())
def target_error(x):
    out = torch.empty_like(x)
    rows_kernel[(x.shape[0],)](out, x, x.shape[1], *out.stride(), *x.stride(), BLOCK=16)
    return out.view(-1)


@kcheck.target(cases=matrices(), oracle=lambda x: x, must_accept={"x": ["transposed"]})
def must_accept(x):
    if not x.is_contiguous():
        raise ValueError("x must be contiguous")
    out = torch.empty(x.shape)
    rows_kernel[(x.shape[0],)](out, x, x.shape[1], *out.stride(), *x.stride(), BLOCK=16)
    return out
