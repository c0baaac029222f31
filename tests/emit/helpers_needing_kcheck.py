"""Imported by targets: it needs kcheck itself, so that what is used of it must be copied."""
# mypy: ignore-errors

import triton
import triton.language as tl

import kcheck  # noqa: F401

LANES = 32
_FACTOR = tl.constexpr(3.0)


@triton.jit
def _tripled(value):
    return value * _FACTOR


@triton.jit
def triple_kernel(x, count, stride, LANES: tl.constexpr):
    lanes = tl.arange(0, LANES)
    tl.store(x + lanes * stride, _tripled(tl.load(x + lanes * stride, mask=lanes < count)), mask=lanes < count)


# A comment above stays with the function.
def triple(x, stride):
    triple_kernel[(1,)](x, x.shape[0], stride, LANES=LANES)


def hashed(x):
    return x.mul_(3)
