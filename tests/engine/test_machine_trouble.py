"""Trouble of the machine's: it is told as such, loses no finding, and is never the case strategy's fault."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kcheck import store
from kcheck.case import Case
from kcheck.events import CaseVerdict, Notice
from kcheck.protocol import Judgement

from .test_campaign import MATCH, run, stray


def full(*_: object, **__: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_finding_that_cannot_be_saved_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.tempfile, "NamedTemporaryFile", full)  # type: ignore[attr-defined]
    result, _ = run(stray, tmp_path)
    (found,) = result.discoveries
    assert result.verdict is CaseVerdict.FINDINGS
    assert any("could not be saved" in note and "No space left on device" in note for note in found.finding.notes)


def test_a_case_that_cannot_be_noted_is_judged_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", full)
    result, events = run(stray, tmp_path)
    assert result.discoveries
    assert not result.reasons
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert ".json: No space left on device; the run goes on" in notice.text


@pytest.mark.parametrize("sweep", [True, False])
def test_a_call_of_the_system_that_fails_once_is_not_blamed_on_the_strategy(tmp_path: Path, sweep: bool) -> None:
    """In the sweep, and in a test of Hypothesis's, which would repeat it and see nothing."""
    failures = iter([full])

    def decide(case: Case) -> Judgement:
        if case.views["x"].layout.shape[0] > 4:
            next(failures, len)("")
        return MATCH

    result, _ = run(decide, tmp_path, sweep=sweep)
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert result.reasons == ("the machine failed, not the target: No space left on device; run it again",)


def test_it_is_not_either_while_a_bug_is_shrunk(tmp_path: Path) -> None:
    met: list[Case] = []

    def decide(case: Case) -> Judgement:
        judgement = stray(case)
        if judgement is not MATCH:
            met.append(case)
        if len(met) == 4:
            full()
        return judgement

    result, _ = run(decide, tmp_path, sweep=False)
    assert result.verdict is CaseVerdict.FINDINGS
    assert not any("not deterministic" in reason for reason in result.reasons)
