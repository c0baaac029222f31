# mypy: ignore-errors
"""Kernels whose result hangs on how programs take turns at atomics, and neighbours of theirs where it does not."""

import triton
import triton.language as tl


@triton.jit
def counts_in_two_steps(out, x):
    """Between the two steps another program can count: that is lost."""
    seen = tl.atomic_add(out, 0)
    tl.atomic_xchg(out, seen + tl.load(x + tl.program_id(0)))


@triton.jit
def counts_in_one_step(out, x):
    tl.atomic_add(out, tl.load(x + tl.program_id(0)))


@triton.jit
def counts_by_swapping(out, x):
    """Two steps, repeated where another program came between."""
    done = 0
    while done == 0:
        seen = tl.atomic_add(out, 0)
        swapped = tl.atomic_cas(out, seen, seen + tl.load(x + tl.program_id(0)))
        done = (swapped == seen).to(tl.int32)


@triton.jit
def last_ticket_stays(out, tickets):
    """Of two programs the one with the higher ticket may store first."""
    tl.atomic_xchg(out, tl.atomic_add(tickets, 1))


@triton.jit
def highest_ticket_stays(out, tickets):
    tl.atomic_max(out, tl.atomic_add(tickets, 1))


@triton.jit
def first_that_came(out, x):
    """Whoever comes first."""
    tl.atomic_cas(out, 0, tl.load(x + tl.program_id(0)))


@triton.jit
def smallest_that_came(out, x):
    tl.atomic_max(out, tl.load(x + tl.program_id(0)))


@triton.jit
def lost_behind_a_branch(out, x):
    """Half of the programs take two steps, the others one."""
    i = tl.program_id(0)
    v = tl.load(x + i)
    if i % 2 == 0:
        tl.atomic_add(out, v)
    else:
        seen = tl.atomic_or(out, 0)
        tl.atomic_xchg(out, seen + v)


@triton.jit
def waits_for_a_neighbour(flags, out):
    """Each program waits for the one after it: nobody can go on before all the others have come."""
    i = tl.program_id(0)
    tl.atomic_xchg(flags + i, 1)
    while tl.atomic_add(flags + (i + 1) % tl.num_programs(0), 0) == 0:
        pass
    tl.store(out + i, 1)


@triton.jit
def guarded_by_a_lock(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.atomic_add(out, 0)
    tl.atomic_xchg(out, seen + 1)
    tl.atomic_xchg(lock, 0)
