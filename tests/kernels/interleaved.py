"""Pages copied out of a K pool. The wrong one takes the distance between pages from a page's size; K of an interleaved
pool is ``pool[:, 0]``, with a V page between any two of its pages.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

SLOTS, WIDTH = 4, 8


@triton.jit
def copy_pages_kernel(
    out_ptr, k_ptr, ids_ptr, out_page, out_slot, out_lane, k_page, k_slot, k_lane, ids_stride,
    SLOTS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    slots, lanes = tl.arange(0, SLOTS)[:, None], tl.arange(0, WIDTH)[None, :]
    page = tl.load(ids_ptr + i * ids_stride).to(tl.int64)
    values = tl.load(k_ptr + page * k_page + slots * k_slot + lanes * k_lane)
    tl.store(out_ptr + i * out_page + slots * out_slot + lanes * out_lane, values)


def launch(out, k_pool, ids, k_page):
    copy_pages_kernel[(ids.shape[0],)](
        out, k_pool, ids, *out.stride(), k_page, *k_pool.stride()[1:], ids.stride(0), SLOTS=SLOTS, WIDTH=WIDTH
    )


def oracle(out, k_pool, ids):
    return k_pool[ids.long()]


@st.composite
def cases(draw):
    count, pages = draw(ks.dims("count", max_value=6)), draw(ks.dims("pages", min_value=3, max_value=9))
    return kcheck.Case(
        out=draw(ks.outputs((count, SLOTS, WIDTH), "float32")),
        k_pool=draw(ks.tensors((pages, SLOTS, WIDTH), "float32")),
        ids=draw(ks.indices((count,), dtype="int64", bound=pages)),
    )


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[copy_pages_kernel], outputs=["out"])


@target
def wrong(out, k_pool, ids):
    launch(out, k_pool, ids, k_page=SLOTS * WIDTH)


@target
def fixed(out, k_pool, ids):
    launch(out, k_pool, ids, k_page=k_pool.stride(0))
