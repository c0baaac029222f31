"""Write new keys and values into a paged cache; a slot of -1 is padding.

The wrong one writes the values with the strides of the keys. The two caches need not be laid out alike.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def write_kernel(k_cache, v_cache, k, v, slots, k_page, k_token, v_page, v_token, B: tl.constexpr, SIZE: tl.constexpr):
    token, lane = tl.program_id(0), tl.arange(0, SIZE)
    slot = tl.load(slots + token)
    if slot >= 0:
        key, value = tl.load(k + token * SIZE + lane), tl.load(v + token * SIZE + lane)
        tl.store(k_cache + slot // B * k_page + slot % B * k_token + lane, key)
        tl.store(v_cache + slot // B * v_page + slot % B * v_token + lane, value)


def launch(k_cache, v_cache, k, v, slots, v_strides):
    size = {"B": k_cache.shape[1], "SIZE": k_cache.shape[2]}
    write_kernel[slots.shape](k_cache, v_cache, k, v, slots, *k_cache.stride()[:2], *v_strides[:2], **size)


def oracle(k_cache, v_cache, k, v, slots):
    used = slots >= 0
    for cache, x in ((k_cache, k), (v_cache, v)):
        cache.flatten(0, 1)[slots[used].long()] = x[used]
    return k_cache, v_cache


@st.composite
def cases(draw):
    kv = draw(ks.paged_kv(max_requests=4, table_ids=("sequential", "permuted", "highest")))
    slots = draw(kv.slot_mapping(max_padding=4, kinds=ks.DENSE))
    shape, new = (kv.num_blocks, kv.block_size, 8), ks.tensors((*slots.shape, 8), kinds=["contiguous"])
    k_cache, v_cache = draw(ks.inouts(shape, kinds=["contiguous"])), draw(ks.inouts(shape, kinds=ks.CONTIGUOUS_LAST))
    return kcheck.Case(k_cache=k_cache, v_cache=v_cache, k=draw(new), v=draw(new), slots=slots)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[write_kernel], inout=["k_cache", "v_cache"])


@declare
def cache_write(k_cache, v_cache, k, v, slots):
    launch(k_cache, v_cache, k, v, slots, v_cache.stride())


@declare
def cache_write_wrong(k_cache, v_cache, k, v, slots):
    launch(k_cache, v_cache, k, v, slots, k_cache.stride())
