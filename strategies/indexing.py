"""What addresses a paged cache: lengths of requests, block tables, slot mappings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from kcheck import plan
from kcheck.case import Tensor
from kcheck.errors import SpecError
from kcheck.layout import LayoutKind
from kcheck.strategies import tables
from kcheck.strategies.dims import boundary_values, draw_dim, draw_option, offer, unmet
from kcheck.strategies.direct import direct
from kcheck.strategies.kinds import ANY, Kinds
from kcheck.strategies.tables import LENGTHS, TABLE_IDS, UNUSED_ENTRIES
from kcheck.strategies.tensors import INT32, INT64, case_seed, draw_index_dtype, explicit

AnyKinds = Kinds | Iterable[LayoutKind | str]
Integers = Tensor | Sequence[int]


def seq_lens(
    num_requests: int,
    *,
    min_len: int = 0,
    max_len: int,
    block_size: int = 1,
    lengths: Sequence[str] = LENGTHS,
    dtype: Sequence[str] | str = (INT32, INT64),
    kinds: AnyKinds = ANY,
) -> st.SearchStrategy[Tensor]:
    """Lengths of requests, (num_requests,), in tokens.

    Named choices: ``lengths``, ``index_dtype``; a plan may also pin ``seq_len``. Four choices. Shrinks towards
    `max_len` everywhere, int32, contiguous.

    Args:
        num_requests: Requests.
        min_len: Fewest tokens.
        max_len: Most tokens.
        block_size: Tokens a page: lengths near it are drawn often.
        lengths: Policies; see `paged_kv`.
        dtype: Data types, simplest first.
        kinds: Layouts that may be drawn.

    Raises:
        SpecError: `min_len` is above `max_len`, or there is no such policy.
    """
    check_policies("lengths", lengths, LENGTHS)
    if not 0 <= min_len <= max_len:
        raise SpecError(f"seq_lens: min_len is {min_len} and max_len {max_len}; expected 0 <= min_len <= max_len")

    @direct
    def drawn(draw: st.DrawFn) -> Tensor:
        name = draw_index_dtype(draw, dtype)
        found = draw_lengths(
            draw,
            num_requests,
            block_size=block_size,
            span=(min_len, max_len),
            policies=tuple(lengths),
            seed=case_seed(draw, plan.current()),
        )
        return explicit(draw, (num_requests,), name, found, kinds=Kinds.of(kinds), bound=None)

    return drawn()


def block_tables(
    lengths: Integers,
    *,
    block_size: int,
    num_blocks: int,
    width: int | None = None,
    table_ids: Sequence[str] = TABLE_IDS,
    unused_entries: Sequence[str] = UNUSED_ENTRIES,
    dtype: Sequence[str] | str = (INT32, INT64),
    kinds: AnyKinds = ANY,
) -> st.SearchStrategy[Tensor]:
    """Block tables, (requests, width): the pages of each request, and unused entries behind them.

    Named choices: ``table_ids``, ``unused_entries``, ``index_dtype``. Five choices. Shrinks towards each
    request's own pages in order, decoys behind them, int32, contiguous.

    Args:
        lengths: Tokens of each request, or what `seq_lens` drew.
        block_size: Tokens a page.
        num_blocks: Pages of the pool; take 3 at least. Ids repeat where there are too few.
        width: Entries a row; as many as the longest request needs by default, at least 1.
        table_ids: Policies of the ids; see `paged_kv`.
        unused_entries: Policies of the unused entries; see `paged_kv`.
        dtype: Data types, simplest first.
        kinds: Layouts that may be drawn.

    Raises:
        SpecError: A request needs more than `width` pages, or there is no such policy.
    """
    check_policies("table_ids", table_ids, TABLE_IDS)
    check_policies("unused_entries", unused_entries, UNUSED_ENTRIES)
    counts = [tables.pages_of(length, block_size) for length in integers_of(lengths)]
    needed = max(counts, default=0)
    columns = max(needed, 1) if width is None else width
    if columns < needed or num_blocks < 1:
        raise SpecError(
            f"block_tables: width is {columns} and num_blocks {num_blocks}; the longest request needs {needed} pages"
        )

    @direct
    def drawn(draw: st.DrawFn) -> Tensor:
        name = draw_index_dtype(draw, dtype)
        ids, unused = draw_policies(draw, tuple(table_ids), tuple(unused_entries))
        entries = tables.table(
            ids,
            counts,
            width=columns,
            num_blocks=num_blocks,
            unused=unused,
            dtype=name,
            seed=case_seed(draw, plan.current()),
        )
        return draw_table(draw, entries, columns, num_blocks, name, tuple(table_ids), Kinds.of(kinds))

    return drawn()


def slot_mappings(
    lengths: Integers,
    table: Integers,
    *,
    block_size: int,
    num_blocks: int,
    last_only: bool = False,
    max_padding: int = 0,
    dtype: Sequence[str] | str = (INT64, INT32),
    kinds: AnyKinds = ANY,
) -> st.SearchStrategy[Tensor]:
    """Slot mappings, (tokens + padding,): page × block_size + place in the page, of token after token.

    Named choices: ``slot_padding``, ``index_dtype``, where there is more than one value. One to three choices. Shrinks
    towards no padding, contiguous. A kernel that writes slots needs requests that share no page
    (``table_ids=("sequential", "permuted", "highest")``), else its writes race.

    Args:
        lengths: Tokens of each request, or what `seq_lens` drew.
        table: Entries of the block table, row-major, or what `block_tables` drew.
        block_size: Tokens a page.
        num_blocks: Pages of the pool.
        last_only: The last token of each request only, as for one decoding step.
        max_padding: Most entries -1 at the end, as a CUDA graph of fixed size has.
        dtype: Data types, simplest first.
        kinds: Layouts that may be drawn.
    """
    tokens, entries = integers_of(lengths), integers_of(table)
    width = len(entries) // max(len(tokens), 1)

    @direct
    def drawn(draw: st.DrawFn) -> Tensor:
        name = draw_index_dtype(draw, dtype)
        padding = draw_dim(draw, "slot_padding", 0, max_padding) if max_padding else 0
        found = tables.slots(tokens, entries, width=width, block_size=block_size, last_only=last_only, padding=padding)
        return explicit(draw, (len(found),), name, found, kinds=Kinds.of(kinds), bound=num_blocks * block_size)

    return drawn()


def integers_of(given: Integers) -> tuple[int, ...]:
    """Row-major values of an index tensor drawn here, or of a sequence."""
    if not isinstance(given, Tensor):
        return tuple(given)
    if given.fill.kind != "values":
        raise SpecError("expected a tensor that seq_lens or block_tables drew, or its values")
    values = tuple(int(value) for value in given.fill.values)
    return values * given.shape[0] if given.layout.overlapping else values


def draw_lengths(
    draw: st.DrawFn,
    count: int,
    *,
    block_size: int,
    span: tuple[int, int],
    policies: tuple[str, ...],
    seed: int,
    selector: int | None = None,
) -> tuple[int, ...]:
    """Lengths by the named choice ``lengths``, or all as ``seq_len`` is pinned; `span` is the shortest and longest."""
    record = plan.current()
    least, most = span
    policy = draw_option(draw, "lengths", policies, selector)
    near = (block_size - 1, block_size, block_size + 1)
    pinned = offer(record, "seq_len", boundary_values(least, most, near))
    if isinstance(pinned, int) and least <= pinned <= most:
        return (pinned,) * count
    if pinned is not None:
        unmet(record, f"seq_len={pinned} is outside {least} … {most}, what a row of the table can hold")
    return tables.lengths(policy, count, block_size=block_size, capacity=most, min_len=least, seed=seed)


def draw_policies(
    draw: st.DrawFn,
    table_ids: tuple[str, ...],
    unused_entries: tuple[str, ...],
    selectors: tuple[int | None, int | None] = (None, None),
) -> tuple[str, str]:
    """Policies of the table drawn next, by the named choices ``table_ids`` and ``unused_entries``."""
    ids = draw_option(draw, "table_ids", table_ids, selectors[0])
    unused = draw_option(draw, "unused_entries", unused_entries, selectors[1])
    if plan.current().layout_of_next() is LayoutKind.EXPANDED and "same" in table_ids:
        ids = "same"  # only equal rows can be one row
    return ids, unused


def draw_table(
    draw: st.DrawFn,
    entries: Sequence[int],
    width: int,
    num_blocks: int,
    dtype: str,
    table_ids: tuple[str, ...],
    kinds: Kinds,
) -> Tensor:
    """The tensor of a table; its layout under the current plan."""
    shape = (len(entries) // width, width)
    return explicit(draw, shape, dtype, entries, kinds=kinds, bound=num_blocks, may_be_equal="same" in table_ids)


def check_policies(name: str, given: Sequence[str], known: tuple[str, ...]) -> None:
    """Reject policies that do not exist, and none at all.

    Raises:
        SpecError: One is unknown, or there is none.
    """
    wrong = [policy for policy in given if policy not in known]
    if wrong or not given or isinstance(given, str):
        raise SpecError(f"{name} is {given!r}; expected a sequence of {', '.join(known)}")
