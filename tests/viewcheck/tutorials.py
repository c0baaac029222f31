"""Kernels in the style of Triton's tutorials, as targets: the forms in which kernels are usually written.

All are right: the view check must be silent on them.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < n
    tl.store(out + lanes, tl.load(x + lanes, mask=mask) + tl.load(y + lanes, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(out, x, x_row, out_row, rows, columns, BLOCK: tl.constexpr):
    """Persistent: each program takes every so many rows."""
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        lanes = tl.arange(0, BLOCK)
        mask = lanes < columns
        values = tl.load(x + row * x_row + lanes, mask=mask, other=-float("inf"))
        values = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * out_row + lanes, values / tl.sum(values, axis=0), mask=mask)


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < n
    kept = tl.rand(seed, lanes) > p
    tl.store(out + lanes, tl.where(kept, tl.load(x + lanes, mask=mask) / (1 - p), 0.0), mask=mask)


@triton.jit
def grouped_matmul_kernel(
    a, b, c, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(axis=0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    first_m = program // in_group * GROUP
    size = min(tiles_m - first_m, GROUP)
    tile_m = first_m + (program % in_group) % size
    tile_n = (program % in_group) // size
    rows = (tile_m * BM + tl.arange(0, BM)) % M
    columns = (tile_n * BN + tl.arange(0, BN)) % N
    depth = tl.arange(0, BK)
    a_ptrs = a + (rows[:, None] * a_row + depth[None, :] * a_column)
    b_ptrs = b + (depth[:, None] * b_row + columns[None, :] * b_column)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_ptrs, mask=depth[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_ptrs, mask=depth[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total)
        a_ptrs += BK * a_column
        b_ptrs += BK * b_row
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + c_row * rows[:, None] + c_column * columns[None, :], total, mask=mask)


@triton.jit
def layer_norm_kernel(x, y, w, b, mean, rstd, row_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * row_stride + lanes, mask=lanes < n, other=0.0).to(tl.float32)
    average = tl.sum(total, axis=0) / n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * row_stride + lanes, mask=lanes < n, other=0.0).to(tl.float32)
        values = tl.where(lanes < n, values - average, 0.0)
        total += values * values
    inverse = 1 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    tl.store(mean + row, average)
    tl.store(rstd + row, inverse)
    for start in range(0, n, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        mask = lanes < n
        gain, bias = tl.load(w + lanes, mask=mask), tl.load(b + lanes, mask=mask)
        values = tl.load(x + row * row_stride + lanes, mask=mask, other=0.0).to(tl.float32)
        tl.store(y + row * n + lanes, (values - average) * inverse * gain + bias, mask=mask)


@triton.jit
def weight_grad_kernel(dw, dy, x, lock, row_stride, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of a group add to one partial sum, one at a time: a lock, and a count of who came before."""
    row = tl.program_id(0)
    group = row % GROUPS
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n
    partial = tl.load(dy + row * row_stride + lanes, mask=mask, other=0.0) * tl.load(
        x + row * row_stride + lanes, mask=mask, other=0.0
    )
    count = lock + GROUPS + group
    lock += group
    dw = dw + group * n + lanes
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        partial += tl.load(dw, mask=mask)
    tl.store(dw, partial, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def column_sum_kernel(parts, out, rows, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, rows, BLOCK_M):
        lines = start + tl.arange(0, BLOCK_M)
        mask = (lines[:, None] < rows) & (columns[None, :] < n)
        total += tl.load(parts + lines[:, None] * n + columns[None, :], mask=mask, other=0.0)
    tl.store(out + columns, tl.sum(total, axis=0), mask=columns < n)


@triton.jit
def attention_kernel(
    q, k, v, out, q_row, k_row, v_row, out_row, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Causal, with a running maximum and sum."""
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * q_row + inner[None, :], mask=rows[:, None] < length, other=0.0)
    best = tl.full((BM,), float("-inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BM, length), BN):
        columns = start + tl.arange(0, BN)
        inside = columns < length
        keys = tl.load(k + columns[None, :] * k_row + inner[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(queries, keys) * scale
        scores = tl.where((rows[:, None] >= columns[None, :]) & inside[None, :], scores, float("-inf"))
        above = tl.maximum(best, tl.max(scores, 1))
        powers = tl.exp(scores - above[:, None])
        fade = tl.exp(best - above)
        values = tl.load(v + columns[:, None] * v_row + inner[None, :], mask=inside[:, None], other=0.0)
        total = total * fade[:, None] + tl.dot(powers, values)
        weight = weight * fade + tl.sum(powers, 1)
        best = above
    tl.store(out + rows[:, None] * out_row + inner[None, :], total / weight[:, None], mask=rows[:, None] < length)


@triton.jit
def block_copy_kernel(x, out, M, N, x_row, x_column, out_row, out_column, BM: tl.constexpr, BN: tl.constexpr):
    place = (tl.program_id(0) * BM, tl.program_id(1) * BN)
    source = tl.make_block_ptr(x, (M, N), (x_row, x_column), place, (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (M, N), (out_row, out_column), place, (BM, BN), (1, 0))
    tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, tile, boundary_check=(0, 1))


@triton.jit
def split_k_kernel(a, b, c, K, a_row, b_row, c_row, SPLIT: tl.constexpr, BK: tl.constexpr, T: tl.constexpr):
    """Each program adds its part of the depth to the result, atomically."""
    lanes, part = tl.arange(0, T), tl.program_id(0)
    total = tl.zeros((T, T), tl.float32)
    for start in range(part * BK, K, SPLIT * BK):
        depth = start + tl.arange(0, BK)
        left = tl.load(a + lanes[:, None] * a_row + depth[None, :], mask=depth[None, :] < K, other=0.0)
        right = tl.load(b + depth[:, None] * b_row + lanes[None, :], mask=depth[:, None] < K, other=0.0)
        total += tl.dot(left, right)
    tl.atomic_add(c + lanes[:, None] * c_row + lanes[None, :], total, sem="relaxed")


@triton.jit
def scan_kernel(x, out, n, row_stride, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * row_stride + lanes, mask=lanes < n, other=0.0)
    tl.store(out + row * n + lanes, tl.cumsum(values, axis=0), mask=lanes < n)


@triton.jit
def histogram_kernel(x, counts, n, x_stride, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = lanes < n
    bins = tl.load(x + lanes * x_stride, mask=mask, other=0)
    tl.atomic_add(counts + bins, 1, mask=mask)


@triton.jit
def queue_kernel(ticket, x, out, n, x_stride):
    """Programs take the next item until there is none."""
    item = tl.atomic_add(ticket, 1)
    while item < n:
        tl.store(out + item, tl.load(x + item * x_stride) + 1)
        item = tl.atomic_add(ticket, 1)


def dense(shape, dtype="float32"):
    return ks.tensors(shape, dtype, kinds=ks.DENSE)


@st.composite
def pairs(draw):
    shape = (draw(ks.dims("count", max_value=100)),)
    return kcheck.Case(x=draw(dense(shape)), y=draw(dense(shape)))


@kcheck.target(cases=pairs(), oracle=lambda x, y: x + y, kernels=[add_kernel])
def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 32),)](x, y, out, x.numel(), BLOCK=32)
    return out


@st.composite
def matrices(draw, kinds=ks.CONTIGUOUS_LAST):
    shape = (draw(ks.dims("rows", max_value=9)), draw(ks.dims("columns", max_value=40)))
    return kcheck.Case(x=draw(ks.tensors(shape, "float32", kinds=kinds)))


@kcheck.target(cases=matrices(), oracle=lambda x: x.softmax(1), kernels=[softmax_kernel])
def softmax(x):
    out = torch.empty(x.shape)
    softmax_kernel[(4,)](out, x, x.stride(0), out.stride(0), *x.shape, BLOCK=64)
    return out


@kcheck.target(cases=pairs(), kernels=[dropout_kernel])
def dropout(x, y):
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), 0.5, 123, BLOCK=32)
    return out


@st.composite
def factors(draw, kinds=ks.ANY, columns=None):
    m, n, k = (draw(ks.dims(name, max_value=40)) for name in "mnk")
    return kcheck.Case(a=draw(ks.tensors((m, k), kinds=kinds)), b=draw(ks.tensors((k, n), kinds=kinds)))


@kcheck.target(cases=factors(), oracle=lambda a, b: a @ b, kernels=[grouped_matmul_kernel])
def grouped_matmul(a, b):
    c = torch.empty(a.shape[0], b.shape[1])
    grid = (triton.cdiv(a.shape[0], 16) * triton.cdiv(b.shape[1], 16),)
    grouped_matmul_kernel[grid](
        a, b, c, a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(), *c.stride(), BM=16, BN=16, BK=16, GROUP=2
    )
    return c


@st.composite
def normed(draw):
    shape = (draw(ks.dims("rows", max_value=9)), draw(ks.dims("columns", max_value=40)))
    x = draw(ks.tensors(shape, "float32", kinds=ks.CONTIGUOUS_LAST))
    return kcheck.Case(x=x, w=draw(dense(shape[1:])), b=draw(dense(shape[1:])))


def layer_norm_reference(x, w, b):
    mean = x.mean(1)
    variance = (x - mean[:, None]).square().mean(1)
    return torch.nn.functional.layer_norm(x, x.shape[1:], w, b, 1e-5), mean, torch.rsqrt(variance + 1e-5)


@kcheck.target(cases=normed(), oracle=layer_norm_reference, kernels=[layer_norm_kernel])
def layer_norm(x, w, b):
    y, mean, rstd = torch.empty(x.shape), torch.empty(x.shape[0]), torch.empty(x.shape[0])
    layer_norm_kernel[(x.shape[0],)](x, y, w, b, mean, rstd, x.stride(0), x.shape[1], 1e-5, BLOCK=16)
    return y, mean, rstd


@st.composite
def grads(draw):
    shape = (draw(ks.dims("rows", min_value=1, max_value=12)), draw(ks.dims("columns", min_value=1, max_value=30)))
    return kcheck.Case(dy=draw(dense(shape)), x=draw(dense(shape)))


@kcheck.target(cases=grads(), oracle=lambda dy, x: (dy * x).sum(0), kernels=[weight_grad_kernel, column_sum_kernel])
def weight_grad(dy, x):
    rows, n = x.shape
    groups = 2
    parts, lock = torch.zeros(groups, n), torch.zeros(2 * groups, dtype=torch.int32)
    out = torch.empty(n)
    weight_grad_kernel[(rows,)](parts, dy, x, lock, x.stride(0), n, GROUPS=groups, BLOCK=32)
    column_sum_kernel[(triton.cdiv(n, 16),)](parts, out, groups, n, BLOCK_M=2, BLOCK_N=16)
    return out


@st.composite
def attended(draw):
    shape = (draw(ks.dims("length", min_value=1, max_value=40)), 16)
    return kcheck.Case(**{name: draw(ks.tensors(shape, kinds=ks.CONTIGUOUS_LAST)) for name in "qkv"})


def attend(q, k, v):
    scores = (q @ k.T) * 0.25
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(1) @ v


@kcheck.target(cases=attended(), oracle=attend, kernels=[attention_kernel])
def attention(q, k, v):
    out = torch.empty(q.shape)
    strides = (q.stride(0), k.stride(0), v.stride(0), out.stride(0))
    attention_kernel[(triton.cdiv(q.shape[0], 16),)](q, k, v, out, *strides, q.shape[0], 0.25, D=16, BM=16, BN=16)
    return out


@kcheck.target(cases=matrices(ks.ANY), oracle=lambda x: x.clone(), kernels=[block_copy_kernel])
def block_copy(x):
    out = torch.empty(x.shape)
    grid = (triton.cdiv(x.shape[0], 4), triton.cdiv(x.shape[1], 16))
    block_copy_kernel[grid](x, out, *x.shape, *x.stride(), *out.stride(), BM=4, BN=16)
    return out


@st.composite
def deep_factors(draw):
    k = draw(ks.dims("k", min_value=1, max_value=100))
    a, b = (draw(ks.tensors(shape, kinds=ks.CONTIGUOUS_LAST)) for shape in ((16, k), (k, 16)))
    return kcheck.Case(a=a, b=b)


@kcheck.target(cases=deep_factors(), oracle=lambda a, b: a @ b, kernels=[split_k_kernel])
def split_k(a, b):
    c = torch.zeros(16, 16)
    split_k_kernel[(3,)](a, b, c, a.shape[1], a.stride(0), b.stride(0), c.stride(0), SPLIT=3, BK=16, T=16)
    return c


@kcheck.target(cases=matrices(), oracle=lambda x: x.cumsum(1), kernels=[scan_kernel])
def scan(x):
    out = torch.empty(x.shape)
    scan_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), BLOCK=64)
    return out


@st.composite
def counted(draw):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", max_value=100)),), "int32", low=0, high=7)))


@kcheck.target(
    cases=counted(), oracle=lambda x: torch.bincount(x, minlength=8).to(torch.int32), kernels=[histogram_kernel]
)
def histogram(x):
    counts = torch.zeros(8, dtype=torch.int32)
    histogram_kernel[(triton.cdiv(x.numel(), 32),)](x, counts, x.numel(), x.stride(0), BLOCK=32)
    return counts


@kcheck.target(cases=counted(), oracle=lambda x: x + 1, kernels=[queue_kernel])
def queue(x):
    ticket, out = torch.zeros(1, dtype=torch.int32), torch.empty_like(x)
    queue_kernel[(3,)](ticket, x, out, x.numel(), x.stride(0))
    return out
