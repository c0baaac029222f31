"""Control: many programs add to one histogram, by integer atomics: in any order the counts are the same bits."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def histogram_kernel(counts, x, count, stride, TILE: tl.constexpr):
    lane = tl.program_id(0) * TILE + tl.arange(0, TILE)
    bucket = tl.load(x + lane * stride, mask=lane < count, other=0)
    tl.atomic_add(counts + bucket, 1, mask=lane < count, sem="relaxed")


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.indices((draw(ks.dims("count", max_value=100)),), bound=8)))


def oracle(x):
    return torch.bincount(x.long(), minlength=8).int()


@kcheck.target(cases=cases(), oracle=oracle, kernels=[histogram_kernel], deterministic=True)
def histogram(x):
    counts = torch.zeros(8, dtype=torch.int32, device=x.device)
    histogram_kernel[(triton.cdiv(x.shape[0], 16),)](counts, x, x.shape[0], x.stride(0), TILE=16)
    return counts
