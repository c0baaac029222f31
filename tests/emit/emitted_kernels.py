"""Wrong kernels with their repaired twins, for what a stand-alone test must show."""
# mypy: ignore-errors

import helpers_needing_kcheck
import torch
import triton
import triton.language as tl
from helpers_needing_kcheck import hashed, triple
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

FACTOR = tl.constexpr(2.0)  # a global of the kernel


@triton.jit
def add_planes_kernel(k, v, page, lane, v_shift, LANES: tl.constexpr):
    lanes = tl.arange(0, LANES)
    here = tl.program_id(0) * page + lanes * lane
    tl.store(v + here + v_shift, tl.load(k + here) * FACTOR)


def add_planes(k, v, v_shift):
    """``v[...] = 2 * k``; both are planes of one pool."""
    add_planes_kernel[(k.shape[0],)](k, v, k.stride(0), k.stride(1), v_shift, LANES=k.shape[1])


@st.composite
def pools(draw):
    k, v = draw(ks.planes((3, 4), "float32", role="inout"))
    return kcheck.Case(k=k, v=v)


pool = kcheck.target(cases=pools(), oracle=lambda k, v: (k, 2 * k), kernels=[add_planes_kernel], inout=["k", "v"])


@pool
def pool_wrong(k, v):
    add_planes(k, v, -k.shape[1])


@pool
def pool_fixed(k, v):
    add_planes(k, v, 0)


@triton.jit
def negate_kernel(x, count, stride, LANES: tl.constexpr):
    lanes = tl.arange(0, LANES)
    tl.store(x + lanes * stride, -tl.load(x + lanes * stride, mask=lanes < count), mask=lanes < count)


@st.composite
def vectors(draw):
    return kcheck.Case(x=draw(ks.inouts((draw(ks.dims("count", min_value=2, max_value=20)),), "float32")))


def negated(x):
    x.neg_()  # the oracle writes its own output and returns None


in_place = kcheck.target(cases=vectors(), oracle=negated, kernels=[negate_kernel], inout=["x"])


@in_place
def in_place_wrong(x):
    negate_kernel[(1,)](x, x.shape[0], 1, LANES=32)


@in_place
def in_place_fixed(x):
    negate_kernel[(1,)](x, x.shape[0], x.stride(0), LANES=32)


@triton.jit
def rows_kernel(out, sums, x, columns, x_row, x_column, LANES: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, LANES)
    values = tl.load(x + row * x_row + lanes * x_column, mask=lanes < columns, other=0.0)
    tl.store(out + row * columns + lanes, values, mask=lanes < columns)
    tl.store(sums + row, tl.sum(values, 0))


def copied(x, x_column, options):
    out, sums = torch.empty(x.shape, dtype=x.dtype, device=x.device), torch.empty(x.shape[0], device=x.device)
    rows_kernel[(x.shape[0],)](out, sums, x, x.shape[1], x.stride(0), x_column, LANES=32)
    return {"rows": out, "sums": sums.to(options[0])}


@st.composite
def matrices(draw):
    shape = draw(ks.dims("rows", max_value=4)), draw(ks.dims("columns", min_value=2, max_value=32))
    return kcheck.Case(x=draw(ks.tensors(shape, "float32")), options=(torch.float64, 1.5, "it's", None, True))


nested = kcheck.target(cases=matrices(), oracle=lambda x, options: (x, x.sum(1)), kernels=[rows_kernel])


@nested
def nested_wrong(x, options):
    return copied(x, 1, options)


@nested
def nested_fixed(x, options):
    return copied(x, x.stride(1), options)


@kcheck.target(cases=matrices(), kernels=[rows_kernel])
def without_oracle_wrong(x, options):
    return copied(x, 1, options)


@kcheck.target(cases=matrices(), kernels=[rows_kernel])
def without_oracle_fixed(x, options):
    return copied(x, x.stride(1), options)


@kcheck.target(cases=matrices(), oracle=lambda x, options: (x, x.sum(1)), must_accept={"x": ["transposed"]})
def declines_wrong(x, options):
    if x.stride(1) != 1:
        raise ValueError("rows must be dense")
    return copied(x, 1, options)


@kcheck.target(cases=matrices(), oracle=lambda x, options: (x, x.sum(1)), must_accept={"x": ["transposed"]})
def declines_fixed(x, options):
    return copied(x, x.stride(1), options)


@nested
def always_raises(x, options):
    raise ValueError("never")


def made(stride_of):
    """A target whose function is made by another function: its source cannot be copied."""

    @kcheck.target(cases=vectors(), oracle=negated, kernels=[negate_kernel], inout=["x"], name="made")
    def inner(x):
        negate_kernel[(1,)](x, x.shape[0], stride_of(x), LANES=32)

    return inner


made_wrong = made(lambda x: 1)
made_fixed = made(lambda x: x.stride(0))


thrice = kcheck.target(
    cases=vectors(), oracle=lambda x: x.mul_(3), kernels=[helpers_needing_kcheck.triple_kernel], inout=["x"]
)


@thrice
def from_helpers_wrong(x):
    triple(x, 1)


@thrice
def from_helpers_fixed(x):
    triple(x, x.stride(0))


clash = kcheck.target(cases=vectors(), oracle=hashed, kernels=[helpers_needing_kcheck.triple_kernel], inout=["x"])


@clash
def clash_wrong(x):
    triple(x, 1)


@clash
def clash_fixed(x):
    triple(x, x.stride(0))


@in_place
def asks_for_gpu_wrong(x):
    assert x.is_cuda
    negate_kernel[(1,)](x, x.shape[0], 1, LANES=32)


@in_place
def asks_for_gpu_fixed(x):
    assert x.is_cuda
    negate_kernel[(1,)](x, x.shape[0], x.stride(0), LANES=32)


@in_place
def raises_wrong(x):
    assert x.is_cuda
    negate_kernel[(1,)](x, x.shape[0], x.stride(0), LANES=32)
    if not x.is_contiguous():
        raise IndexError("out of range")
