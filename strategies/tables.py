"""Lengths, page ids and slots of a paged cache, in pure Python: a policy, a seed, and no drawing.

Pages are counted in the pool, lengths and slots in tokens. All results are row-major tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from kcheck.fill import hashed

LENGTHS = ("full", "ragged", "partial", "one", "zero")
TABLE_IDS = ("sequential", "permuted", "highest", "shared", "same")
UNUSED_ENTRIES = ("decoy", "-1", "0", "wild")

WILD = {"int32": 2**30, "int64": 2**40}  # far outside every pool; times a page's size it still fits 64 bits


def pages_of(length: int, block_size: int) -> int:
    """Pages that a request of some tokens needs."""
    return -(-length // block_size)


def lengths(
    policy: str, count: int, *, block_size: int, capacity: int, min_len: int = 0, seed: int = 0
) -> tuple[int, ...]:
    """Lengths of requests.

    Args:
        policy: ``full``: all tokens that fit; ``ragged``: 0, 1, one block, one block ± 1, all, all - 1, or any,
            request by request; ``partial``: the last page not full; ``one`` and ``zero``: so many tokens.
        count: Requests.
        block_size: Tokens a page.
        capacity: Most tokens a request can have.
        min_len: Fewest tokens.
        seed: Of what is random.
    """
    edges = (0, 1, block_size - 1, block_size, block_size + 1, capacity, capacity - 1)

    def length(request: int) -> int:
        match policy:
            case "full":
                return capacity
            case "one":
                return 1
            case "zero":
                return 0
            case "partial":
                return capacity - 1 - hashed(seed, request) % max(block_size - 1, 1)
        bits = hashed(seed, request)
        which = bits % (len(edges) + 3)
        return edges[which] if which < len(edges) else (bits >> 8) % (capacity + 1)

    return tuple(min(max(length(request), min_len), capacity) for request in range(count))


def shuffled(count: int, seed: int) -> list[int]:
    """A permutation of 0 … count - 1."""
    return sorted(range(count), key=lambda i: (hashed(seed, i), i))


def pages_needed(policy: str, counts: Sequence[int]) -> int:
    """Different pages that a policy of ids gives requests with so many pages each."""
    if policy in ("shared", "same"):
        return max(counts, default=0) + (1 if policy == "shared" else 0)
    return sum(counts)


def table(
    policy: str,
    counts: Sequence[int],
    *,
    width: int,
    num_blocks: int,
    unused: str,
    dtype: str,
    seed: int = 0,
) -> tuple[int, ...]:
    """Page ids of every request, `width` entries each.

    Args:
        policy: ``sequential``: each request has its own pages, in order; ``permuted``: its own pages, in any order;
            ``highest``: its own pages, from the last one of the pool downwards; ``shared``: few pages that all
            requests use, each in another order; ``same``: one row for all.
        counts: Pages of each request.
        width: Entries a row.
        num_blocks: Pages in the pool; ids repeat where it has too few.
        unused: Entries behind a request's own: ``decoy`` (an id that looks valid), ``-1``, ``0``, ``wild`` (far out of
            range).
        dtype: Name of the data type, for ``wild``.
        seed: Of what is random.
    """
    most = max(counts, default=0)

    def row(request: int, places: Iterable[int]) -> list[int]:
        own = [order[place % num_blocks] for place in places]
        if unused in ("-1", "0"):
            return own + [int(unused)] * (width - len(own))
        decoys = (hashed(seed + 1, request * width + column) for column in range(len(own), width))
        return own + [WILD[dtype] + d % 1024 if unused == "wild" else d % num_blocks for d in decoys]

    order: Sequence[int] = range(num_blocks)
    if policy == "permuted":
        order = shuffled(num_blocks, seed)
    elif policy == "highest":
        order = range(num_blocks - 1, -1, -1)
    if policy == "same":
        return tuple(row(0, range(most))) * len(counts)
    entries: list[int] = []
    for request, (count, end) in enumerate(zip(counts, accumulate(counts), strict=True)):
        if policy == "shared":
            entries += row(request, ((request + column) % (most + 1) for column in range(count)))
        else:
            entries += row(request, range(end - count, end))
    return tuple(entries)


def slots(
    lengths: Sequence[int], entries: Sequence[int], *, width: int, block_size: int, last_only: bool, padding: int
) -> tuple[int, ...]:
    """Slot (page × block_size + place in the page) of every token, or of the last token of each request.

    Args:
        lengths: Tokens of each request; those without any have no slot.
        entries: Their table.
        width: Entries a row of the table.
        block_size: Tokens a page.
        last_only: Only the last token of each request.
        padding: Entries -1 at the end.
    """
    found = []
    for request, length in enumerate(lengths):
        for token in range(max(length - 1, 0) if last_only else 0, length):
            page, place = divmod(token, block_size)
            found.append(entries[request * width + page] * block_size + place)
    return (*found, *(-1,) * padding)
