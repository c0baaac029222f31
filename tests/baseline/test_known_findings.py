"""Known findings in a run of the engine, against a stand-in for the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import strategies as st

import kcheck
from kcheck import baseline
from kcheck import strategies as ks
from kcheck.baseline import Known
from kcheck.case import Backing, Case
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.events import BugFound, CaseVerdict, Event, Phase, PhaseStarted, RunDone, TargetResult
from kcheck.findings import Finding, Kind, Severity
from kcheck.layout import Layout
from kcheck.loader import LoadedTarget
from kcheck.protocol import Judgement
from kcheck.store import Store

ISSUE = "https://example.org/issues/7"
MATCH = Judgement(CaseVerdict.MATCH, launches={"k": 1})
STRAY = Finding(Kind.OUT_OF_VIEW_READ, "stray", kernel="k", source="load", argument="x")
UNWRITTEN = Finding(Kind.UNWRITTEN_OUTPUT, "unwritten", kernel="k", source="store", argument="out")
CRASH = Finding(Kind.CRASH, "the worker process died", source="boom()")
Decide = Callable[[Case], Judgement]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = draw(ks.dims("rows", min_value=1, max_value=64))
    return Case(out=draw(ks.outputs((rows, 4), "float32")), x=draw(ks.tensors((rows, 4), "float32")))


@kcheck.target(cases=cases(), kernels=["k"], outputs=["out"])
def target(out: Any, x: Any) -> None:
    raise AssertionError("the stand-in never calls it")


SPEC = "t.py::target"


class StandIn:
    """Judges by a function. A view made dense is contiguous in the case."""

    def __init__(self, decide: Decide) -> None:
        self.decide = decide
        self.case_timeout = 20.0
        self.on_replaced: Callable[[str, float], None] | None = None
        self.versions = {"torch": "0"}
        self.backend = "interpret"
        self.asked: list[Case] = []

    def load(self, spec: str) -> None:
        pass

    def interrupt(self) -> None:
        pass

    def begin(self, spec: str, case: Case) -> None:
        pass

    def judge(self, spec: str, case: Case, dense: Iterable[str] = ()) -> Judgement:
        names = set(dense)
        if not names:
            self.asked.append(case)
            return self.decide(case)
        views = {name: case.views[name] for name in names}
        copies = {
            n: replace(v, backing=f"{n} dense", layout=Layout.contiguous(v.layout.shape)) for n, v in views.items()
        }
        backings = {v.backing: Backing(v.dtype, v.layout.backing_numel) for v in copies.values()}
        return self.decide(Case.of({**case.args, **copies}, {**case.backings, **backings}))


def rows(case: Case) -> int:
    return case.views["x"].layout.shape[0]


def showing(*findings: Finding) -> Judgement:
    return Judgement(CaseVerdict.FINDINGS, findings=findings, launches={"k": 1})


def run(
    decide: Decide, folder: Path, known: Iterable[Known] = (), **settings: Any
) -> tuple[TargetResult, list[Event], StandIn]:
    client = StandIn(decide)
    chosen = Settings(**{"max_examples": 50, "seed": 3, "known": {SPEC: tuple(known)}, **settings})
    campaign = Campaign(
        [LoadedTarget(target, SPEC)], cast(Client, client), Store(folder / "store").open(), chosen, "interpret"
    )
    events = list(campaign.run())
    done = events[-1]
    assert isinstance(done, RunDone)
    return done.results[0], events, client


def known_from(decide: Decide, folder: Path) -> list[Known]:
    """A baseline of all that a run finds, its issues filled in."""
    result, _, _ = run(decide, folder / "before")
    return [replace(baseline.known_of(found, "interpret"), issue=ISSUE) for found in result.discoveries]


def stray(case: Case) -> Judgement:
    return showing(STRAY) if rows(case) >= 5 else MATCH


def test_a_known_finding_is_tried_first_and_not_shrunk(tmp_path: Path) -> None:
    (known,) = known_from(stray, tmp_path)
    result, events, client = run(stray, tmp_path, [known])
    assert client.asked[0] == known.case
    (found,) = result.discoveries
    assert (found.known, found.case, found.minimal) == (ISSUE, known.case, True)
    assert found.seen > 1
    assert not any(isinstance(event, PhaseStarted) and event.phase is Phase.SHRINK for event in events)
    assert [event.discovery.known for event in events if isinstance(event, BugFound)] == [ISSUE]
    assert result.verdict is CaseVerdict.FINDINGS
    assert (result.gone, result.reasons) == ((), ())


def test_a_new_finding_is_found_beside_a_known_one(tmp_path: Path) -> None:
    (known,) = known_from(stray, tmp_path)

    def both(case: Case) -> Judgement:
        found = [*([STRAY] if rows(case) >= 5 else []), *([UNWRITTEN] if rows(case) >= 3 else [])]
        return showing(*found) if found else MATCH

    result, _, _ = run(both, tmp_path, [known])
    assert {found.finding.kind: found.known for found in result.discoveries} == {
        Kind.OUT_OF_VIEW_READ: ISSUE,
        Kind.UNWRITTEN_OUTPUT: "",
    }
    new = next(found for found in result.discoveries if not found.known)
    assert rows(new.case) == 3


def strided(case: Case) -> bool:
    return rows(case) >= 2 and case.views["x"].layout.strides[0] != 4


WRONG = Finding(Kind.VALUE_MISMATCH, "wrong", argument="out")
SECOND = replace(STRAY, source="another load")


def by_layout(*found: Finding) -> Decide:
    return lambda case: showing(*found) if strided(case) else MATCH


def test_a_second_access_through_a_known_argument_is_new(tmp_path: Path) -> None:
    """Both are gone with x made contiguous, and still the new one is no effect of the known one."""
    (known,) = known_from(by_layout(STRAY), tmp_path)
    assert known.culprit == "x"
    result, _, _ = run(by_layout(STRAY, SECOND, WRONG), tmp_path, [known])
    assert {found.finding.source: found.known for found in result.discoveries} == {"load": ISSUE, "another load": ""}


def test_what_is_listed_beside_a_known_finding_is_not_new(tmp_path: Path) -> None:
    (known,) = known_from(by_layout(STRAY, SECOND, WRONG), tmp_path)
    assert known.related == (SECOND.fingerprint("target"),)
    result, _, _ = run(by_layout(STRAY, SECOND, WRONG), tmp_path, [known])
    (found,) = result.discoveries
    assert found.known == ISSUE
    assert {one.kind for one in found.related} == {Kind.VALUE_MISMATCH, Kind.OUT_OF_VIEW_READ}


@pytest.mark.parametrize("verdict", [CaseVerdict.MATCH, CaseVerdict.REJECTED])
def test_a_finding_that_is_gone_is_told(tmp_path: Path, verdict: CaseVerdict) -> None:
    (known,) = known_from(stray, tmp_path)
    result, _, client = run(lambda case: replace(MATCH, verdict=verdict), tmp_path, [known])
    assert [(gone.fingerprint, gone.issue) for gone in result.gone] == [(known.fingerprint, ISSUE)]
    assert "out-of-view-read of x" in result.gone[0].message
    assert client.asked[:3] == [known.case] * 3  # gone is claimed after more than one try


def test_a_finding_that_shows_now_and_then_is_not_gone(tmp_path: Path) -> None:
    (known,) = known_from(stray, tmp_path)
    tries: list[Case] = []

    def moody(case: Case) -> Judgement:
        tries.append(case)
        return showing(STRAY) if len(tries) == 3 else MATCH

    result, _, _ = run(moody, tmp_path, [known], max_examples=0)
    assert result.gone == ()
    assert [found.known for found in result.discoveries] == [ISSUE]


def test_what_is_not_strict_may_be_gone(tmp_path: Path) -> None:
    (known,) = known_from(stray, tmp_path)
    result, _, _ = run(lambda case: MATCH, tmp_path, [replace(known, strict=False)])
    assert result.gone == ()
    assert any("this run did not see it" in note for note in result.notes)


def test_a_case_that_cannot_be_checked_proves_nothing(tmp_path: Path) -> None:
    (known,) = known_from(stray, tmp_path)

    def unable(case: Case) -> Judgement:
        return Judgement(CaseVerdict.COULD_NOT_CHECK, "no tl.foo here") if case == known.case else MATCH

    result, _, _ = run(unable, tmp_path, [known])
    assert result.gone == ()
    assert any("no tl.foo here" in reason for reason in result.reasons)


def test_a_case_that_does_not_fit_any_more_could_not_be_checked(tmp_path: Path) -> None:
    (known,) = known_from(stray, tmp_path)
    result, _, _ = run(lambda case: MATCH, tmp_path, [replace(known, case=Case(x=None))])
    assert result.gone == ()
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "does not fit the target" in result.reasons[0]


def test_a_known_finding_that_only_other_cases_show_is_still_known(tmp_path: Path) -> None:
    (known,) = known_from(stray, tmp_path)
    result, events, _ = run(lambda case: showing(STRAY) if rows(case) >= 9 else MATCH, tmp_path, [known])
    (found,) = result.discoveries
    assert found.known == ISSUE
    assert rows(found.case) >= 9
    assert result.gone == ()
    assert any("in another case; write the baseline again" in note for note in result.notes)
    assert not any(isinstance(event, PhaseStarted) and event.phase is Phase.SHRINK for event in events)


def test_a_graver_form_of_a_known_finding_is_new(tmp_path: Path) -> None:
    mild = replace(STRAY, severity=Severity.WARNING)
    (known,) = known_from(lambda case: showing(mild) if rows(case) >= 5 else MATCH, tmp_path)
    result, _, _ = run(stray, tmp_path, [known])
    (found,) = result.discoveries
    assert (found.known, found.finding.severity) == ("", Severity.ERROR)


def boom(case: Case) -> Judgement:
    return showing(CRASH) if rows(case) >= 5 else MATCH


def test_no_case_that_holds_a_known_crash_is_launched(tmp_path: Path) -> None:
    (known,) = known_from(boom, tmp_path)
    assert rows(known.case) == 5
    result, _, client = run(boom, tmp_path, [known])
    assert client.asked
    assert all(rows(case) < 5 for case in client.asked)
    (found,) = result.discoveries
    assert (found.known, found.seen, found.case) == (ISSUE, 0, known.case)
    assert any("cases were not launched: they hold the case of crash" in note for note in result.notes)
    assert (result.verdict, result.gone, result.reasons) == (CaseVerdict.FINDINGS, (), ())


def test_a_known_crash_met_all_the_same_stays_known(tmp_path: Path) -> None:
    """One worker is lost, and then nothing that holds that case is launched either."""
    (known,) = known_from(boom, tmp_path)
    result, _, client = run(lambda case: showing(CRASH) if rows(case) >= 3 else MATCH, tmp_path, [known])
    (found,) = result.discoveries
    assert found.known == ISSUE
    deadly = [rows(case) for case in client.asked if rows(case) >= 3]
    assert deadly
    assert len(deadly) <= 2  # 3 and 4 are not known yet


def test_nothing_launched_is_no_pass(tmp_path: Path) -> None:
    (known,) = known_from(lambda case: showing(CRASH), tmp_path)
    result, _, client = run(lambda case: showing(CRASH), tmp_path, [known])
    assert not client.asked
    assert any("hold the case of a crash that is known" in reason for reason in result.reasons)


def test_a_target_has_its_share_of_the_time_that_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    monkeypatch.setattr("kcheck.engine.campaign.sweep", lambda turn, learnt: shares.append(turn.settings.max_time))
    pair = [LoadedTarget(target, SPEC), LoadedTarget(target, SPEC)]
    settings = Settings(max_examples=0, max_time=10_000.0, total_time=6_000.0)
    list(Campaign(pair, cast(Client, StandIn(boom)), Store(tmp_path).open(), settings, "interpret").run())
    first, second = shares
    assert first <= 3_000.0 < second <= 6_000.0


def test_a_target_that_had_no_time_could_not_be_checked(tmp_path: Path) -> None:
    result, _, client = run(lambda case: MATCH, tmp_path, total_time=-1.0)
    assert not client.asked
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "--total-time" in result.reasons[0]
