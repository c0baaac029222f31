# mypy: ignore-errors
"""Kernels whose accesses the test chooses."""

import triton
import triton.language as tl


@triton.jit
def visit(x, reads, writes, values, out, LANES: tl.constexpr):
    """Every program reads some elements of `x`, then writes some; -1 is no access."""
    program, lanes = tl.program_id(0), tl.arange(0, LANES)
    source = tl.load(reads + program * LANES + lanes)
    seen = tl.load(x + source, mask=source >= 0, other=0)
    tl.store(out + program * LANES + lanes, seen)
    target = tl.load(writes + program * LANES + lanes)
    tl.store(x + target, tl.load(values + program * LANES + lanes), mask=target >= 0)


@triton.jit
def hand_over(x, flag, out, SEM: tl.constexpr, CLAIM: tl.constexpr):
    """Program 0 writes and raises a flag; the others look at the flag and read."""
    program = tl.program_id(0)
    if program == 0:
        tl.store(x, 7)
        tl.atomic_xchg(flag, 1, sem=SEM)
    else:
        ready = tl.atomic_add(flag + program * (not CLAIM), 0, sem=SEM)
        tl.store(out + program, tl.load(x) + ready)


@triton.jit
def halves(x, out, WIDE: tl.constexpr):
    """Program 0 writes 4 bytes, program 1 reads 2 of them."""
    if tl.program_id(0) == 0:
        tl.store(x, 1)
    else:
        half = x.to(tl.pointer_type(tl.int16)) + (1 if WIDE else 2)
        tl.store(out, tl.load(half).to(tl.int32))


@triton.jit
def two_sizes(x, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x + offs, offs, mask=offs < n)
    tl.store(x + offs, offs + 1, mask=offs < n)


@triton.jit
def keeps_sum(x, out):
    """Adds what wraps and takes it away again: the address is right."""
    big = tl.load(x)
    tl.store(out + (big + 2147483647 - 2147483647), 1.0)


@triton.jit
def adds_up(x, out, where):
    tl.store(out, tl.load(x + (tl.load(where) + tl.load(where + 1))))


@triton.jit
def volatile_flag(flag, out):
    if tl.program_id(0) == 0:
        tl.store(flag, 1)
    else:
        tl.store(out, tl.load(flag, volatile=True))
