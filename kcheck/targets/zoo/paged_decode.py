"""One decoding step of attention over a paged cache whose entries are key and value at once.

The wrong one takes it that pages follow each other. A cache that is one layer of a pool, ``pool[:, layer]``, has the
other layers between them.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def decode_kernel(
    out, q, cache, table, lengths, page_stride, token_stride, row, column, B: tl.constexpr, SIZE: tl.constexpr
):
    request, lane = tl.program_id(0), tl.arange(0, SIZE)
    query, length = tl.load(q + request * SIZE + lane), tl.load(lengths + request)
    most, total, result = float("-inf"), 0.0, tl.zeros((SIZE,), tl.float32)
    for index in range(0, tl.cdiv(length, B)):
        page = tl.load(table + request * row + index * column).to(tl.int64)
        token = tl.arange(0, B)
        entry = cache + page * page_stride + token[:, None] * token_stride + lane[None, :]
        inside = index * B + token < length
        keys = tl.load(entry, mask=inside[:, None], other=0.0)
        score = tl.where(inside, tl.sum(query[None, :] * keys, axis=1), float("-inf"))
        above = tl.maximum(most, tl.max(score, axis=0))
        power, keep = tl.exp(score - above), tl.exp(most - above)
        total, most = total * keep + tl.sum(power, axis=0), above
        result = result * keep + tl.sum(power[:, None] * keys, axis=0)
    tl.store(out + request * SIZE + lane, result / total)


def launch(q, cache, table, lengths, page_stride):
    requests, size = q.shape
    out = torch.empty(requests, size, device=q.device)
    strides = page_stride, cache.stride(1), *table.stride()
    decode_kernel[(requests,)](out, q, cache, table, lengths, *strides, B=cache.shape[1], SIZE=size)
    return out


def oracle(q, cache, table, lengths):
    out = []
    for query, pages, length in zip(q, table, lengths.tolist(), strict=True):
        keys = cache[pages[: -(-length // cache.shape[1])].long()].flatten(0, 1)[:length]
        out.append((keys @ query).softmax(0) @ keys)
    return torch.stack(out)


@st.composite
def cases(draw):
    kv = draw(ks.paged_kv(min_len=1))
    layer, _ = draw(kv.pools((16,), kinds=ks.CONTIGUOUS_LAST))
    q = draw(ks.tensors((kv.num_requests, 16), kinds=["contiguous"]))
    return kcheck.Case(q=q, cache=layer, table=kv.block_table, lengths=kv.seq_lens)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[decode_kernel])


@declare
def paged_decode(q, cache, table, lengths):
    return launch(q, cache, table, lengths.contiguous(), cache.stride(0))


@declare
def paged_decode_wrong(q, cache, table, lengths):
    return launch(q, cache, table, lengths.contiguous(), cache.shape[1] * cache.stride(1))
