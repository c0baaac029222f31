# mypy: ignore-errors
# ruff: noqa: SIM108
"""Kernels whose programs part, meet, or should not."""

import triton
import triton.language as tl


@triton.jit
def collatz(x, o, n):
    i = tl.program_id(0)
    if i >= n:
        return
    v = tl.load(x + i)
    steps = 0
    while v != 1:
        if v % 2 == 0:
            v = v // 2
        else:
            v = 3 * v + 1
        steps += 1
    tl.store(o + i, steps)


@triton.jit
def _pick(v, B: tl.constexpr):
    if v < 0:
        return v * 2, tl.zeros((B,), tl.float32)
    for j in range(0, v):
        if j == 3:
            v += 100
    return v, tl.zeros((B,), tl.float32) + v


@triton.jit
def helpers_that_part(x, o, B: tl.constexpr):
    i = tl.program_id(0)
    a, b = _pick(tl.load(x + i), B)
    for turn in range(0, i % 3):
        b += turn
        if turn == 1:
            a -= 1
    tl.store(o + i * B + tl.arange(0, B), a + b)


@triton.jit
def ragged_sums(x, starts, o, B: tl.constexpr):
    i = tl.program_id(0)
    begin, end = tl.load(starts + i), tl.load(starts + i + 1)
    total = tl.zeros((B,), tl.float32)
    for at in range(begin, end, B):
        lanes = at + tl.arange(0, B)
        total += tl.load(x + lanes, mask=lanes < end, other=0.0)
    tl.store(o + i, tl.sum(total, axis=0))


@triton.jit
def counts_then_sums(x, starts, o, counted, B: tl.constexpr):
    i = tl.program_id(0)
    tl.atomic_add(counted, 1)
    tl.store(o + i, tl.sum(tl.load(x + tl.load(starts + i) + tl.arange(0, B)), axis=0))


@triton.jit
def tickets(counter, o, most):
    i = tl.program_id(0)
    tl.store(o + i, tl.atomic_add(counter, 1))
    tl.atomic_max(most + i % 3, i)


@triton.jit
def float_sums(x, o, B: tl.constexpr):
    i = tl.program_id(0)
    lanes = tl.arange(0, B)
    tl.atomic_add(o + lanes, tl.load(x + i * B + lanes))


@triton.jit
def shift_left(x, n, B: tl.constexpr):
    lanes = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + lanes, tl.load(x + lanes + 1, mask=lanes + 1 < n, other=0.0), mask=lanes < n)


@triton.jit
def in_place(x, n, B: tl.constexpr):
    lanes = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + lanes, tl.load(x + lanes, mask=lanes < n) + 1.0, mask=lanes < n)


@triton.jit
def same_value_everywhere(o):
    tl.store(o, 1.0)


@triton.jit
def one_writes_all_read(o, flag):
    i = tl.program_id(0)
    if i == 0:
        tl.store(flag, 1)
    tl.store(o + i, tl.load(flag))


@triton.jit
def out_of_view(x, o, stride, B: tl.constexpr):
    i = tl.program_id(0)
    lanes = tl.arange(0, B)
    tl.store(o + i * B + lanes, tl.load(x + i * stride + lanes))


@triton.jit
def late_fault(x, o, n, B: tl.constexpr):
    """All is well until the last programs."""
    i = tl.program_id(0)
    lanes = tl.arange(0, B)
    tl.store(o + i * B + lanes, 1.0)
    tl.store(o + i * B + lanes, tl.load(x + i * B + lanes, mask=lanes < n))


@triton.jit
def wraps_on_the_way(x, o, far):
    i = tl.program_id(0)
    offset = i * far * far
    tl.store(o + i, tl.load(x + offset, mask=i < 1, other=0.0) + tl.load(x + i))


@triton.jit
def prints(o):
    i = tl.program_id(0)
    tl.device_print("here", i)
    tl.store(o + i, i)


@triton.jit
def assigned_by_some(x, o):
    i = tl.program_id(0)
    if i % 2 == 0:
        v = tl.load(x + i)
    if i % 2 == 0:
        tl.store(o + i, v)


@triton.jit
def asserts(x):
    i = tl.program_id(0)
    tl.device_assert(tl.load(x + i) < 5, "too large")
