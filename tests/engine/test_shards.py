"""The engine as one shard of a run, against a stand-in for the workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis.internal.conjecture import providers

from kcheck.case import Case
from kcheck.events import CaseDone, Cell, Event, Phase, Shard, TargetResult
from kcheck.findings import Finding, Kind
from kcheck.join import join_results
from kcheck.protocol import Judgement
from tests.engine.test_campaign import MATCH, run, showing, stray


def shards(of: int, tmp_path: Path, **settings: object) -> list[tuple[TargetResult, list[Event]]]:
    """The results of all shards, each with a directory of its own."""
    return [run(stray, tmp_path / str(index), shard=Shard(index, of), **settings) for index in range(1, of + 1)]


def cases_of(events: list[Event], phase: Phase) -> Counter[str]:
    return Counter(
        event.case.key for event in events if isinstance(event, CaseDone) and event.phase is phase and event.case
    )


@pytest.mark.parametrize("of", [2, 5])
def test_the_sweep_is_split_without_gap_or_overlap(tmp_path: Path, of: int) -> None:
    """The engine runs a case once, so the whole sweep holds no case twice; the shards' together may."""
    _, whole = run(lambda case: MATCH, tmp_path / "whole", max_examples=0)
    parts = [
        run(lambda case: MATCH, tmp_path / str(index), max_examples=0, shard=Shard(index, of))
        for index in range(1, of + 1)
    ]
    swept = [cases_of(events, Phase.SWEEP) for _, events in parts]
    assert set().union(*swept) == set(cases_of(whole, Phase.SWEEP))
    planned = [result.evidence.swept[1] for result, _ in parts if result.evidence is not None]
    (total,) = [
        event.total for event in whole if getattr(event, "phase", None) is Phase.SWEEP and hasattr(event, "total")
    ]
    assert sum(planned) == total
    assert max(planned) - min(planned) <= 1


def test_random_cases_differ_between_shards_and_are_the_same_again(tmp_path: Path) -> None:
    once = [cases_of(events, Phase.RANDOM) for _, events in shards(3, tmp_path / "once", sweep=False)]
    again = [cases_of(events, Phase.RANDOM) for _, events in shards(3, tmp_path / "again", sweep=False)]
    assert once == again
    assert all(len(set(one) - set(other)) > len(one) // 2 for one in once for other in once if one is not other)


def test_joined_shards_know_what_a_whole_run_knows(tmp_path: Path) -> None:
    whole, _ = run(stray, tmp_path / "whole")
    joined = join_results([result for result, _ in shards(3, tmp_path)])
    (one,), (other,) = joined.discoveries, whole.discoveries
    assert (one.fingerprint, one.culprit) == (other.fingerprint, other.culprit)
    assert one.case.views["x"].layout.shape == other.case.views["x"].layout.shape == (2, 4)
    assert joined.verdict is whole.verdict
    assert joined.matrix.keys() == whole.matrix.keys()
    for argument, row in whole.matrix.items():
        swept = {kind: cell for kind, cell in row.items() if cell is not Cell.NOT_TRIED}
        assert swept.items() <= joined.matrix[argument].items()


def test_a_fault_of_any_layout_is_held_against_the_contiguous_case_of_another_shard(tmp_path: Path) -> None:
    """The out-of-view read of x that every layout of out shows is no fault of out's layouts."""

    def always(case: Case) -> Judgement:
        return showing(Finding(Kind.OUT_OF_VIEW_READ, "stray", kernel="k", source="load", argument="x"))

    for index in (1, 2):
        result, _ = run(always, tmp_path / str(index), shard=Shard(index, 2), max_examples=0)
        assert result.discoveries
        assert Cell.FINDING not in result.matrix.get("out", {}).values()


def test_what_an_earlier_run_saved_is_divided_among_the_shards(tmp_path: Path) -> None:
    """All shards have one directory; none reads what another one saves in the same run."""

    def rare(case: Case) -> Judgement:
        return stray(case) if case.views["x"].layout.shape[0] >= 60 else MATCH

    run(rare, tmp_path, sweep=False, max_examples=300)
    found = [
        bool(run(rare, tmp_path, sweep=False, max_examples=3, seed=5, shard=Shard(index, 2))[0].discoveries)
        for index in (1, 2)
    ]
    assert any(found)


def test_what_is_saved_after_the_run_began_is_not_read(tmp_path: Path) -> None:
    def rare(case: Case) -> Judgement:
        return stray(case) if case.views["x"].layout.shape[0] >= 60 else MATCH

    run(rare, tmp_path, sweep=False, max_examples=300)
    result, _ = run(rare, tmp_path, sweep=False, max_examples=3, seed=5, began=0.0)
    assert not result.discoveries


def test_constants_of_kcheck_are_not_drawn(tmp_path: Path) -> None:
    """Which of its modules are loaded differs between a command and a worker; of the user's the same ones are."""
    is_local: Callable[[str], bool] = vars(providers)["is_local_module_file"]
    (tmp_path / "kernels.py").touch()
    assert is_local(str(tmp_path / "kernels.py"))
    for name in ("kcheck.engine.turn", "kcheck.strategies.kinds", "kcheck.reports.record"):
        assert not is_local(str(import_module(name).__file__))
