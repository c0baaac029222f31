"""Decay the state of each request in a pool of states, and add its new input. An id of -1 is padding.

The wrong one uses -1 as it is: it reads and writes in front of the pool.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.fill import Fill


@triton.jit
def update_kernel(pool, ids, x, state_stride, id_stride, x_row, GUARDED: tl.constexpr, SIZE: tl.constexpr):
    request, lane = tl.program_id(0), tl.arange(0, SIZE)
    state = tl.load(ids + request * id_stride).to(tl.int64)
    value = tl.load(x + request * x_row + lane)
    place = pool + state * state_stride + lane
    if (state >= 0) | (not GUARDED):
        tl.store(place, tl.load(place) * 0.5 + value)


def launch(pool, ids, x, guarded):
    strides = pool.stride(0), ids.stride(0), x.stride(0)
    update_kernel[ids.shape](pool, ids, x, *strides, GUARDED=guarded, SIZE=pool.shape[1])


def oracle(pool, ids, x):
    used = ids >= 0
    pool[ids[used].long()] = pool[ids[used].long()] * 0.5 + x[used]
    return pool


@st.composite
def cases(draw):
    requests = draw(ks.dims("requests", max_value=8))
    padding = draw(ks.dims("padding", min_value=0, max_value=4))
    ids = [*draw(st.permutations(range(requests))), *[-1] * padding]
    return kcheck.Case(
        pool=draw(ks.inouts((requests + 1, 8), kinds=ks.CONTIGUOUS_LAST)),
        ids=draw(ks.tensors((len(ids),), "int32", fill=Fill.of(ids), kinds=ks.WRITABLE)),
        x=draw(ks.tensors((len(ids), 8), kinds=ks.CONTIGUOUS_LAST)),
    )


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[update_kernel], inout=["pool"])


@declare
def state_update(pool, ids, x):
    launch(pool, ids, x, True)


@declare
def state_update_wrong(pool, ids, x):
    launch(pool, ids, x, False)
