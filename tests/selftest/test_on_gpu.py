"""On a GPU a bug may be seen by one way to run a kernel and not by another: all are asked, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcheck import selftest
from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Kind, Severity
from kcheck.loader import load
from kcheck.protocol import Judgement
from kcheck.recall import Outcome
from kcheck.targets.registry import PAIRS

PAIR = next(pair for pair in PAIRS if pair.name == "rope_in_place")
RACE = Finding(kind=Kind.RACE, message="a race", argument="x", severity=Severity.WARNING)


class Fake:
    """A worker of a backend that shows some findings."""

    shows: dict[str, tuple[Finding, ...]] = {}  # noqa: RUF012
    started: list[str] = []  # noqa: RUF012

    def __init__(self, backend: str, log: Path, **_: Any) -> None:
        self.backend = backend
        self.started.append(backend)

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def load(self, spec: str) -> None:
        pass

    def judge(self, spec: str, case: Any) -> Judgement:
        found = self.shows.get(self.backend, ())
        return Judgement(CaseVerdict.FINDINGS if found else CaseVerdict.MATCH, findings=found)


@pytest.mark.parametrize(
    ("shown_by", "started", "outcome"),
    [
        ("cuda,checked", [], Outcome.RIGHT),
        ("viewcheck,on-gpu", ["viewcheck,on-gpu"], Outcome.RIGHT),
        ("cuda", ["viewcheck,on-gpu", "cuda"], Outcome.RIGHT),
        ("", ["viewcheck,on-gpu", "cuda"], Outcome.WRONG),
    ],
)
def test_other_ways_are_asked_where_one_shows_nothing(
    shown_by: str, started: list[str], outcome: Outcome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Fake, "shows", {shown_by: (RACE,)})
    monkeypatch.setattr(Fake, "started", [])
    monkeypatch.setattr(selftest, "Client", Fake)
    monkeypatch.setattr(selftest, "SEARCH_CASES", 2)
    first = Fake("cuda,checked", tmp_path)
    Fake.started.clear()
    test = selftest.SelfTest("cuda,checked", tmp_path / "log", 1, selftest.Effort())
    (one,) = load(PAIR.wrong)
    result = test._search(one, PAIR, first)  # type: ignore[arg-type]
    assert result.outcome is outcome
    assert Fake.started == started


def test_on_the_cpu_a_warning_is_not_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Fake, "shows", {"interpret": (RACE,)})
    monkeypatch.setattr(selftest, "SEARCH_CASES", 2)
    test = selftest.SelfTest("interpret", tmp_path / "log", 1, selftest.Effort())
    (one,) = load(PAIR.wrong)
    assert test._search(one, PAIR, Fake("interpret", tmp_path)).outcome is Outcome.WRONG  # type: ignore[arg-type]
