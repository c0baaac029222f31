"""Control: a hash table whose hashes wrap in 32 bits by design, and only then become a place."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def lookup_kernel(out, table, keys, count, stride, SIZE: tl.constexpr, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    key = tl.load(keys + lane * stride, mask=lane < count, other=0)
    place = (key * 1103515245 + 12345) & (SIZE - 1)
    tl.store(out + lane, tl.load(table + place, mask=lane < count), mask=lane < count)


def oracle(keys, table):
    return table[(keys.long() * 1103515245 + 12345) & (table.shape[0] - 1)]


@st.composite
def cases(draw):
    keys = draw(ks.tensors((draw(ks.dims("count", max_value=64)),), "int32", low=2**28, high=2**31 - 1))
    size = draw(ks.options("size", [8, 64]))
    return kcheck.Case(keys=keys, table=draw(ks.tensors((size,), "int32", kinds=ks.DENSE)))


@kcheck.target(cases=cases(), oracle=oracle, kernels=[lookup_kernel])
def wrapping_hash(keys, table):
    out = torch.empty(keys.shape, dtype=torch.int32, device=keys.device)
    grid = (triton.cdiv(keys.shape[0], 16),)
    lookup_kernel[grid](out, table, keys, keys.shape[0], keys.stride(0), SIZE=table.shape[0], TILE=16)
    return out
