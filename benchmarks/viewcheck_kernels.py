"""Kernels and inputs whose cost under the view check is measured: matmul, softmax, attention decode."""

# Pointers of a kernel have no Python type.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from kcheck.targets import paged_gather

Launch = Callable[[], None]
Tensors = dict[str, torch.Tensor]


@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    c_col,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    size = min(tiles_m - first, GROUP)
    pid_m = first + (pid % (GROUP * tiles_n)) % size
    pid_n = (pid % (GROUP * tiles_n)) // size
    rows = (pid_m * M + tl.arange(0, M)) % m
    cols = (pid_n * N + tl.arange(0, N)) % n
    inner = tl.arange(0, K)
    a_ptrs = a_ptr + rows[:, None] * a_row + inner[None, :] * a_col
    b_ptrs = b_ptr + inner[:, None] * b_row + cols[None, :] * b_col
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        a = tl.load(a_ptrs, mask=inner[None, :] < k - step * K, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < k - step * K, other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += K * a_col
        b_ptrs += K * b_row
    rows = pid_m * M + tl.arange(0, M)
    cols = pid_n * N + tl.arange(0, N)
    c_ptrs = c_ptr + rows[:, None] * c_row + cols[None, :] * c_col
    tl.store(c_ptrs, total.to(tl.bfloat16), mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def _softmax_kernel(out_ptr, in_ptr, in_row, out_row, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(in_ptr + row * in_row + lanes, mask=lanes < columns, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_row + lanes, x / tl.sum(x, axis=0), mask=lanes < columns)


@triton.jit
def _decode_kernel(
    out_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    length_ptr,
    scale,
    table_row,
    page_stride,
    slot_stride,
    head_stride,
    PAGE: tl.constexpr,
    HEAD: tl.constexpr,
):
    request, head = tl.program_id(0), tl.program_id(1)
    lanes = tl.arange(0, HEAD)
    at = (request * tl.num_programs(1) + head) * HEAD + lanes
    q = tl.load(q_ptr + at).to(tl.float32)
    length = tl.load(length_ptr + request)
    top, norm = -float("inf"), 0.0
    total = tl.zeros((HEAD,), tl.float32)
    slots = tl.arange(0, PAGE)
    for column in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table_ptr + request * table_row + column).to(tl.int64)
        offset = page * page_stride + slots[:, None] * slot_stride + head * head_stride + lanes[None, :]
        used = column * PAGE + slots < length
        k = tl.load(k_ptr + offset, mask=used[:, None], other=0.0).to(tl.float32)
        scores = tl.where(used, tl.sum(q[None, :] * k, axis=1) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=0))
        weights = tl.exp(scores - new)
        v = tl.load(v_ptr + offset, mask=used[:, None], other=0.0).to(tl.float32)
        total = total * tl.exp(top - new) + tl.sum(weights[:, None] * v, axis=0)
        norm = norm * tl.exp(top - new) + tl.sum(weights, axis=0)
        top = new
    tl.store(out_ptr + at, (total / norm).to(tl.bfloat16))


def gather(requests: int) -> tuple[Tensors, Launch]:
    """The founding kernel: requests of up to 1,024 tokens, pages of 64."""
    size, columns = 64, 16
    pages = requests * columns
    lengths = torch.randint(1, 1025, (requests,), dtype=torch.int32, device="cuda")
    tensors = {
        "out": torch.empty(requests, 1024, paged_gather.ROW, dtype=torch.bfloat16, device="cuda"),
        "pool": torch.randint(0, 120, (pages, paged_gather.page_bytes(size)), dtype=torch.uint8, device="cuda"),
        "table": torch.randperm(pages, device="cuda").to(torch.int32).view(requests, columns),
        "lengths": lengths,
    }
    out, pool, table = tensors["out"], tensors["pool"], tensors["table"]

    def launch() -> None:
        paged_gather.launch(out, pool, table, lengths, None, size, 0, table_request_stride=table.stride(0))

    return tensors, launch


def matmul(size: int) -> tuple[Tensors, Launch]:
    """bfloat16, square."""
    a, b = (torch.randn(size, size, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    tiles = triton.cdiv(size, 128) ** 2

    def launch() -> None:
        _matmul_kernel[(tiles,)](
            a, b, c, size, size, size, *a.stride(), *b.stride(), *c.stride(), 128, 128, 64, 8, num_warps=8, num_stages=3
        )

    return {"a": a, "b": b, "c": c}, launch


def softmax(columns: int) -> tuple[Tensors, Launch]:
    """float32, 16,384 rows."""
    x = torch.randn(16384, columns, device="cuda")
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)

    def launch() -> None:
        _softmax_kernel[(16384,)](out, x, x.stride(0), out.stride(0), columns, block, num_warps=4)

    return {"x": x, "out": out}, launch


def decode(requests: int) -> tuple[Tensors, Launch]:
    """bfloat16, 16 heads of 128, pages of 32, requests of up to 2,048 tokens."""
    heads, head, page, columns = 16, 128, 32, 64
    pages = requests * columns
    q = torch.randn(requests, heads, head, dtype=torch.bfloat16, device="cuda")
    out = torch.empty_like(q)
    k, v = (torch.randn(pages, page, heads, head, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    table = torch.randperm(pages, device="cuda").to(torch.int32).view(requests, columns)
    lengths = torch.randint(1, page * columns + 1, (requests,), dtype=torch.int32, device="cuda")

    def launch() -> None:
        _decode_kernel[(requests, heads)](
            out, q, k, v, table, lengths, head**-0.5, table.stride(0), *k.stride()[:3], page, head, num_warps=4
        )

    return {"out": out, "q": q, "k": k, "v": v, "table": table, "lengths": lengths}, launch


WORKLOADS: dict[str, Callable[[], tuple[Tensors, Launch]]] = {
    "paged gather, 16 requests": lambda: gather(16),
    "paged gather, 64 requests": lambda: gather(64),
    "paged gather, 256 requests": lambda: gather(256),
    "matmul, bf16, 4096": lambda: matmul(4096),
    "softmax, 1024 columns": lambda: softmax(1024),
    "softmax, 1000 columns": lambda: softmax(1000),
    "attention decode, 64 requests": lambda: decode(64),
}
