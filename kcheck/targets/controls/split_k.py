"""Control: a matmul that divides its sum among programs, which add to the result by float atomics in any order."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def matmul_kernel(c, a, b, M, N, K, a_row, a_column, b_row, b_column, TILE: tl.constexpr):
    row, column, part = tl.program_id(0) * TILE, tl.program_id(1) * TILE, tl.program_id(2) * TILE
    rows, columns, inner = row + tl.arange(0, TILE), column + tl.arange(0, TILE), part + tl.arange(0, TILE)
    left_mask = (rows[:, None] < M) & (inner[None, :] < K)
    left = tl.load(a + rows[:, None] * a_row + inner[None, :] * a_column, mask=left_mask, other=0.0)
    right_mask = (inner[:, None] < K) & (columns[None, :] < N)
    right = tl.load(b + inner[:, None] * b_row + columns[None, :] * b_column, mask=right_mask, other=0.0)
    product = tl.dot(left, right, input_precision="ieee")
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], product, mask=(rows[:, None] < M) & (columns[None, :] < N))


@st.composite
def cases(draw):
    m, n = draw(ks.dims("m", max_value=32)), draw(ks.dims("n", max_value=32))
    k = draw(ks.dims("k", max_value=100))
    return kcheck.Case(a=draw(ks.tensors((m, k))), b=draw(ks.tensors((k, n))))


@kcheck.target(cases=cases(), oracle=lambda a, b: a @ b, kernels=[matmul_kernel])
def split_k(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros(m, n, device=a.device)
    grid = triton.cdiv(m, 16), triton.cdiv(n, 16), triton.cdiv(k, 16)
    matmul_kernel[grid](c, a, b, m, n, k, *a.stride(), *b.stride(), TILE=16)
    return c
