"""Copy pages that a kernel finds by their addresses, in a table of integers.

The wrong one computes the addresses from the beginning of the memory, and forgets where in it the pool begins.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def copy_kernel(out, addresses, SIZE: tl.constexpr):
    page, lane = tl.program_id(0), tl.arange(0, SIZE)
    source = tl.load(addresses + page).to(tl.pointer_type(tl.float32))
    tl.store(out + page * SIZE + lane, tl.load(source + lane))


def launch(pool, pages, start):
    out = torch.empty(pages.shape[0], pool.shape[1], device=pool.device)
    addresses = start + pages.long() * pool.stride(0) * pool.element_size()
    copy_kernel[pages.shape](out, addresses, SIZE=pool.shape[1])
    return out


@st.composite
def cases(draw):
    count, pages = draw(ks.dims("count", min_value=3, max_value=16)), draw(ks.dims("pages", max_value=8))
    pool = draw(ks.tensors((count, 8), kinds=ks.CONTIGUOUS_LAST))
    return kcheck.Case(pool=pool, pages=draw(ks.indices((pages,), bound=count)))


declare = kcheck.target(cases=cases(), oracle=lambda pool, pages: pool[pages.long()], kernels=[copy_kernel], exact=True)


@declare
def page_addresses(pool, pages):
    return launch(pool, pages, pool.data_ptr())


@declare
def page_addresses_wrong(pool, pages):
    return launch(pool, pages, pool.untyped_storage().data_ptr())
