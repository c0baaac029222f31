"""Paged caches: lengths, tables and slots do what their policies say, and shrink to a small case."""

from __future__ import annotations

from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from kcheck import Case, plan
from kcheck import strategies as ks
from kcheck.case import Role
from kcheck.errors import SpecError
from kcheck.layout import LayoutKind
from kcheck.plan import Drawing, Plan, Slots
from kcheck.strategies import PagedKV, tables
from kcheck.strategies.indexing import integers_of

K = LayoutKind
QUICK = settings(max_examples=800, database=None)
ANY_KV = ks.paged_kv(max_requests=9, block_sizes=(4, 1, 16))


def rows(kv: PagedKV) -> list[tuple[int, ...]]:
    width = kv.max_blocks_per_request
    return [kv.entries[i : i + width] for i in range(0, len(kv.entries), width)]


def used(kv: PagedKV) -> list[tuple[int, ...]]:
    return [row[: -(-length // kv.block_size)] for row, length in zip(rows(kv), kv.lengths, strict=True)]


def small(
    asked: Plan, strategy: st.SearchStrategy[Any] = ANY_KV, slots: Slots = MappingProxyType({})
) -> tuple[Any, Drawing]:
    """What a strategy draws first under a plan, and the record."""

    @st.composite
    def planned(draw: st.DrawFn) -> tuple[Any, Drawing]:
        with plan.drawing(Drawing(asked, slots)) as record:
            return draw(strategy), record

    return find(planned(), lambda _: True, settings=QUICK)


@given(ANY_KV)
@settings(max_examples=200)
def test_a_table_is_well_formed(kv: PagedKV) -> None:
    case = Case(lens=kv.seq_lens, table=kv.block_table)
    assert kv.seq_lens.shape == (kv.num_requests,)
    assert kv.block_table.shape == (kv.num_requests, kv.max_blocks_per_request)
    assert kv.block_table.bound == kv.num_blocks >= 3
    assert kv.block_table.dtype == kv.seq_lens.dtype
    assert {view.role for view in case.views.values()} == {Role.INDEX}
    assert integers_of(kv.seq_lens) == kv.lengths
    assert integers_of(kv.block_table) == kv.entries
    assert max(kv.lengths) == kv.max_seq_len <= kv.block_size * kv.max_blocks_per_request
    assert all(0 <= page < kv.num_blocks for row in used(kv) for page in row)
    assert {page for row in used(kv) for page in row} != set(range(kv.num_blocks))


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 15, 16])
def test_ragged_lengths_have_every_boundary(length: int) -> None:
    found = tables.lengths("ragged", 200, block_size=4, capacity=16, seed=1)
    assert 5 <= found.count(length) <= 80
    assert len(set(found)) > 10


def test_other_lengths() -> None:
    def lengths(policy: str, least: int = 0) -> set[int]:
        return set(tables.lengths(policy, 60, block_size=4, capacity=8, min_len=least))

    assert lengths("full") == {8}
    assert lengths("one") == {1}
    assert lengths("zero") == {0}
    assert lengths("zero", 2) == {2}
    assert lengths("partial") == {5, 6, 7}


def test_ids() -> None:
    def table(policy: str, seed: int = 0) -> list[tuple[int, ...]]:
        found = tables.table(
            policy, (2, 0, 3), width=3, num_blocks=9, unused="-1", dtype="int32", seed=seed
        )  # fmt: skip
        return [found[i : i + 3] for i in (0, 3, 6)]

    assert table("sequential") == [(0, 1, -1), (-1, -1, -1), (2, 3, 4)]
    assert table("highest") == [(8, 7, -1), (-1, -1, -1), (6, 5, 4)]
    assert table("same") == [(0, 1, 2)] * 3
    assert table("shared") == [(0, 1, -1), (-1, -1, -1), (2, 3, 0)]
    permuted = table("permuted", 3)
    pages = [page for row in permuted for page in row if page >= 0]
    assert len(set(pages)) == 5
    assert pages != sorted(pages)
    assert table("permuted", 4) != permuted


@pytest.mark.parametrize(("dtype", "wild"), [("int32", 2**30), ("int64", 2**40)])
def test_unused_entries(dtype: str, wild: int) -> None:
    def unused(policy: str) -> set[int]:
        return set(tables.table("sequential", (0,) * 9, width=4, num_blocks=5, unused=policy, dtype=dtype))

    assert unused("decoy") == {0, 1, 2, 3, 4}
    assert unused("-1") == {-1}
    assert unused("0") == {0}
    assert all(wild <= entry < wild + 1024 for entry in unused("wild"))


@pytest.mark.parametrize("policy", tables.TABLE_IDS)
def test_too_few_pages_repeat(policy: str) -> None:
    found = tables.table(policy, (3, 3), width=3, num_blocks=2, unused="0", dtype="int32")
    assert set(found) == {0, 1}


@given(ANY_KV, st.booleans(), st.data())
def test_slots(kv: PagedKV, last_only: bool, data: st.DataObject) -> None:
    slots = data.draw(kv.slot_mapping(last_only=last_only, max_padding=3))
    values = integers_of(slots)
    tokens = sum(min(length, 1) if last_only else length for length in kv.lengths)
    assert slots.dtype == kv.block_table.dtype
    assert slots.bound == kv.num_blocks * kv.block_size
    assert tokens <= len(values) <= tokens + 3
    assert set(values[tokens:]) <= {-1}
    expected = []
    for row, length in zip(used(kv), kv.lengths, strict=True):
        places = [page * kv.block_size + place for page in row for place in range(kv.block_size)][:length]
        expected += places[-1:] if last_only else places
    assert list(values[:tokens]) == expected
    Case(slots=slots)


@given(ANY_KV, st.sampled_from((Role.INPUT, Role.INOUT)), st.data())
def test_pools(kv: PagedKV, role: Role, data: st.DataObject) -> None:
    k, v = data.draw(kv.pools((2, 3), "float16", role=role))
    assert k.shape == v.shape == (kv.num_blocks, kv.block_size, 2, 3)
    assert k.role == v.role == role
    assert k.fill != v.fill
    assert len(Case(k=k, v=v).backings) == (1 if k.memory is v.memory else 2)
    k, v = data.draw(kv.interleaved_pools((2,), "int8"))
    assert k.memory is v.memory
    assert {plane.index for tensor in (k, v) for plane in tensor.layout.planes} == {0, 1}


def test_pools_shrink_to_two_contiguous_ones() -> None:
    kv, _ = small(Plan(small=True))
    k, v = find(kv.pools((2,)), lambda _: True, random=Random(0), settings=QUICK)
    assert k.memory is not v.memory
    interleaved, _ = small(Plan({"kv_pools": "interleaved"}, small=True), kv.pools((2,)))
    assert interleaved[0].memory is interleaved[1].memory


@pytest.mark.parametrize("seed", range(4))
def test_the_founding_bug_shrinks_to_two_requests_and_one_column(seed: int) -> None:
    """A gather that takes shape[-1] for the row stride of a narrowed table."""

    def wrong(kv: PagedKV) -> bool:
        layout = kv.block_table.layout
        rows = [n for n, length in enumerate(kv.lengths) if length]
        return layout.strides[1] == 1 and any(row * layout.strides[0] != row * layout.shape[1] for row in rows)

    strategy = ks.paged_kv(max_requests=256, block_sizes=(4, 16, 64))
    kv = find(strategy, wrong, random=Random(seed), settings=QUICK)
    assert (kv.num_requests, kv.block_size, kv.lengths) == (2, 4, (4, 4))
    assert kv.block_table.layout.code("int32") == "torch.empty((2, 2), dtype=torch.int32)[:, :1]"
    assert kv.seq_lens.layout.code("int32") == "torch.empty((2,), dtype=torch.int32)"
    assert kv.entries == (0, 1)


def test_named_choices() -> None:
    kv, record = small(Plan(small=True))
    assert list(record.choices) == [
        "num_requests",
        "block_size",
        "max_blocks",
        "index_dtype",
        "lengths",
        "seq_len",
        "table_ids",
        "unused_entries",
    ]
    assert (kv.num_requests, kv.block_size, kv.max_blocks_per_request) == (2, 4, 4)
    assert kv.lengths == (16, 16)
    assert kv.entries == tuple(range(8))
    assert record.choices["lengths"].values == tables.LENGTHS
    assert {0, 1, 3, 4, 5, 16} <= set(record.choices["seq_len"].values)


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        ("num_requests", 7, "num_requests", 7),
        ("block_size", 16, "block_size", 16),
        ("max_blocks", 3, "max_blocks_per_request", 3),
        ("lengths", "one", "lengths", (1, 1)),
        ("seq_len", 5, "lengths", (5, 5)),
        ("table_ids", "highest", "entries", (8, 7, 6, 5, 4, 3, 2, 1)),
    ],
)
def test_pins(name: str, value: int | str, attribute: str, expected: object) -> None:
    kv, record = small(Plan({name: value}, small=True))
    assert getattr(kv, attribute) == expected
    assert record.unmet == []


def test_pinned_dtype_and_unused_entries() -> None:
    kv, _ = small(Plan({"index_dtype": "int64", "unused_entries": -1, "lengths": "one"}, small=True))
    assert kv.block_table.dtype == "int64"
    assert kv.entries == (0, -1, -1, -1, 1, -1, -1, -1)


def test_a_length_that_no_row_can_hold_is_unmet() -> None:
    kv, record = small(Plan({"seq_len": 17}, small=True))
    assert record.unmet == ["seq_len=17 is outside 0 … 16, what a row of the table can hold"]
    assert kv.lengths == (16, 16)


@pytest.mark.parametrize("argument", ["lens", "table"])
def test_every_layout_of_lengths_and_table(argument: str) -> None:
    kv, record = small(Plan(small=True))
    slots = record.learn_slots({"lens": kv.seq_lens, "table": kv.block_table})
    offered = dict(zip(slots.values(), (kinds for _, kinds in record.tensors), strict=True))[argument]
    assert K.EXPANDED in offered
    for kind in offered:
        kv, again = small(Plan(layouts={argument: kind}, small=True), slots=slots)
        tensor = kv.seq_lens if argument == "lens" else kv.block_table
        assert kind in tensor.layout.kinds(4)
        assert again.unmet == []
        assert integers_of(kv.block_table) == kv.entries
        Case(lens=kv.seq_lens, table=kv.block_table)


def test_different_lengths_are_not_expanded() -> None:
    kv, record = small(Plan(small=True))
    slots = record.learn_slots({"lens": kv.seq_lens})
    _, record = small(Plan({"lengths": "ragged"}, {"lens": K.EXPANDED}, small=True), slots=slots)
    assert record.unmet == ["lens cannot be expanded: its shape (2,) and its values leave no such layout"]


def test_the_parts_alone() -> None:
    @st.composite
    def apart(draw: st.DrawFn) -> Case:
        lens = draw(ks.seq_lens(3, min_len=1, max_len=10, block_size=4))
        table = draw(ks.block_tables(lens, block_size=4, num_blocks=20, width=5, dtype="int64"))
        slots = draw(ks.slot_mappings(lens, table, block_size=4, num_blocks=20, dtype=("int64",)))
        return Case(lens=lens, table=table, slots=slots)

    @given(apart())
    def check(case: Case) -> None:
        assert case.views["table"].layout.shape == (3, 5)
        assert 3 <= case.views["slots"].layout.numel <= 30

    check()
    case = find(apart(), lambda _: True, random=Random(0), settings=QUICK)
    assert case.views["lens"].fill.values == (10, 10, 10)
    assert case.views["table"].bound == 20
    assert case.views["slots"].fill.values[:4] == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ks.paged_kv(lengths=("long",)), r"lengths is \('long',\); expected a sequence of full, ragged"),
        (lambda: ks.paged_kv(table_ids=()), "table_ids is"),
        (lambda: ks.paged_kv(unused_entries="wild"), "unused_entries is 'wild'"),
        (lambda: ks.paged_kv(block_sizes=()), "block_sizes"),
        (lambda: ks.paged_kv(block_sizes=(0,)), "block_sizes"),
        (lambda: ks.paged_kv(min_requests=3, max_requests=2), "min_requests is 3 and max_requests 2"),
        (lambda: ks.paged_kv(max_blocks_per_request=0), "blocks_per_request"),
        (lambda: ks.seq_lens(2, min_len=3, max_len=2), "min_len is 3"),
        (lambda: ks.block_tables((9,), block_size=4, num_blocks=3, width=2), "needs 3 pages"),
    ],
)
def test_impossible_requests_are_one_sentence(make: Any, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        make()


def test_no_requests_at_all() -> None:
    kv, _ = small(Plan({"num_requests": 0}, small=True), ks.paged_kv(min_requests=0))
    assert (kv.lengths, kv.entries, kv.max_seq_len, kv.num_blocks) == ((), (), 0, 3)
    assert Case(table=kv.block_table).views["table"].kinds == {K.EMPTY}


def test_few_pages_are_a_limit() -> None:
    @given(ks.paged_kv(max_requests=64, max_num_blocks=8))
    def check(kv: PagedKV) -> None:
        assert 3 <= kv.num_blocks <= 8

    check()
