"""Hypothesis strategies for the cases of a target: sizes, tensors in every layout, paged caches.

Every strategy costs few Hypothesis choices, leaves values to a `Fill`, shrinks towards small and contiguous, and reads
the plan (`kcheck.plan`) that pins named choices and layouts.
"""

if __name__ != "kcheck.strategies":
    raise ImportError(
        f"this folder is the package kcheck.strategies, not {__name__!r}: write `from kcheck import strategies` "
        "(a second copy of its classes would not be equal to the first)"
    )

from kcheck.strategies.dims import dims, options
from kcheck.strategies.indexing import block_tables, seq_lens, slot_mappings
from kcheck.strategies.kinds import ANY, CONTIGUOUS_LAST, DENSE, WRITABLE, Kinds
from kcheck.strategies.layouts import layouts
from kcheck.strategies.paged import PagedKV, paged_kv
from kcheck.strategies.parts import planes, splits
from kcheck.strategies.special import generators, host
from kcheck.strategies.tensors import indices, inouts, outputs, tensors

__all__ = [
    "ANY",
    "CONTIGUOUS_LAST",
    "DENSE",
    "WRITABLE",
    "Kinds",
    "PagedKV",
    "block_tables",
    "dims",
    "generators",
    "host",
    "indices",
    "inouts",
    "layouts",
    "options",
    "outputs",
    "paged_kv",
    "planes",
    "seq_lens",
    "slot_mappings",
    "splits",
    "tensors",
]
