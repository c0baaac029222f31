"""Programs that meet at one byte, before and after a fix: in place, in a counter, in a reduction, in a store."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def split_kernel(
    out_ptr, x_ptr, columns, out_row, out_column, x_row, x_column, PLACED: tl.constexpr, TILE: tl.constexpr
):
    row, part = tl.program_id(0), tl.program_id(1)
    lanes = tl.arange(0, TILE)
    source = part * TILE + lanes
    values = tl.load(x_ptr + row * x_row + source * x_column, mask=source < columns, other=0.0)
    target = source if PLACED else lanes
    tl.store(out_ptr + row * out_row + target * out_column, values, mask=source < columns)


@triton.jit
def shift_kernel(out_ptr, x_ptr, count, out_stride, x_stride, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    before = tl.load(x_ptr + (lanes - 1) * x_stride, mask=(lanes > 0) & (lanes < count), other=0.0)
    tl.store(out_ptr + lanes * out_stride, before, mask=lanes < count)


@triton.jit
def total_kernel(total_ptr, x_ptr, x_stride, ATOMIC: tl.constexpr):
    value = tl.load(x_ptr + tl.program_id(0) * x_stride)
    if ATOMIC:
        tl.atomic_add(total_ptr, value)
    else:
        tl.store(total_ptr, tl.load(total_ptr) + value)


@triton.jit
def last_program_kernel(out_ptr, parts_ptr, count_ptr, x_ptr, x_stride, SEM: tl.constexpr, WIDTH: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    tl.store(parts_ptr + program, tl.load(x_ptr + program * x_stride))
    if tl.atomic_add(count_ptr, 1, sem=SEM) == programs - 1:
        lanes = tl.arange(0, WIDTH)
        tl.store(out_ptr, tl.sum(tl.load(parts_ptr + lanes, mask=lanes < programs, other=0), axis=0))


@triton.jit
def locked_kernel(out_ptr, lock_ptr, x_ptr, x_stride):
    value = tl.load(x_ptr + tl.program_id(0) * x_stride)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, tl.load(out_ptr) + value)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def flag_kernel(flag_ptr, x_ptr, x_stride, GUARDED: tl.constexpr):
    program = tl.program_id(0)
    value = tl.load(x_ptr + program * x_stride)
    if GUARDED:
        tl.atomic_or(flag_ptr, (value > -2000).to(tl.int32))
    else:
        tl.store(flag_ptr, (value > -2000).to(tl.int32))


@triton.jit
def scatter_kernel(out_ptr, index_ptr, x_ptr, count, ATOMIC: tl.constexpr, TILE: tl.constexpr):
    lanes = tl.arange(0, TILE)
    mask = lanes < count
    place = tl.load(index_ptr + lanes, mask=mask, other=0)
    values = tl.load(x_ptr + lanes, mask=mask, other=0)
    if ATOMIC:
        tl.atomic_max(out_ptr + place, values, mask=mask)
    else:
        tl.store(out_ptr + place, values, mask=mask)


@triton.jit
def look_back_kernel(out_ptr, flag_ptr, x_ptr, x_stride):
    """Each program waits for the one before it: a running sum."""
    program = tl.program_id(0)
    before = 0
    if program > 0:
        while tl.atomic_add(flag_ptr + program - 1, 0) == 0:
            pass
        before = tl.load(out_ptr + program - 1)
    tl.store(out_ptr + program, before + tl.load(x_ptr + program * x_stride))
    tl.atomic_xchg(flag_ptr + program, 1)


@st.composite
def matrices(draw):
    shape = (draw(ks.dims("rows", max_value=4)), draw(ks.options("columns", [16, 32])))
    return kcheck.Case(out=draw(ks.outputs(shape, "float32")), x=draw(ks.tensors(shape, "float32")))


@st.composite
def vectors(draw, min_value=2, kinds=ks.ANY):
    count = draw(ks.dims("count", min_value=min_value, max_value=40))
    return kcheck.Case(x=draw(ks.tensors((count,), "int32", low=-1000, high=1000, kinds=kinds)))


def split(out, x, placed):
    parts = triton.cdiv(x.shape[1], 16)
    split_kernel[(x.shape[0], parts)](out, x, x.shape[1], *out.stride(), *x.stride(), PLACED=placed, TILE=16)


@kcheck.target(cases=matrices(), oracle=lambda out, x: x, kernels=[split_kernel], outputs=["out"])
def split_wrong(out, x):
    split(out, x, False)


@kcheck.target(cases=matrices(), oracle=lambda out, x: x, kernels=[split_kernel], outputs=["out"])
def split_right(out, x):
    split(out, x, True)


def shifted(x):
    return torch.cat((torch.zeros_like(x[:1]), x[:-1]))


def shift(out, x):
    shift_kernel[(triton.cdiv(x.shape[0], 8),)](out, x, x.shape[0], out.stride(0), x.stride(0), TILE=8)


@kcheck.target(cases=vectors(9, ks.WRITABLE), oracle=shifted, kernels=[shift_kernel], consumed=["x"])
def shift_wrong(x):
    """In place: a program reads the last element of the one before it, which may have written it."""
    shift(x, x)
    return x


@kcheck.target(cases=vectors(9), oracle=shifted, kernels=[shift_kernel])
def shift_right(x):
    out = torch.empty_like(x)
    shift(out, x)
    return out


def summed(x):
    return x.sum(dtype=torch.int32).reshape(1)


def total(x, atomic):
    out = torch.zeros(1, dtype=torch.int32, device=x.device)
    total_kernel[(x.shape[0],)](out, x, x.stride(0), ATOMIC=atomic)
    return out


@kcheck.target(cases=vectors(), oracle=summed, kernels=[total_kernel])
def total_wrong(x):
    """One program after the other gives the right sum: the update is lost on a GPU only."""
    return total(x, False)


@kcheck.target(cases=vectors(), oracle=summed, kernels=[total_kernel])
def total_right(x):
    return total(x, True)


def last_program(x, sem):
    out, count = torch.empty(1, dtype=torch.int32, device=x.device), torch.zeros(1, dtype=torch.int32, device=x.device)
    parts = torch.empty(x.shape[0], dtype=torch.int32, device=x.device)
    width = triton.next_power_of_2(x.shape[0])
    last_program_kernel[(x.shape[0],)](out, parts, count, x, x.stride(0), SEM=sem, WIDTH=width)
    return out


@kcheck.target(cases=vectors(), oracle=summed, kernels=[last_program_kernel])
def last_program_wrong(x):
    """A relaxed counter does not hand on what its program has stored."""
    return last_program(x, "relaxed")


@kcheck.target(cases=vectors(), oracle=summed, kernels=[last_program_kernel])
def last_program_right(x):
    return last_program(x, "acq_rel")


@kcheck.target(cases=vectors(), oracle=summed, kernels=[locked_kernel])
def locked(x):
    out, lock = torch.zeros(1, dtype=torch.int32, device=x.device), torch.zeros(1, dtype=torch.int32, device=x.device)
    locked_kernel[(x.shape[0],)](out, lock, x, x.stride(0))
    return out


def flag(x, guarded):
    out = torch.zeros(1, dtype=torch.int32, device=x.device)
    flag_kernel[(x.shape[0],)](out, x, x.stride(0), GUARDED=guarded)
    return out


@kcheck.target(cases=vectors(), oracle=lambda x: torch.ones(1, dtype=torch.int32), kernels=[flag_kernel])
def flag_plain(x):
    """Every program stores the same value."""
    return flag(x, False)


@kcheck.target(cases=vectors(), oracle=lambda x: torch.ones(1, dtype=torch.int32), kernels=[flag_kernel])
def flag_atomic(x):
    return flag(x, True)


@st.composite
def scattered(draw):
    count = draw(ks.dims("count", min_value=2, max_value=16))
    return kcheck.Case(
        out=draw(ks.tensors((4,), "int32", low=-1, high=-1, kinds=ks.DENSE)),
        index=draw(ks.indices((count,), bound=4, dtype="int64", kinds=ks.DENSE)),
        x=draw(ks.tensors((count,), "int32", low=0, high=1000, kinds=ks.DENSE)),
    )


def largest(out, index, x):
    out.scatter_reduce_(0, index, x, "amax")


def last_one(out, index, x):
    for place, value in zip(index.tolist(), x.tolist(), strict=True):
        out[place] = value


@kcheck.target(cases=scattered(), oracle=last_one, kernels=[scatter_kernel], inout=["out"])
def scatter_wrong(out, index, x):
    """The last lane wins here, as in the oracle; on a GPU any may."""
    scatter_kernel[(1,)](out, index, x, x.shape[0], ATOMIC=False, TILE=16)


@kcheck.target(cases=scattered(), oracle=largest, kernels=[scatter_kernel], inout=["out"])
def scatter_right(out, index, x):
    scatter_kernel[(1,)](out, index, x, x.shape[0], ATOMIC=True, TILE=16)


@kcheck.target(cases=vectors(), oracle=lambda x: x.cumsum(0, dtype=torch.int32), kernels=[look_back_kernel])
def look_back(x):
    out, flags = torch.empty_like(x), torch.zeros_like(x)
    look_back_kernel[(x.shape[0],)](out, flags, x, x.stride(0))
    return out
