"""Rows of a pool gathered by a page table. Two bugs with a source line each: the table's row stride is taken from its
width, the output's rows are taken to be dense. Both together, each alone, and none.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

WIDTH = 8


@triton.jit
def two_bugs_kernel(
    out_ptr, pool_ptr, table_ptr, table_row, table_column, pool_row, pool_lane, out_row, out_lane, LANES: tl.constexpr
):
    request, column, columns = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    lanes = tl.arange(0, LANES)
    page = tl.load(table_ptr + request * table_row + column * table_column)
    values = tl.load(pool_ptr + page * pool_row + lanes * pool_lane)
    tl.store(out_ptr + (request * columns + column) * out_row + lanes * out_lane, values)


def launch(out, pool, table, table_row, out_row):
    two_bugs_kernel[tuple(table.shape)](
        out, pool, table, table_row, table.stride(1), *pool.stride(), out_row, out.stride(1), LANES=WIDTH
    )


def oracle(out, pool, table):
    return pool[table.long().flatten()]


@st.composite
def cases(draw):
    requests, columns = draw(ks.dims("requests", max_value=6)), draw(ks.dims("columns", max_value=5))
    pages = 12
    return kcheck.Case(
        out=draw(ks.outputs((requests * columns, WIDTH), "float32")),
        pool=draw(ks.tensors((pages, WIDTH), "float32")),
        table=draw(ks.indices((requests, columns), dtype="int32", bound=pages)),
    )


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[two_bugs_kernel], outputs=["out"])


@target
def both(out, pool, table):
    launch(out, pool, table, table_row=table.shape[1], out_row=WIDTH)


@target
def table_stride(out, pool, table):
    launch(out, pool, table, table_row=table.shape[1], out_row=out.stride(0))


@target
def output_rows(out, pool, table):
    launch(out, pool, table, table_row=table.stride(0), out_row=WIDTH)


@target
def fixed(out, pool, table):
    launch(out, pool, table, table_row=table.stride(0), out_row=out.stride(0))
