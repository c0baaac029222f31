"""What is kept, on disk and in memory, has a limit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kcheck import store
from kcheck.case import Case
from kcheck.engine import turn
from kcheck.events import CaseVerdict, Discovery
from kcheck.findings import Finding, Kind
from kcheck.protocol import Judgement
from kcheck.store import Store

from .conftest import Ran


def saved(kept: Store, number: int) -> Path:
    finding = Finding(Kind.VALUE_MISMATCH, "wrong", source=str(number))
    path = kept.save(Discovery("t", "t.py::t", finding, finding.fingerprint("t"), Case(n=number)))
    os.utime(path, (number, number))
    return path


def test_the_latest_findings_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_FINDINGS", 5)
    kept = Store(tmp_path / "kept").open()
    paths = [saved(kept, number) for number in range(1, 9)]
    assert sorted((kept.root / "findings").iterdir()) == sorted(paths[-5:])


def test_large_findings_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Store(tmp_path / "kept").open()
    size = saved(kept, 1).stat().st_size
    monkeypatch.setattr(store, "MOST_FINDING_BYTES", 3 * size + 10)
    paths = [saved(kept, number) for number in range(2, 8)]
    assert sorted((kept.root / "findings").iterdir()) == sorted(paths[-3:])


def test_a_finding_larger_than_the_limit_is_kept_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_FINDING_BYTES", 1)
    kept = Store(tmp_path / "kept").open()
    saved(kept, 1)
    last = saved(kept, 2)
    assert list((kept.root / "findings").iterdir()) == [last]


def test_texts_that_differ_in_each_case_are_not_all_kept(
    run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "MOST_TEXTS", 5)
    ran = run(lambda case: Judgement(CaseVerdict.REJECTED, f"not {case.key}"), max_examples=0)
    evidence = ran.results[0].evidence
    assert evidence is not None
    assert len(evidence.rejections) == 5
    assert ran.results[0].cases[CaseVerdict.REJECTED] > 20
    assert "every case was rejected: not " in ran.results[0].reasons[0]
