"""Clear pages of a cache before they are used again.

The wrong one takes the distance between two pages for the length of a page. Where the cache is a part of something
wider it clears what belongs to others, and after the last page what comes behind the cache.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.fill import Fill


@triton.jit
def clear_kernel(cache, pages, page_stride, page_size, BLOCK: tl.constexpr):
    page = tl.load(pages + tl.program_id(0)).to(tl.int64)
    for start in range(0, page_size, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        tl.store(cache + page * page_stride + lane, 0.0, mask=lane < page_size)


def launch(cache, pages, page_size):
    clear_kernel[pages.shape](cache, pages, cache.stride(0), page_size, BLOCK=32)


def oracle(cache, pages):
    cache[pages.long()] = 0.0
    return cache


@st.composite
def cases(draw):
    count, size = draw(ks.dims("pages", max_value=16)), draw(ks.dims("page_size", max_value=64))
    used = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count, unique=True))
    cache = draw(ks.inouts((count, size), kinds=ks.CONTIGUOUS_LAST))
    return kcheck.Case(cache=cache, pages=draw(ks.tensors((len(used),), "int32", fill=Fill.of(used), kinds=ks.DENSE)))


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[clear_kernel], inout=["cache"])


@declare
def clear_pages(cache, pages):
    launch(cache, pages, cache.shape[1])


@declare
def clear_pages_wrong(cache, pages):
    launch(cache, pages, cache.stride(0))
