"""The built-in targets by name: pairs of a right and a wrong kernel, and controls. Imports none of them, nor torch."""

from __future__ import annotations

from dataclasses import dataclass

from kcheck.findings import Kind

BUILTIN = "builtin:"
_HERE = "kcheck.targets"


@dataclass(frozen=True, slots=True)
class Pair:
    """One bug, before and after the cure.

    Attributes:
        name: Name of the pair.
        right: The correct target, as `kcheck.loader.load` takes it: ``builtin:rope``.
        wrong: The faulty one: ``builtin:rope_wrong``.
        mechanism: What went wrong, in the few words that recall is counted by.
        kinds: Kinds of findings that prove this bug; any of them counts.
        argument: The argument that the finding must name, or whose layout alone decides about it; ``""``: none.
        needs_gpu: Nothing shows it on the CPU.
        needs_cpu: Why nothing shows it on a GPU; ``""`` if something does.
    """

    name: str
    right: str
    wrong: str
    mechanism: str
    kinds: tuple[str, ...]
    argument: str
    needs_gpu: bool = False
    needs_cpu: str = ""

    def is_proven_by(self, kind: str, argument: str, culprit: str = "") -> bool:
        """Whether a finding is this bug.

        Args:
            kind: Its kind.
            argument: The argument that it names.
            culprit: The argument whose layout alone decides about it.
        """
        return kind in self.kinds and self.argument in (argument, culprit)


def _pair(name: str, mechanism: str, argument: str, *kinds: Kind, needs_cpu: str = "") -> Pair:
    return Pair(name, f"{BUILTIN}{name}", f"{BUILTIN}{name}_wrong", mechanism, kinds, argument, needs_cpu=needs_cpu)


_READ = (Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_BOUNDS_READ)  # one bug may show as either: it depends on what lies there
_STRIDE = (*_READ, Kind.LAYOUT_VARIANCE)  # the wrong element is outside of the view, or another one of it
_WRITE = (Kind.OUT_OF_VIEW_WRITE, Kind.OUT_OF_BOUNDS_WRITE)

PAIRS: tuple[Pair, ...] = (
    Pair(
        "paged_gather",
        "builtin:paged_gather",
        "builtin:paged_gather_shape_stride",
        "row stride",
        _STRIDE,
        "block_table",
    ),
    _pair("softmax", "row stride", "logits", *_STRIDE),
    _pair("dequantise", "row stride", "return", Kind.VALUE_MISMATCH),
    _pair("cross_entropy", "column stride", "logits", *_STRIDE),
    _pair("paged_decode", "page stride", "cache", *_STRIDE),
    _pair("silu_grad", "stride 0", "grad_output", *_STRIDE),
    _pair("merge_states", "another's stride", "lse_b", *_READ),
    _pair("cache_write", "another's stride", "v_cache", *_WRITE, Kind.LAYOUT_VARIANCE),
    _pair("clear_pages", "stride as length", "cache", *_WRITE),
    _pair("token_norm", "stride of size 1", "x", *_READ),
    _pair("page_addresses", "offset", "", *_READ),
    _pair("embedding", "int32 overflow", "weight", Kind.OFFSET_OVERFLOW, needs_cpu="it takes a tensor of many GiB"),
    _pair("aligned_rows", "hint", "", Kind.FALSE_HINT, needs_cpu="the compiler makes no use of the hint"),
    _pair("last_token", "bound", "table", *_READ),
    _pair("conv_state", "bound", "x", *_READ),
    _pair("window_grad", "bound", "dx", *_WRITE),
    _pair("sliding_window", "bound", "return", Kind.VALUE_MISMATCH),
    _pair("grouped_heads", "wrong index", "return", Kind.VALUE_MISMATCH),
    _pair("topk_slots", "wrong index", "table", *_READ),
    _pair("residual_add", "mask", "out", *_WRITE),
    _pair("rope", "mask", "table", *_READ),
    _pair("layer_norm", "mask", "return", Kind.VALUE_MISMATCH),
    _pair("packed_scale", "mask", "out (made by the target)", Kind.RACE),
    _pair("state_update", "padding id", "pool", *_READ, *_WRITE),
    _pair("page_tail", "dead elements", "values", Kind.DEAD_READ),
    _pair("token_shift", "unwritten", "return", Kind.UNWRITTEN_OUTPUT),
    _pair("cast", "unwritten", "out", Kind.UNWRITTEN_OUTPUT),
    _pair("row_scale", "uninitialised", "most (made by the target)", Kind.UNINITIALIZED_READ),
    _pair("penalties", "input mutated", "logits", Kind.INPUT_MUTATED),
    _pair("split_values", "race", "out", Kind.RACE),
    _pair("rope_in_place", "race", "x", Kind.RACE),
    _pair("expert_counts", "race", "counts (made by the target)", Kind.RACE),
    _pair("last_program_sum", "memory order", "parts (made by the target)", Kind.RACE),
    _pair("expert_max", "scatter conflict", "most (made by the target)", Kind.SCATTER_CONFLICT),
    _pair("stable_sum", "order of sums", "return", Kind.NONDETERMINISM),
)

CONTROLS: tuple[str, ...] = tuple(
    f"{BUILTIN}{name}"
    for name in (
        "paged_gather_contiguous",
        "any_stride",
        "autotuned",
        "copy_pages",
        "histogram",
        "locked_sum",
        "maybe_in_place",
        "one_config",
        "online_softmax",
        "pointer_table",
        "refusal",
        "split_k",
        "two_stage_sum",
        "unpack",
        "wrapped_lanes",
        "wrapping_hash",
    )
)
"""Targets that are correct and tricky: a finding in one is a false alarm."""


def modules() -> dict[str, str]:
    """Modules of the built-in targets by their names without ``builtin:``; those of a pair may share one."""
    alone = ("paged_gather", "paged_gather_contiguous", "paged_gather_shape_stride")
    found = {name: f"{_HERE}.{name}" for name in alone}
    for pair in PAIRS:
        for spec in (pair.right, pair.wrong):
            found.setdefault(spec.removeprefix(BUILTIN), f"{_HERE}.zoo.{pair.name}")
    for spec in CONTROLS:
        name = spec.removeprefix(BUILTIN)
        found.setdefault(name, f"{_HERE}.controls.{name}")
    return found
