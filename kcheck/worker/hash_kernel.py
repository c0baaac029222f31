"""Hashes and fills (`kcheck.fill`) as one kernel each on a GPU, in place of some 30 tensor operations."""

# Arguments of a kernel have no Python type, and constexprs are upper-case.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kcheck.fill import MASK, mix

_BLOCK = 1024


@triton.jit
def _mix(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _bits(first, seed_bits, index):
    """32 hashed bits for each index, as int64."""
    bits = _mix((first + index).to(tl.uint32))
    return _mix(bits ^ seed_bits.to(tl.uint32)).to(tl.int64)


# Not specialised: seeds and sizes are as good as random, and each new kind of them would be a compile.
@triton.jit(do_not_specialize=["first", "seed_bits", "count"])
def _hash_kernel(out_ptr, first, seed_bits, count, BLOCK: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + index, _bits(first, seed_bits, index), mask=index < count)


@triton.jit(do_not_specialize=["first", "seed_bits", "count", "scale"])
def _floats_kernel(out_ptr, first, seed_bits, count, scale, DIGITS: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    whole = (_bits(first, seed_bits, index) >> (31 - DIGITS)) - (1 << DIGITS)
    value = whole.to(tl.float32) * scale  # every step is exact
    tl.store(out_ptr + index, value.to(out_ptr.dtype.element_ty), mask=index < count)


FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def floats_on_gpu(
    seed: int, count: int, dtype: torch.dtype, digits: int, exponent: int, device: torch.device | str
) -> torch.Tensor:
    """What `kcheck.worker.values.floats` makes of hashed bits, shape (count,); of one of `FLOATS`."""
    out = torch.empty(count, dtype=dtype, device=device)
    if count:
        grid = (triton.cdiv(count, _BLOCK),)
        first, seed_bits, scale = _signed(0x9E3779B9 * seed), _signed(mix(seed)), 2.0 ** (exponent - digits)
        _floats_kernel[grid](out, first, seed_bits, count, scale, DIGITS=digits, BLOCK=_BLOCK)
    return out


def hashed_on_gpu(seed: int, start: int, count: int, device: torch.device | str) -> torch.Tensor:
    """What `kcheck.worker.values.hashed` gives, on a CUDA device: int64 of shape (count,), 32 bits each."""
    out = torch.empty(count, dtype=torch.int64, device=device)
    if count:
        first = start + 0x9E3779B9 * seed
        _hash_kernel[triton.cdiv(count, _BLOCK),](out, _signed(first), _signed(mix(seed)), count, BLOCK=_BLOCK)
    return out


def _signed(bits: int) -> int:
    """The low 32 bits as a signed integer, so that every seed has the same type in the kernel."""
    low = bits & MASK
    return low - (MASK + 1) if low > MASK >> 1 else low
