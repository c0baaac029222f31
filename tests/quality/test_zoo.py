"""The zoo: every wrong twin is found and shrunk to a stated case, every right one and every control is silent.

The stated cases follow from the mechanisms: with nothing smaller can the bug show. Long runs are `benchmarks/zoo.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.events import CaseVerdict, RunDone, TargetResult
from kcheck.findings import Kind
from kcheck.layout import Layout
from kcheck.store import Store
from kcheck.targets import registry

PAIRS = {pair.name: pair for pair in registry.PAIRS}
FOUNDING = ("paged_gather", "builtin:paged_gather", "builtin:paged_gather_contiguous")  # in test_pairs.py


def run(spec: str, client: Client, tmp_path: Path, max_examples: int) -> TargetResult:
    settings = Settings(max_examples=max_examples, max_time=60.0, seed=1)
    campaign = Campaign(loader.load(spec), client, Store(tmp_path).open(), settings, "interpret")
    done = list(campaign.run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0]


@dataclass(frozen=True)
class Stated:
    """What the gravest finding of a pair's wrong twin must be.

    Attributes:
        name: The pair.
        kind: Kind of the finding.
        line: Part of the source line.
        shapes: Sizes of arguments in the minimal case; a range where the values have a say.
        cut: The argument whose layout alone decides, and that layout, as code behind the dense tensor.
        index: First wrong element.
        others: Numbers among the arguments of the minimal case.
        also: Kinds of further findings: the bug shows in another way in other cases.
        examples: Random cases; the sweep alone finds most.
    """

    name: str
    kind: Kind
    line: str
    shapes: dict[str, tuple[int | range, ...]]
    cut: tuple[str, str] = ("", "")
    index: tuple[int, ...] = ()
    others: dict[str, int] = field(default_factory=dict)
    also: tuple[Kind, ...] = ()
    examples: int = 0


K = Kind
READ, WRITE = Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_VIEW_WRITE
BEHIND, INTO = Kind.OUT_OF_BOUNDS_READ, Kind.OUT_OF_BOUNDS_WRITE
STATED = [
    # A wrong row stride shows in the second row, a wrong stride of columns in the second column. Softmax of one
    # column is 1 whatever it holds.
    Stated("softmax", READ, "value = tl.load(logits", {"logits": (2, 2)}, ("logits", "[:, :2]"), (0, 2)),
    Stated("cross_entropy", READ, "value = tl.load(logits", {"logits": (1, 2)}, ("logits", "[:, ::2]"), examples=40),
    # Fewer columns than a group: the division gives 0 groups, and row 1 has the scale of row 0.
    Stated("dequantise", K.VALUE_MISMATCH, "dequantise_kernel[", {"q": (2, 1), "scales": (2, 1)}, index=(1, 0)),
    # Page 0 is at the same place whatever the page stride is: a second page of one request.
    Stated("paged_decode", READ, "keys = tl.load(entry", {"table": (1, 2)}, ("cache", "[::2]"), (0, 4, 0)),
    Stated("silu_grad", BEHIND, "grad = tl.load(dy", {"x": (1, 2)}, ("grad_output", ".expand(1, 2)"), (1, 0)),
    # The layout of the one decides where the other is read.
    Stated("merge_states", BEHIND, "second = tl.load(lse_b", {"lse_b": (2, 1)}, ("lse_a", "[:, :1]"), (2, 0)),
    # A page has 4 slots; from the second on the distance between slots matters.
    Stated("cache_write", WRITE, "tl.store(v_cache", {"v_cache": (3, 4, 8)}, ("v_cache", "[:, :, :8]"), (0, 0, 8)),
    Stated("clear_pages", WRITE, "tl.store(cache", {"cache": (1, 1)}, ("cache", "[:, :1]"), (0, 1)),
    Stated("token_norm", READ, "value = tl.load(x", {"x": (1, 1, 8)}, ("x", "[:, :, :8]"), (0, 0, 8), examples=40),
    Stated("page_addresses", READ, "tl.load(source", {"pool": (3, 8), "pages": (1,)}, ("pool", "[1:]")),
    # Row 2 of 3 begins at element 2**31, and id 2 is the highest.
    Stated("embedding", K.OFFSET_OVERFLOW, "tl.load(weight", {"weight": (3, 8), "ids": (1,)}, ("weight", "[:, :8]")),
    # In row 0 any stride will do.
    Stated("aligned_rows", K.FALSE_HINT, "tl.multiple_of(row_stride, 4)", {"x": (2, 4)}, ("x", "[:, :4]")),
    # One full page and no second entry. Where there is one, it is a wrong page.
    Stated("last_token", BEHIND, "page = tl.load(table", {"table": (1, 1)}, index=(0, 1), also=(K.VALUE_MISMATCH,)),
    # A request of one token, where three are wanted.
    Stated("conv_state", BEHIND, "tl.load(x", {"x": (1, 8)}, index=(-2, 0), also=(K.VALUE_MISMATCH,), examples=40),
    Stated("window_grad", INTO, "tl.store(dx", {"dx": (1, 8), "dy": (1, 8)}, index=(-1, 0), others={"start": -1}),
    # Heads are whole groups: 2 key heads of 2 query heads each, and the second query head has the wrong key.
    Stated(
        "grouped_heads", K.VALUE_MISMATCH, "score_kernel[", {"q": (1, 4, 8), "k": (1, 2, 8)}, index=(0, 1), examples=40
    ),
    # One page of 16 tokens, more than a window.
    Stated("sliding_window", K.VALUE_MISMATCH, "window_kernel[", {"table": (1, 1), "cache": (3, 16, 8)}),
    # Two tokens of one request. With more requests the row is another one's.
    Stated("topk_slots", BEHIND, "page = tl.load(table", {"topk": (2, 1), "table": (1, 1)}, also=(K.VALUE_MISMATCH,)),
    # One element, where a tile has more.
    Stated("residual_add", INTO, "tl.store(out", {"x": (1,)}, index=(1,)),
    Stated("rope", BEHIND, "sine = tl.load(angles", {"table": (1, 64), "positions": (1,)}, index=(1, 0)),
    # The strategy begins at 2 columns: the variance of one is 0.
    Stated("layer_norm", K.VALUE_MISMATCH, "norm_kernel[", {"x": (1, 2)}, index=(0, 0)),
    # Two sequences of one token each: the first writes into the second.
    Stated("packed_scale", K.RACE, "tl.store(out", {"x": (2,), "starts": (3,)}, index=(1,), examples=40),
    # One request, and one entry of padding. One line both reads and writes.
    Stated("state_update", BEHIND, "tl.load(place)", {"ids": (2,), "pool": (2, 8)}, index=(-1, 0), also=(INTO,)),
    Stated("page_tail", K.DEAD_READ, "values_kernel[", {"pages": (1, 1)}),
    Stated("token_shift", K.UNWRITTEN_OUTPUT, "shift_kernel[", {"x": (1, 8)}, index=(0, 0), others={"shift": 1}),
    # Programs take 16 elements.
    Stated("cast", K.UNWRITTEN_OUTPUT, "cast_kernel[", {"x": (17,)}, index=(16,)),
    Stated("split_values", K.RACE, "tl.store(out", {"out": (1, 17)}, index=(0, 0), also=(K.UNWRITTEN_OUTPUT,)),
    Stated("expert_counts", K.RACE, "tl.store(counts", {"choice": (17,)}, index=(0,)),
    Stated("last_program_sum", K.RACE, "tl.store(parts", {"x": (17,)}, index=(0,)),
    Stated("row_scale", K.UNINITIALIZED_READ, "tl.atomic_max(most", {"x": (1, 1)}, index=(0,)),
    Stated("penalties", K.INPUT_MUTATED, "tl.store(out", {"logits": (1, 1)}, index=(0, 0)),
    # In place: no other case has a race. That of the other half goes by the output's name, and is one of its own.
    Stated("rope_in_place", K.RACE, "tl.store(out", {"x": (1, 2)}, ("x", ""), (0, 0), also=(K.RACE,)),
    # Two tokens of one expert of 8; values are not shrunk one by one, and may need a third token for it.
    Stated("expert_max", K.SCATTER_CONFLICT, "tl.store(most", {"expert": (range(2, 4),)}),
    # The order of two sums does not matter: three programs of 16 at least, if their sums are rounded.
    Stated("stable_sum", K.NONDETERMINISM, "atomic_kernel[", {"x": (range(33, 65),)}, index=(0,)),
]


def is_stated(shape: tuple[int, ...], stated: tuple[int | range, ...]) -> bool:
    return len(shape) == len(stated) and all(
        size in wanted if isinstance(wanted, range) else size == wanted
        for size, wanted in zip(shape, stated, strict=True)
    )


@pytest.mark.parametrize("stated", STATED, ids=lambda stated: stated.name)
def test_a_wrong_twin_is_found_and_shrunk(stated: Stated, client: Client, tmp_path: Path) -> None:
    pair = PAIRS[stated.name]
    result = run(pair.wrong, client, tmp_path, stated.examples)
    assert result.verdict is CaseVerdict.FINDINGS
    first, *further = result.discoveries
    finding, case = first.finding, first.case
    assert pair.is_proven_by(finding.kind, finding.argument, first.culprit)
    assert first.minimal
    assert finding.kind is stated.kind, finding.message
    assert {discovery.finding.kind for discovery in further} <= set(stated.also)
    assert stated.line in finding.source
    for name, shape in stated.shapes.items():
        assert is_stated(case.views[name].layout.shape, shape), case
    culprit, cut = stated.cut
    assert first.culprit == culprit
    for name, view in case.views.items():
        assert view.layout.suffix() == cut if name == culprit else view.layout == Layout.contiguous(view.layout.shape)
    if stated.index:
        assert finding.index == stated.index
    for name, value in stated.others.items():
        assert case.args[name] == value


@pytest.mark.parametrize("spec", [pair.right for pair in registry.PAIRS if pair.name not in FOUNDING])
def test_a_right_twin_is_silent(spec: str, client: Client, tmp_path: Path) -> None:
    result = run(spec, client, tmp_path, 0)
    assert result.verdict is CaseVerdict.MATCH, (result.reasons, [d.finding.message for d in result.discoveries])


@pytest.mark.parametrize("spec", [spec for spec in registry.CONTROLS if spec not in FOUNDING])
def test_a_control_is_silent(spec: str, client: Client, tmp_path: Path) -> None:
    result = run(spec, client, tmp_path, 20)
    assert result.verdict is CaseVerdict.MATCH, (result.reasons, [d.finding.message for d in result.discoveries])


def test_every_pair_is_stated() -> None:
    assert sorted([FOUNDING[0], *(stated.name for stated in STATED)]) == sorted(PAIRS)
