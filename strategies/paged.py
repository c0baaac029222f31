"""A paged cache: its requests, and the pools that they address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from kcheck import plan
from kcheck.case import Role, Tensor
from kcheck.dtypes import dtype_named
from kcheck.errors import SpecError
from kcheck.strategies import tables
from kcheck.strategies.dims import draw_dim, draw_option, sampled
from kcheck.strategies.direct import direct
from kcheck.strategies.indexing import (
    AnyKinds,
    check_policies,
    draw_lengths,
    draw_policies,
    draw_table,
    slot_mappings,
)
from kcheck.strategies.kinds import ANY, Kinds
from kcheck.strategies.parts import planes
from kcheck.strategies.tables import LENGTHS, TABLE_IDS, UNUSED_ENTRIES
from kcheck.strategies.tensors import INT32, INT64, DTypes, case_seed, explicit, inouts, tensors

LEAST_PAGES = 3  # with one page a wrong id is the right page
_POLICIES = st.integers(0, 511)


@dataclass(frozen=True, slots=True, eq=False)
class PagedKV:
    """What `paged_kv` draws.

    Attributes:
        num_requests: Rows of the table.
        block_size: Tokens a page.
        num_blocks: Pages of the pool.
        max_seq_len: Tokens of the longest request.
        max_blocks_per_request: Width of the table.
        lengths: Tokens of each request.
        entries: Entries of the table, row-major.
        seq_lens: (num_requests,) tokens of each request.
        block_table: (num_requests, max_blocks_per_request) page ids.
    """

    num_requests: int
    block_size: int
    num_blocks: int
    max_seq_len: int
    max_blocks_per_request: int
    lengths: tuple[int, ...]
    entries: tuple[int, ...]
    seq_lens: Tensor
    block_table: Tensor

    def slot_mapping(
        self, *, last_only: bool = False, max_padding: int = 0, kinds: AnyKinds = ANY
    ) -> st.SearchStrategy[Tensor]:
        """The slot of every token; see `slot_mappings`."""
        return slot_mappings(
            self.lengths,
            self.entries,
            block_size=self.block_size,
            num_blocks=self.num_blocks,
            last_only=last_only,
            max_padding=max_padding,
            dtype=self.block_table.dtype,
            kinds=kinds,
        )

    def pools(
        self,
        entry: Sequence[int],
        dtype: DTypes = "float32",
        *,
        kinds: AnyKinds = ANY,
        role: Role = Role.INPUT,
        exponent: int = 0,
    ) -> st.SearchStrategy[tuple[Tensor, Tensor]]:
        """A K and a V pool: each in its own memory and layout, or both interleaved in one.

        Named choice: ``kv_pools`` (apart, interleaved). Three or four choices. Shrinks towards two contiguous pools.

        Args:
            entry: Shape of what the pool holds for one token, (heads, head size) for example; the pools are
                (num_blocks, block_size, *entry).
            dtype: As for `tensors`; the same for both.
            kinds: Layouts that may be drawn.
            role: Input, or inout for pools that are written.
            exponent: Values lie in [-2**exponent, 2**exponent).
        """
        return _pools((self.num_blocks, self.block_size, *entry), dtype, Kinds.of(kinds), role, exponent)

    def interleaved_pools(
        self,
        entry: Sequence[int],
        dtype: DTypes = "float32",
        *,
        kinds: AnyKinds = ANY,
        role: Role = Role.INPUT,
        exponent: int = 0,
    ) -> st.SearchStrategy[tuple[Tensor, ...]]:
        """A K and a V pool in one memory: ``pool[:, 0]`` and ``pool[:, 1]``. Arguments as for `pools`; see `planes`."""
        shape = (self.num_blocks, self.block_size, *entry)
        return planes(shape, dtype, count=2, axis=1, kinds=kinds, role=role, exponent=exponent)


def paged_kv(
    *,
    min_requests: int = 1,
    max_requests: int = 8,
    block_sizes: Sequence[int] = (4, 16),
    min_blocks_per_request: int = 1,
    max_blocks_per_request: int = 4,
    min_num_blocks: int = LEAST_PAGES,
    max_num_blocks: int | None = None,
    min_len: int = 0,
    lengths: Sequence[str] = LENGTHS,
    table_ids: Sequence[str] = TABLE_IDS,
    unused_entries: Sequence[str] = UNUSED_ENTRIES,
    index_dtypes: Sequence[str] = (INT32, INT64),
    kinds: AnyKinds = ANY,
) -> st.SearchStrategy[PagedKV]:
    """The requests of a paged cache: their lengths and their block table.

    Named choices: ``num_requests``, ``block_size``, ``max_blocks`` (width of the table), ``lengths``, ``table_ids``,
    ``unused_entries``, ``index_dtype``; ``seq_len`` is not drawn, but a plan may pin it to give every request that
    length. Seven choices, layouts and seed included. Shrinks towards `min_requests` requests of one full page each,
    their pages in order, int32, contiguous.

    Args:
        min_requests: Fewest requests.
        max_requests: Most requests.
        block_sizes: Tokens a page, simplest first.
        min_blocks_per_request: Narrowest table.
        max_blocks_per_request: Widest table.
        min_num_blocks: Fewest pages in the pool; at least 3, since with one page a wrong id is the right page.
        max_num_blocks: Most pages in the pool; requests share pages where that is too few.
        min_len: Fewest tokens of a request.
        lengths: Policies of the lengths: ``full`` (all rows full), ``ragged`` (0, 1, one page, one page ± 1, full, or
            any, request by request), ``partial`` (the last page not full), ``one``, ``zero``.
        table_ids: Policies of the ids: ``sequential``, ``permuted``, ``highest`` (from the pool's last page down),
            ``shared`` (few pages, in all requests), ``same`` (one row for all).
        unused_entries: What lies behind a request's own entries: ``decoy`` (looks valid), ``-1``, ``0``, ``wild`` (far
            out of range).
        index_dtypes: Data types of table and lengths, simplest first.
        kinds: Layouts of table and lengths.

    Raises:
        SpecError: A range is empty, or there is no such policy.
    """
    check_policies("lengths", lengths, LENGTHS)
    check_policies("table_ids", table_ids, TABLE_IDS)
    check_policies("unused_entries", unused_entries, UNUSED_ENTRIES)
    if min(block_sizes, default=0) < 1:
        raise SpecError(f"paged_kv: block_sizes is {tuple(block_sizes)}; expected sizes of 1 and more")
    for name, least, most in (
        ("requests", min_requests, max_requests),
        ("blocks_per_request", min_blocks_per_request, max_blocks_per_request),
    ):
        if not 0 <= least <= most:
            raise SpecError(f"paged_kv: min_{name} is {least} and max_{name} {most}; expected 0 <= min <= max")
    return _paged_kv(
        _Asked(
            requests=(min_requests, max_requests),
            block_sizes=tuple(block_sizes),
            widths=(max(min_blocks_per_request, 1), max(max_blocks_per_request, 1)),
            pages=(max(min_num_blocks, LEAST_PAGES), max_num_blocks),
            min_len=min_len,
            lengths=tuple(lengths),
            table_ids=tuple(table_ids),
            unused_entries=tuple(unused_entries),
            index_dtypes=tuple(dtype_named(str(dtype)).name for dtype in index_dtypes),
            kinds=Kinds.of(kinds),
        )
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of `paged_kv`, ranges as pairs."""

    requests: tuple[int, int]
    block_sizes: tuple[int, ...]
    widths: tuple[int, int]
    pages: tuple[int, int | None]
    min_len: int
    lengths: tuple[str, ...]
    table_ids: tuple[str, ...]
    unused_entries: tuple[str, ...]
    index_dtypes: tuple[str, ...]
    kinds: Kinds

    def num_blocks(self, policy: str, counts: Sequence[int]) -> int:
        """Pages of the pool: what the requests need, and one that nobody refers to."""
        least, most = self.pages
        wanted = max(least, tables.pages_needed(policy, counts) + 1)
        return wanted if most is None else min(wanted, max(most, least))


@direct
def _paged_kv(draw: st.DrawFn, asked: _Asked) -> PagedKV:
    count = draw_dim(draw, "num_requests", *asked.requests)
    size = draw_option(draw, "block_size", asked.block_sizes)
    width = draw_dim(draw, "max_blocks", *asked.widths)
    # Bits, since Hypothesis tries to clear the upper ones: each policy shrinks to its first on its own.
    bits = 0 if plan.current().plan.small else draw(_POLICIES)
    dtype = draw_option(draw, "index_dtype", asked.index_dtypes, bits >> 8)
    seed = case_seed(draw, plan.current())
    span = (min(asked.min_len, size * width), size * width)
    lengths = draw_lengths(
        draw, count, block_size=size, span=span, policies=asked.lengths, seed=seed, selector=bits & 7
    )
    seq_lens = explicit(draw, (count,), dtype, lengths, kinds=asked.kinds, bound=None)
    ids, unused = draw_policies(draw, asked.table_ids, asked.unused_entries, (bits >> 3 & 7, bits >> 6 & 3))
    counts = [tables.pages_of(length, size) for length in lengths]
    num_blocks = asked.num_blocks(ids, counts)
    entries = tables.table(ids, counts, width=width, num_blocks=num_blocks, unused=unused, dtype=dtype, seed=seed)
    block_table = draw_table(draw, entries, width, num_blocks, dtype, asked.table_ids, asked.kinds)
    longest = max(lengths, default=0)
    return PagedKV(count, size, num_blocks, longest, width, lengths, entries, seq_lens, block_table)


@direct
def _pools(
    draw: st.DrawFn, shape: tuple[int, ...], dtype: DTypes, kinds: Kinds, role: Role, exponent: int
) -> tuple[Tensor, Tensor]:
    if draw_option(draw, "kv_pools", ("apart", "interleaved")) == "interleaved":
        # Which axis, which plane: with these a pool has no fewer choices than two pools apart, and so a case does not
        # get simpler for Hypothesis by being interleaved.
        small = plan.current().plan.small
        axis, swapped = (1, False) if small else (draw(sampled((1, 2))), draw(sampled((False, True))))
        k, v = draw(planes(shape, dtype, count=2, axis=axis, kinds=kinds, role=role, exponent=exponent))
        return (v, k) if swapped else (k, v)
    one = (inouts if role.writable else tensors)(shape, dtype, kinds=kinds, exponent=exponent)
    k = draw(one)
    return k, draw(one)
