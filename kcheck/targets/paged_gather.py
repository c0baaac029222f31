"""``builtin:paged_gather``: gather the last tokens of every request from a paged, quantised cache. Correct.

A page of a pool holds `block_size` records, then their scales, then padding to a multiple of 576 bytes::

    448 fp8 e4m3 | 64 bf16      576 bytes, once a token
    8 UE8M0 scales                8 bytes, once a token: one for each 64 fp8 elements, the eighth unused
    padding

A gathered row is 512 bf16: 448 times fp8 × 2**(scale - 127), then the 64 bf16 as they are. Every product is exact in
bf16, so rows are compared bit by bit.
"""

# Pointers of a kernel have no Python type.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

GROUP = 64  # fp8 elements that share a scale
GROUPS = 7
PLAIN = 64  # bf16 elements of a record
RECORD = GROUPS * GROUP + 2 * PLAIN  # bytes
SCALES = 8  # bytes
ROW = GROUPS * GROUP + PLAIN  # elements of a gathered row
_GROUP, _RECORD, _SCALES = tl.constexpr(GROUP), tl.constexpr(RECORD), tl.constexpr(SCALES)
_QUANTISED = tl.constexpr(GROUPS * GROUP)  # the bf16 part begins here: byte of a record, element of a row
_REBIAS = tl.constexpr(2.0**120)  # from the exponent's bias of float32, 127, to that of e4m3, 7

WORKERS = 16  # most programs that share the pages of a request
MOST_TOKENS = 16  # that a program gathers at a time


def page_bytes(block_size: int) -> int:
    """Bytes of a page of `block_size` tokens."""
    return -(-block_size * (RECORD + SCALES) // RECORD) * RECORD


@triton.jit
def _e4m3_to_float32(byte):
    """Decode by bits: Triton has this type from sm_89 on only."""
    magnitude = (byte & 0x7F).to(tl.int32)
    value = (magnitude << 20).to(tl.float32, bitcast=True) * _REBIAS
    value = tl.where(magnitude == 0x7F, float("nan"), value)
    return tl.where(byte >= 0x80, -value, value)


@triton.jit
def _paged_gather_kernel(
    out_ptr,
    pool_ptr,
    table_ptr,
    seq_lens_ptr,
    gather_lens_ptr,
    row_start,
    out_request_stride,
    out_row_stride,
    out_element_stride,
    page_stride,
    table_request_stride,
    table_column_stride,
    seq_lens_stride,
    gather_lens_stride,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Program (r, w) gathers the pages w, w + workers, … of request r; a page in tiles of TILE tokens."""
    request = tl.program_id(0).to(tl.int64)
    length = tl.load(seq_lens_ptr + request * seq_lens_stride)
    first = length * 0
    if gather_lens_ptr is not None:
        first = tl.maximum(length - tl.load(gather_lens_ptr + request * gather_lens_stride), 0)
    group = tl.arange(0, _SCALES)[None, :, None]
    element = tl.arange(0, _GROUP)[None, None, :].to(tl.int64)  # of a group, and of the bf16 part
    lane = group * _GROUP + element
    out_ptr += request * out_request_stride
    for column in range(first // BLOCK_SIZE + tl.program_id(1), tl.cdiv(length, BLOCK_SIZE), tl.num_programs(1)):
        page = tl.load(table_ptr + request * table_request_stride + column * table_column_stride)
        page_ptr = pool_ptr + page.to(tl.int64) * page_stride
        for start in range(0, BLOCK_SIZE, TILE):
            slot = start + tl.arange(0, TILE)[:, None, None]
            position = column * BLOCK_SIZE + slot
            gathered = (slot < BLOCK_SIZE) & (position >= first) & (position < length)
            record_ptr = page_ptr + slot * _RECORD
            row_ptr = out_ptr + (row_start + position - first).to(tl.int64) * out_row_stride

            quantised = gathered & (group * _GROUP < _QUANTISED)
            byte = tl.load(record_ptr + lane, mask=quantised, other=0)
            scale = tl.load(page_ptr + BLOCK_SIZE * _RECORD + slot * _SCALES + group, mask=quantised, other=0)
            value = _e4m3_to_float32(byte) * (scale.to(tl.int32) << 23).to(tl.float32, bitcast=True)
            tl.store(row_ptr + lane * out_element_stride, value.to(tl.bfloat16), mask=quantised)

            # Two bytes, not one bf16: a pool may start at an odd address.
            plain_ptr = record_ptr + _QUANTISED + 2 * element
            low = tl.load(plain_ptr, mask=gathered, other=0).to(tl.uint16)
            high = tl.load(plain_ptr + 1, mask=gathered, other=0).to(tl.uint16)
            plain = (low | (high << 8)).to(tl.bfloat16, bitcast=True)
            tl.store(row_ptr + (_QUANTISED + element) * out_element_stride, plain, mask=gathered)


def launch(
    out: torch.Tensor,
    pool: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor | None,
    block_size: int,
    row_start: int,
    *,
    table_request_stride: int,
) -> None:
    """Gather into ``out[r, row_start:]``; rows not gathered are left as they are.

    Args:
        out: (requests, rows, 512) bf16, any layout.
        pool: (pages, page_bytes(block_size)) uint8, last stride 1; any distance between pages.
        block_table: (requests, columns) page ids, any layout.
        seq_lens: (requests,) tokens of each request.
        gather_lens: (requests,) how many of its last tokens to gather; None: all.
        block_size: Tokens a page.
        row_start: Row of `out` that the first gathered token goes to.
        table_request_stride: Elements from one row of the table to the next.

    Raises:
        ValueError: A shape, a data type or the pool's last stride is not as said.
    """
    if pool.dtype != torch.uint8 or pool.shape[1] != page_bytes(block_size):
        raise ValueError(f"pool is {pool.dtype} {tuple(pool.shape)}; expected pages of {page_bytes(block_size)} uint8")
    if pool.stride(1) != 1:
        raise ValueError(f"pool: its last stride is {pool.stride(1)}; expected 1")
    if out.dtype != torch.bfloat16 or out.shape[0] != seq_lens.shape[0] or out.shape[2] != ROW:
        raise ValueError(f"out is {out.dtype} {tuple(out.shape)}; expected bfloat16 ({seq_lens.shape[0]}, rows, {ROW})")
    requests, columns = block_table.shape
    if requests == 0 or columns == 0:
        return
    _paged_gather_kernel[requests, min(columns, WORKERS)](
        out,
        pool,
        block_table,
        seq_lens,
        gather_lens,
        row_start,
        *out.stride(),
        pool.stride(0),
        table_request_stride,
        block_table.stride(1),
        seq_lens.stride(0),
        0 if gather_lens is None else gather_lens.stride(0),
        BLOCK_SIZE=block_size,
        TILE=min(triton.next_power_of_2(block_size), MOST_TOKENS),
    )


def gather_oracle(
    out: torch.Tensor,
    pool: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor | None,
    block_size: int,
    row_start: int,
) -> torch.Tensor:
    """The same in plain PyTorch."""
    records = pool[:, : block_size * RECORD].reshape(-1, block_size, RECORD)
    scales = pool[:, block_size * RECORD : block_size * (RECORD + SCALES)].reshape(-1, block_size, SCALES)
    first = torch.zeros_like(seq_lens) if gather_lens is None else (seq_lens - gather_lens).clamp(min=0)
    position = torch.arange(block_table.shape[1] * block_size, device=pool.device)
    request, position = ((position >= first[:, None]) & (position < seq_lens[:, None])).nonzero(as_tuple=True)
    page, slot = block_table[request, position // block_size].long(), position % block_size
    record, scale = records[page, slot], scales[page, slot, :GROUPS]
    values = record[:, : GROUPS * GROUP].view(torch.float8_e4m3fn).float().reshape(-1, GROUPS, GROUP)
    values = values * (scale.int() << 23).view(torch.float32)[:, :, None]
    plain = record[:, GROUPS * GROUP :].contiguous().view(torch.bfloat16)
    out[request, row_start + position - first[request]] = torch.cat([values.flatten(1).bfloat16(), plain], 1).to(out)
    return out


@st.composite
def cases(draw: st.DrawFn, max_requests: int = 256) -> kcheck.Case:
    """Ragged requests over a pool whose every byte makes finite, normal numbers of all three formats."""
    kv = draw(ks.paged_kv(max_requests=max_requests, block_sizes=(4, 16), max_num_blocks=64))
    row_start = draw(ks.options("row_start", (0, 3)))
    pages = (kv.num_blocks, page_bytes(kv.block_size))
    out = draw(ks.inouts((kv.num_requests, row_start + kv.max_seq_len, ROW), "bfloat16"))
    pool = draw(ks.tensors(pages, "uint8", kinds=ks.CONTIGUOUS_LAST, low=0x20, high=0x7E))
    gather_lens = None
    if draw(ks.options("gather", ("all", "last"))) == "last":
        gather_lens = draw(ks.tensors((kv.num_requests,), ("int32", "int64"), low=0, high=kv.max_seq_len))
    return kcheck.Case(
        out=out,
        pool=pool,
        block_table=kv.block_table,
        seq_lens=kv.seq_lens,
        gather_lens=gather_lens,
        block_size=kv.block_size,
        row_start=row_start,
    )


declare = kcheck.target(cases=cases(), oracle=gather_oracle, kernels=[_paged_gather_kernel], inout=["out"], exact=True)


@declare
def paged_gather(
    out: torch.Tensor,
    pool: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor | None,
    block_size: int,
    row_start: int,
) -> None:
    """Steps from one row of the table to the next by the table's own stride."""
    launch(
        out,
        pool,
        block_table,
        seq_lens,
        gather_lens,
        block_size,
        row_start,
        table_request_stride=block_table.stride(0),
    )
