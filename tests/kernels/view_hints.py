"""Hints to the compiler that are not true for every case, before and after a fix.

Some are false and do no harm: they must be silent.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def rows_kernel(out_ptr, x_ptr, columns, x_row, x_column, HINT: tl.constexpr, TILE: tl.constexpr):
    """A row stride is a multiple of 4 in a contiguous tensor whose width is one."""
    row, lanes = tl.program_id(0), tl.arange(0, TILE)
    if HINT:
        x_row = tl.multiple_of(x_row, 4)
    mask = lanes < columns
    values = tl.load(x_ptr + row * x_row + lanes * x_column, mask=mask, other=0.0)
    tl.store(out_ptr + row * columns + lanes, values, mask=mask)


@triton.jit
def pointer_kernel(out_ptr, x_ptr, count, x_stride, HINT: tl.constexpr, TILE: tl.constexpr):
    """Memory from an allocator is aligned to 16 bytes, a view into it need not be."""
    lanes = tl.arange(0, TILE)
    if HINT:
        tl.multiple_of(x_ptr, 16)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes * x_stride, mask=lanes < count), mask=lanes < count)


@triton.jit
def gather_kernel(out_ptr, x_ptr, index_ptr, count, HINT: tl.constexpr, TILE: tl.constexpr):
    """Indices that were consecutive when somebody looked."""
    lanes = tl.arange(0, TILE)
    mask = lanes < count
    place = tl.load(index_ptr + lanes, mask=mask, other=0)
    if HINT:
        place = tl.max_contiguous(place, 4)
    tl.store(out_ptr + lanes, tl.load(x_ptr + place, mask=mask), mask=mask)


@triton.jit
def grouped_kernel(out_ptr, x_ptr, group, count, HINT: tl.constexpr, TILE: tl.constexpr):
    """One element of `x` for each group of elements of the result, as scales have it; a group may be of any size."""
    lanes = tl.arange(0, TILE)
    mask = lanes < count
    which = lanes // group
    if HINT:
        which = tl.max_constancy(which, 4)
    tl.store(out_ptr + lanes, tl.load(x_ptr + which, mask=mask), mask=mask)


@triton.jit
def tile_kernel(out_ptr, x_ptr, rows, columns, x_row, HINT: tl.constexpr, TILE: tl.constexpr):
    """Offsets of a tile: along each row they begin at a multiple of 4 only if the row stride is one."""
    down, across = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    offsets = down * x_row + across
    if HINT:
        offsets = tl.max_contiguous(tl.multiple_of(offsets, [1, 4]), [1, TILE])
    mask = (down < rows) & (across < columns)
    tl.store(out_ptr + down * columns + across, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def wrapped_kernel(out_ptr, x_ptr, count, CLAMP: tl.constexpr, TILE: tl.constexpr):
    """Lanes beyond the end go round, or to the first element, and what they read is thrown away."""
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = tl.where(lanes < count, lanes, 0) if CLAMP else lanes % count
    inside = tl.max_contiguous(tl.multiple_of(inside, TILE), TILE)
    tl.store(out_ptr + lanes, tl.load(x_ptr + inside), mask=lanes < count)


@triton.jit
def all_true_kernel(out_ptr, x_ptr, rows, columns, x_row, x_column, TILE: tl.constexpr):
    """Every hint in every form, all of them true: of numbers, pointers, lines and tiles."""
    start = tl.multiple_of(tl.program_id(0) * TILE, TILE)
    lanes = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, TILE), TILE), [TILE])
    tl.multiple_of(out_ptr, (16,))
    across = tl.arange(0, TILE)
    places = tl.multiple_of(lanes[:, None] * TILE + across[None, :], [TILE, TILE])
    places = tl.max_contiguous(places, [1, TILE])
    down = tl.max_constancy(places // TILE, (1, TILE))
    across = tl.max_constancy(places % TILE, [TILE, 1])
    mask = (down < rows) & (across < columns)
    values = tl.load(x_ptr + down * x_row + across * x_column, mask=mask, other=0.0)
    steps = tl.multiple_of(tl.arange(0, TILE) * 4, 4)
    tl.max_constancy(steps // 8, 2)
    tl.store(out_ptr + down * columns + across, values, mask=mask)


@triton.jit
def stepping_kernel(out_ptr, x_ptr, count, x_stride, step):
    """A loop that never ends with a step that is a multiple of 4."""
    step = tl.multiple_of(step, 4)
    start = 0
    while start != count:
        tl.store(out_ptr + start // step, tl.load(x_ptr + start * x_stride))
        start += step


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column, CLAMP: tl.constexpr, TILE: tl.constexpr
):
    """As templates of torch (with ``%``) and a tutorial of Triton (CLAMP) have it: false in the last tiles."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    a_rows = tl.where(rows < M, rows, 0) if CLAMP else rows % M
    b_columns = tl.where(columns < N, columns, 0) if CLAMP else columns % N
    a_rows = tl.max_contiguous(tl.multiple_of(a_rows, TILE), TILE)
    b_columns = tl.max_contiguous(tl.multiple_of(b_columns, TILE), TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, K, TILE):
        start = tl.multiple_of(start, TILE)
        depth = start + tl.arange(0, TILE)
        left_ptrs = a + a_rows[:, None] * a_row + depth[None, :] * a_column
        right_ptrs = b + depth[:, None] * b_row + b_columns[None, :] * b_column
        left = tl.load(left_ptrs, mask=depth[None, :] < K, other=0.0)
        right = tl.load(right_ptrs, mask=depth[:, None] < K, other=0.0)
        total += tl.dot(left, right)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * c_row + columns[None, :] * c_column, total, mask=mask)


@st.composite
def matrices(draw, kinds=ks.ANY):
    rows, tiles = draw(ks.dims("rows", min_value=2, max_value=5)), draw(ks.dims("tiles", max_value=2))
    return kcheck.Case(x=draw(ks.tensors((rows, 4 * tiles), "float32", kinds=kinds)))


@st.composite
def vectors(draw, kinds=ks.ANY, most=16):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", max_value=most)),), "float32", kinds=kinds)))


@st.composite
def picks(draw):
    count = draw(ks.dims("count", min_value=4, max_value=16))
    index = draw(ks.indices((count,), bound=count, dtype="int64", kinds=ks.DENSE))
    return kcheck.Case(x=draw(ks.tensors((count,), "float32", kinds=ks.DENSE)), index=index)


@st.composite
def scales(draw):
    group = draw(ks.options("group", (8, 4, 3)))
    return kcheck.Case(x=draw(ks.tensors((6,), "float32", kinds=ks.DENSE)), group=group)


def by_rows(x, hint):
    rows, columns = x.shape
    out = torch.empty(rows, columns)
    rows_kernel[(rows,)](out, x, columns, *x.stride(), hint, TILE=8)
    return out


@kcheck.target(cases=matrices(), oracle=lambda x: x, kernels=[rows_kernel])
def rows_wrong(x):
    return by_rows(x, True)


@kcheck.target(cases=matrices(), oracle=lambda x: x, kernels=[rows_kernel])
def rows_right(x):
    return by_rows(x, x.stride(0) % 4 == 0)


def by_pointer(x, hint):
    out = torch.empty(x.shape)
    pointer_kernel[(1,)](out, x, x.shape[0], x.stride(0), hint, TILE=16)
    return out


@kcheck.target(cases=vectors(), oracle=lambda x: x, kernels=[pointer_kernel])
def pointer_wrong(x):
    return by_pointer(x, True)


@kcheck.target(cases=vectors(), oracle=lambda x: x, kernels=[pointer_kernel])
def pointer_right(x):
    return by_pointer(x, x.data_ptr() % 16 == 0)


def by_index(x, index, hint):
    out = torch.empty(x.shape)
    gather_kernel[(1,)](out, x, index, x.shape[0], hint, TILE=16)
    return out


@kcheck.target(cases=picks(), oracle=lambda x, index: x[index], kernels=[gather_kernel])
def gather_wrong(x, index):
    return by_index(x, index, True)


@kcheck.target(cases=picks(), oracle=lambda x, index: x[index], kernels=[gather_kernel])
def gather_right(x, index):
    return by_index(x, index, False)


def by_group(x, group, hint):
    out = torch.empty(16)
    grouped_kernel[(1,)](out, x, group, out.shape[0], hint, TILE=16)
    return out


def spread(x, group):
    return x[torch.arange(16) // group]


@kcheck.target(cases=scales(), oracle=spread, kernels=[grouped_kernel])
def grouped_wrong(x, group):
    return by_group(x, group, True)


@kcheck.target(cases=scales(), oracle=spread, kernels=[grouped_kernel])
def grouped_right(x, group):
    return by_group(x, group, group % 4 == 0)


def by_tile(x, hint):
    rows, columns = x.shape
    out = torch.empty(rows, columns)
    tile_kernel[(1,)](out, x, rows, columns, x.stride(0), hint, TILE=8)
    return out


ROWS = ks.CONTIGUOUS_LAST.without("far")


@kcheck.target(cases=matrices(kinds=ROWS), oracle=lambda x: x, kernels=[tile_kernel])
def tile_wrong(x):
    return by_tile(x, True)


@kcheck.target(cases=matrices(kinds=ROWS), oracle=lambda x: x, kernels=[tile_kernel])
def tile_right(x):
    return by_tile(x, x.stride(0) % 4 == 0)


def by_wrapping(x, clamp):
    out = torch.empty(x.shape)
    wrapped_kernel[(triton.cdiv(x.shape[0], 8),)](out, x, x.shape[0], clamp, TILE=8)
    return out


@kcheck.target(cases=vectors(ks.DENSE, most=40), oracle=lambda x: x, kernels=[wrapped_kernel])
def wrapped(x):
    return by_wrapping(x, False)


@kcheck.target(cases=vectors(ks.DENSE, most=40), oracle=lambda x: x, kernels=[wrapped_kernel])
def clamped(x):
    return by_wrapping(x, True)


@st.composite
def factors(draw):
    m, n, k = (draw(ks.dims(name, max_value=40)) for name in ("m", "n", "k"))
    a, b = draw(ks.tensors((m, k))), draw(ks.tensors((k, n)))
    return kcheck.Case(a=a, b=b, clamp=draw(ks.options("clamp", (False, True))))


@kcheck.target(cases=factors(), oracle=lambda a, b, clamp: a @ b, kernels=[matmul_kernel])
def matmul(a, b, clamp):
    (m, k), n = a.shape, b.shape[1]
    c, grid = torch.empty(m, n), (triton.cdiv(m, 16), triton.cdiv(n, 16))
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), clamp, TILE=16)
    return c


@kcheck.target(cases=matrices(), oracle=lambda x: x, kernels=[all_true_kernel])
def all_true(x):
    rows, columns = x.shape
    out = torch.empty(rows, columns)
    all_true_kernel[(1,)](out, x, rows, columns, *x.stride(), TILE=8)
    return out


@st.composite
def threes(draw):
    return kcheck.Case(x=draw(ks.tensors((3 * draw(ks.dims("count", max_value=5)),), "float32")))


@kcheck.target(cases=threes(), oracle=lambda x: torch.cat((x[::3], x.new_zeros(2 * len(x) // 3))))
def stepping(x):
    out = torch.zeros(x.shape)
    stepping_kernel[(1,)](out, x, x.shape[0], x.stride(0), 3)
    return out
