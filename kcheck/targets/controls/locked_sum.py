"""Control: a sum behind a lock. Loads and stores of two programs meet, and the lock orders them."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def locked_kernel(total, lock, x, count, stride, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    value = tl.sum(tl.load(x + lane * stride, mask=lane < count, other=0), axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("count", max_value=100)),), "int32")))


@kcheck.target(cases=cases(), oracle=lambda x: x.sum(0, True).int(), kernels=[locked_kernel])
def locked_sum(x):
    total, lock = torch.zeros(2, 1, dtype=torch.int32, device=x.device)
    locked_kernel[(triton.cdiv(x.shape[0], 16),)](total, lock, x, x.shape[0], x.stride(0), TILE=16)
    return total
