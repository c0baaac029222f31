"""Sum of a request's pages. The wrong loop reads one table entry more than the request has. The lanes of that page are
masked off, so that the sum is right all the same; in the second wrong one they count.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

SLOTS = 4


@triton.jit
def sum_pages_kernel(
    total_ptr, pool_ptr, table_ptr, length, total_stride, pool_page, pool_slot, table_row, table_column,
    EXTRA: tl.constexpr, MASKED: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    request, slot = tl.program_id(0), tl.arange(0, SLOTS)
    total = tl.zeros((SLOTS,), tl.int32)
    for column in range(tl.cdiv(length, SLOTS) + EXTRA):
        page = tl.load(table_ptr + request * table_row + column * table_column)
        live = column * SLOTS + slot < (length if MASKED else length + SLOTS * EXTRA)
        total += tl.load(pool_ptr + page * pool_page + slot * pool_slot, mask=live, other=0)
    tl.store(total_ptr + request * total_stride, tl.sum(total, axis=0))


def launch(total, pool, table, length, extra, masked=True):
    sum_pages_kernel[(table.shape[0],)](
        total, pool, table, length, total.stride(0), *pool.stride(), *table.stride(),
        EXTRA=extra, MASKED=masked, SLOTS=SLOTS,
    )  # fmt: skip


def oracle(total, pool, table, length):
    return pool[table.long()].flatten(1)[:, :length].sum(dim=1).int()


@st.composite
def cases(draw):
    requests, columns = draw(ks.dims("requests", max_value=4)), draw(ks.dims("columns", max_value=4))
    unused = draw(ks.options("unused", [0, 1, 3]))  # 0: the length is a multiple of the page
    return kcheck.Case(
        total=draw(ks.outputs((requests,), "int32")),
        pool=draw(ks.tensors((8, SLOTS), "int32", low=0, high=1000)),
        table=draw(ks.indices((requests, columns), dtype="int32", bound=8)),
        length=columns * SLOTS - unused,
    )


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[sum_pages_kernel], outputs=["total"])


@target
def wrong(total, pool, table, length):
    launch(total, pool, table, length, extra=1)


@target
def wrong_sum(total, pool, table, length):
    launch(total, pool, table, length, extra=1, masked=False)


@target
def fixed(total, pool, table, length):
    launch(total, pool, table, length, extra=0)
