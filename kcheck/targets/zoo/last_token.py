"""The last token of every request, from a paged cache.

The wrong one looks up the page of token `length`, one too far. It is the same page, unless the length is a multiple of
the page size: then it is another one, or none.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def last_kernel(
    out, cache, table, lengths, page_stride, row, column, BACK: tl.constexpr, B: tl.constexpr, N: tl.constexpr
):
    request, lane = tl.program_id(0), tl.arange(0, N)
    length = tl.load(lengths + request)
    page = tl.load(table + request * row + (length - BACK) // B * column).to(tl.int64)
    value = tl.load(cache + page * page_stride + (length - 1) % B * N + lane)
    tl.store(out + request * N + lane, value)


def launch(cache, table, lengths, back):
    out = torch.empty(lengths.shape[0], cache.shape[2], device=cache.device)
    strides, sizes = (cache.stride(0), *table.stride()), {"B": cache.shape[1], "N": cache.shape[2]}
    last_kernel[lengths.shape](out, cache, table, lengths.contiguous(), *strides, BACK=back, **sizes)
    return out


def oracle(cache, table, lengths):
    last = lengths.long() - 1
    pages = table.gather(1, last[:, None] // cache.shape[1])[:, 0]
    return cache[pages.long(), last % cache.shape[1]]


@st.composite
def cases(draw):
    kv = draw(ks.paged_kv(min_len=1, unused_entries=("decoy", "0")))
    cache = draw(ks.tensors((kv.num_blocks, kv.block_size, 8), kinds=["contiguous"]))
    return kcheck.Case(cache=cache, table=kv.block_table, lengths=kv.seq_lens)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[last_kernel])


@declare
def last_token(cache, table, lengths):
    return launch(cache, table, lengths, 1)


@declare
def last_token_wrong(cache, table, lengths):
    return launch(cache, table, lengths, 0)
