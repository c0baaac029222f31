"""The engine against a stand-in for the workers: a plain function says what each case shows."""

from __future__ import annotations

import linecache
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.case import Case
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.events import BugFound, CaseDone, CaseVerdict, Cell, Discovery, Event, RunDone, TargetResult
from kcheck.findings import Finding, Kind, Severity
from kcheck.layout import Layout, LayoutKind
from kcheck.loader import LoadedTarget
from kcheck.plan import Plan
from kcheck.protocol import Judgement
from kcheck.store import Store

Decide = Callable[[Case], Judgement]


class StandIn:
    """Judges by a function. A view made dense is made contiguous in the case."""

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
        from dataclasses import replace

        from kcheck.case import Backing

        names = set(dense)
        if names:
            views = {
                name: replace(view, backing=f"{name} dense", layout=Layout.contiguous(view.layout.shape))
                for name, view in case.views.items()
                if name in names
            }
            args = {name: views.get(name, value) for name, value in case.args.items()}
            own = {v.backing: Backing(v.dtype, v.layout.backing_numel) for v in views.values()}
            case = Case.of(args, {**case.backings, **own})
        else:
            self.asked.append(case)
        return self.decide(case)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = draw(ks.dims("rows", min_value=1, max_value=64))
    return Case(
        out=draw(ks.outputs((rows, 4), "float32")), x=draw(ks.tensors((rows, 4), "float32")), flag=draw(st.booleans())
    )


@kcheck.target(cases=cases(), kernels=["k"], outputs=["out"])
def target(out: Any, x: Any, flag: bool) -> None:
    raise AssertionError("the stand-in never calls it")


MATCH = Judgement(CaseVerdict.MATCH, launches={"k": 1})


def showing(*findings: Finding) -> Judgement:
    return Judgement(CaseVerdict.FINDINGS, findings=findings, launches={"k": 1})


def run(decide: Decide, tmp_path: Path, *, of: Any = target, **settings: Any) -> tuple[TargetResult, list[Event]]:
    defaults = {"max_examples": 100, "seed": 3}
    store = Store(tmp_path / "store").open()
    campaign = Campaign(
        [LoadedTarget(of, "t.py::target")],
        cast(Client, StandIn(decide)),
        store,
        Settings(**{**defaults, **settings}),
        "interpret",
    )
    events = list(campaign.run())
    done = events[-1]
    assert isinstance(done, RunDone)
    return done.results[0], events


def stray(case: Case) -> Judgement:
    """As the founding bug: a read outside of x where its rows are not dense and there are two or more."""
    layout = case.views["x"].layout
    if layout.shape[0] >= 2 and layout.strides[0] != 4:
        return showing(Finding(Kind.OUT_OF_VIEW_READ, "stray", kernel="k", source="load", argument="x", parameter="xp"))
    return MATCH


def test_a_clean_target_matches(tmp_path: Path) -> None:
    result, events = run(lambda case: MATCH, tmp_path)
    assert result.verdict is CaseVerdict.MATCH
    assert not result.reasons
    assert sum(result.cases.values()) == len([e for e in events if isinstance(e, CaseDone)])
    assert set(result.matrix["x"].values()) == {Cell.MATCH}
    assert LayoutKind.NARROWED in result.matrix["x"]


def test_a_bug_is_told_once_with_its_minimal_case_and_culprit(tmp_path: Path) -> None:
    result, events = run(stray, tmp_path)
    told = [e.discovery for e in events if isinstance(e, BugFound)]
    assert len(told) == len(result.discoveries) == 1
    discovery = result.discoveries[0]
    assert discovery.case.views["x"].layout.shape == (2, 4)
    assert discovery.case.views["out"].kinds == {LayoutKind.CONTIGUOUS}
    assert discovery.case.args["flag"] is False
    assert discovery.culprit == "x"
    assert LayoutKind.NARROWED in discovery.layout_kinds
    assert discovery.minimal
    assert result.matrix["x"][LayoutKind.NARROWED] is Cell.FINDING
    assert result.matrix["out"][LayoutKind.NARROWED] is Cell.MATCH


@pytest.mark.parametrize("sweep", [True, False])
def test_every_bug_of_a_target_is_told_apart(tmp_path: Path, sweep: bool) -> None:
    def two(case: Case) -> Judgement:
        found = list(stray(case).findings)
        if case.views["out"].layout.first:
            found.append(Finding(Kind.OUT_OF_VIEW_WRITE, "write", source="store", argument="out", parameter="op"))
        return showing(*found) if found else MATCH

    result, _ = run(two, tmp_path, sweep=sweep, max_examples=300)
    found = {d.finding.kind: d for d in result.discoveries}
    assert set(found) == {Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_VIEW_WRITE}
    read, write = found[Kind.OUT_OF_VIEW_READ], found[Kind.OUT_OF_VIEW_WRITE]
    assert read.case.views["out"].layout.first == 0
    assert write.case.views["x"].kinds == {LayoutKind.CONTIGUOUS}
    assert write.case.views["x"].layout.shape == (1, 4)


def test_a_wrong_value_with_the_same_culprit_is_a_symptom(tmp_path: Path) -> None:
    def two_faces(case: Case) -> Judgement:
        strayed = stray(case)
        if strayed is not MATCH and case.views["x"].layout.shape[0] >= 5:  # the stray element is another row's
            return showing(Finding(Kind.LAYOUT_VARIANCE, "differs", kernel="k", argument="out"))
        return strayed

    result, events = run(two_faces, tmp_path)
    assert [d.finding.kind for d in result.discoveries] == [Kind.OUT_OF_VIEW_READ]
    assert [f.kind for f in result.discoveries[0].related] == [Kind.LAYOUT_VARIANCE]
    assert len([e for e in events if isinstance(e, BugFound)]) == 1


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("sweep", [True, False])
def test_one_wrong_stride_has_one_headline_whichever_of_its_faces_is_met_first(
    tmp_path: Path, sweep: bool, seed: int
) -> None:
    def collides_or_strays(case: Case) -> Judgement:
        layout = case.views["out"].layout  # whose column stride is taken to be 1
        if layout.shape[0] < 2 or layout.strides[1] == 1:
            return MATCH
        if layout.strides[0] == 1:  # another row's element
            return showing(Finding(Kind.RACE, "race", kernel="k", source="store", argument="out"))
        if case.args["flag"]:
            return showing(Finding(Kind.LAYOUT_VARIANCE, "differs", kernel="k", argument="out"))
        return showing(Finding(Kind.OUT_OF_VIEW_WRITE, "strays", kernel="k", source="store", argument="out"))

    result, events = run(collides_or_strays, tmp_path, sweep=sweep, seed=seed, max_examples=300)
    (discovery,) = result.discoveries
    assert discovery.finding.kind is Kind.OUT_OF_VIEW_WRITE
    assert {f.kind for f in discovery.related} == {Kind.RACE, Kind.LAYOUT_VARIANCE}
    assert len([e for e in events if isinstance(e, BugFound)]) == 1


def test_a_collision_alone_is_the_headline_and_a_wrong_value_its_symptom(tmp_path: Path) -> None:
    def collides(case: Case) -> Judgement:
        layout = case.views["out"].layout
        if layout.strides[1] == 1 or layout.shape[0] < 2:
            return MATCH
        kind = Kind.LAYOUT_VARIANCE if case.args["flag"] else Kind.RACE
        return showing(Finding(kind, "wrong", kernel="k", source="store", argument="out"))

    result, events = run(collides, tmp_path)
    (discovery,) = result.discoveries
    assert discovery.finding.kind is Kind.RACE
    assert [f.kind for f in discovery.related] == [Kind.LAYOUT_VARIANCE]
    assert len([e for e in events if isinstance(e, BugFound)]) == 1


def test_a_race_in_every_layout_is_beside_a_stray_access_and_not_its_effect(tmp_path: Path) -> None:
    def both(case: Case) -> Judgement:
        race = Finding(Kind.RACE, "race", kernel="k", source="add", argument="out")
        return showing(race, *stray(case).findings) if case.views["out"].layout.shape[0] >= 2 else MATCH

    result, _ = run(both, tmp_path)
    assert {d.finding.kind for d in result.discoveries} == {Kind.RACE, Kind.OUT_OF_VIEW_READ}


def test_a_wrong_value_of_its_own_is_told(tmp_path: Path) -> None:
    def logic(case: Case) -> Judgement:
        return (
            showing(Finding(Kind.VALUE_MISMATCH, "differs", kernel="k", argument="out")) if case.args["flag"] else MATCH
        )

    result, _ = run(logic, tmp_path)
    (discovery,) = result.discoveries
    assert discovery.culprit == ""
    assert discovery.case.args["flag"] is True
    assert discovery.case.views["x"].layout == Layout.contiguous((1, 4))


def test_shrinking_keeps_the_severity(tmp_path: Path) -> None:
    def milder_when_small(case: Case) -> Judgement:
        verdict = stray(case)
        if verdict is MATCH or case.views["x"].layout.shape[0] >= 3:
            return verdict
        from dataclasses import replace

        return showing(replace(verdict.findings[0], severity=Severity.WARNING))

    result, _ = run(milder_when_small, tmp_path)
    (discovery,) = result.discoveries
    assert discovery.finding.severity is Severity.ERROR
    assert discovery.case.views["x"].layout.shape == (3, 4)


def reasons(result: TargetResult) -> str:
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    return " / ".join(result.reasons)


def test_a_kernel_that_never_launched_is_could_not_check(tmp_path: Path) -> None:
    result, _ = run(lambda case: Judgement(CaseVerdict.MATCH), tmp_path)
    assert "kernel k never launched" in reasons(result)


def test_a_target_that_rejects_everything_is_could_not_check(tmp_path: Path) -> None:
    result, _ = run(lambda case: Judgement(CaseVerdict.REJECTED, "ValueError: no"), tmp_path)
    assert "every case was rejected: ValueError: no" in reasons(result)


def test_a_target_that_rejects_all_strided_layouts_of_an_argument_is_could_not_check(tmp_path: Path) -> None:
    def contiguous_only(case: Case) -> Judgement:
        layout = case.views["x"].layout
        if layout.strides != Layout.contiguous(layout.shape).strides:
            return Judgement(CaseVerdict.REJECTED, "ValueError: x must be contiguous", layout_rejected=True)
        return MATCH

    result, _ = run(contiguous_only, tmp_path)
    assert "no layout of x but contiguous ones was accepted: ValueError: x must be contiguous" in reasons(result)
    assert result.matrix["x"][LayoutKind.TRANSPOSED] is Cell.REJECTED


def test_a_weak_oracle_is_could_not_check(tmp_path: Path) -> None:
    result, _ = run(lambda case: Judgement(CaseVerdict.MATCH, launches={"k": 1}, constant="0.0"), tmp_path)
    assert "the oracle is weak: every result is 0.0" in reasons(result)


def test_an_oracle_that_is_constant_now_and_then_is_not_weak(tmp_path: Path) -> None:
    def varied(case: Case) -> Judgement:
        constant = "0.0" if case.views["x"].layout.shape[0] == 1 else None
        return Judgement(CaseVerdict.MATCH, launches={"k": 1}, constant=constant)

    assert run(varied, tmp_path)[0].verdict is CaseVerdict.MATCH


def test_one_case_that_could_not_be_checked_is_no_pass(tmp_path: Path) -> None:
    def once(case: Case) -> Judgement:
        if case.views["x"].layout.shape[0] == 64:
            return Judgement(CaseVerdict.COULD_NOT_CHECK, "k uses inline assembly")
        return MATCH

    assert "k uses inline assembly" in reasons(run(once, tmp_path)[0])


def test_a_strategy_that_yields_nothing_is_could_not_check(tmp_path: Path) -> None:
    nothing = kcheck.target(cases=st.nothing(), outputs=["out"], name="nothing")(target.function)
    assert "yields nothing" in reasons(run(lambda case: MATCH, tmp_path, of=nothing)[0])


def test_a_strategy_that_raises_is_could_not_check_with_its_line(tmp_path: Path) -> None:
    @st.composite
    def broken(draw: st.DrawFn) -> Case:
        draw(st.booleans())
        raise ZeroDivisionError("oops")

    of = kcheck.target(cases=broken(), outputs=["out"])(target.function)
    said = reasons(run(lambda case: MATCH, tmp_path, of=of)[0])
    assert "ZeroDivisionError: oops" in said
    (line,) = re.findall(rf"{re.escape(__file__)}:(\d+): ", said)
    assert "raise ZeroDivisionError" in linecache.getline(__file__, int(line))


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt()])
def test_a_strategy_that_would_end_the_process_is_could_not_check(tmp_path: Path, error: BaseException) -> None:
    @st.composite
    def leaving(draw: st.DrawFn) -> Case:
        draw(st.booleans())
        raise error

    of = kcheck.target(cases=leaving(), outputs=["out"])(target.function)
    assert type(error).__name__ in reasons(run(lambda case: MATCH, tmp_path, of=of)[0])


def test_a_strategy_that_leaves_at_once_is_could_not_check(tmp_path: Path) -> None:
    @st.composite
    def gone(draw: st.DrawFn) -> Case:
        draw(st.booleans())
        os._exit(0)

    of = kcheck.target(cases=gone(), outputs=["out"])(target.function)
    assert "SystemExit" in reasons(run(lambda case: MATCH, tmp_path, of=of)[0])


def test_a_strategy_that_is_not_valid_is_could_not_check(tmp_path: Path) -> None:
    @st.composite
    def empty_range(draw: st.DrawFn) -> Case:
        return Case(n=draw(st.integers(min_value=5, max_value=1)))

    of = kcheck.target(cases=empty_range())(target.function)
    assert "InvalidArgument" in reasons(run(lambda case: MATCH, tmp_path, of=of)[0])


def test_a_strategy_that_draws_otherwise_each_time_is_could_not_check(tmp_path: Path) -> None:
    calls = iter(range(1_000_000))

    @st.composite
    def moody(draw: st.DrawFn) -> Case:
        if next(calls) % 3 == 2:
            return Case(n=draw(st.text(max_size=3)))
        return Case(n=draw(st.integers(0, 9)))

    of = kcheck.target(cases=moody())(target.function)
    assert reasons(run(lambda case: MATCH, tmp_path, of=of)[0])


def test_a_strategy_of_something_else_is_could_not_check(tmp_path: Path) -> None:
    of = kcheck.target(cases=cast(Any, st.integers()), outputs=["out"])(target.function)
    assert "cases yields a int" in reasons(run(lambda case: MATCH, tmp_path, of=of)[0])


def test_pins_hold_in_every_case(tmp_path: Path) -> None:
    seen: list[Case] = []

    def note(case: Case) -> Judgement:
        seen.append(case)
        return MATCH

    run(note, tmp_path, plan=Plan({"rows": 7}, {"x": LayoutKind.TRANSPOSED}))
    assert {case.views["x"].layout.shape[0] for case in seen} == {7}
    assert all(LayoutKind.TRANSPOSED in case.views["x"].kinds for case in seen)


def test_the_seed_decides_what_is_drawn(tmp_path: Path) -> None:
    def drawn(seed: int, place: str) -> list[str]:
        keys: list[str] = []
        run(lambda case: keys.append(case.key) or MATCH, tmp_path / place, seed=seed)  # type: ignore[func-returns-value]
        return keys

    first = drawn(1, "a")
    assert drawn(1, "b") == first
    assert drawn(2, "c") != first


def test_the_sweep_tries_the_request_counts_at_the_boundaries(tmp_path: Path) -> None:
    rows: set[int] = set()
    run(lambda case: rows.add(case.views["x"].layout.shape[0]) or MATCH, tmp_path, max_examples=0)  # type: ignore[func-returns-value]
    assert {1, 2, 3, 4, 8, 16, 32, 64} <= rows


def test_a_known_bug_is_met_first_in_the_next_run(tmp_path: Path) -> None:
    def rare(case: Case) -> Judgement:
        return stray(case) if case.views["x"].layout.shape[0] >= 60 else MATCH

    _, events = run(rare, tmp_path / "other", sweep=False, max_examples=5)
    assert not any(isinstance(event, BugFound) for event in events)
    run(rare, tmp_path, sweep=False, max_examples=300)
    for seed in range(3):
        _, events = run(rare, tmp_path, sweep=False, max_examples=5, seed=seed)
        assert any(isinstance(event, BugFound) for event in events)


def test_saved_examples_stay_until_they_show_nothing(tmp_path: Path) -> None:
    """Two bugs, each known by the time that the other one is looked for; then one of them is fixed."""

    def of(*bugs: tuple[Kind, range]) -> Decide:
        def decide(case: Case) -> Judgement:
            rows = case.views["x"].layout.shape[0]
            found = [Finding(kind, "", kernel="k", source=kind) for kind, at in bugs if rows in at]
            return showing(*found) if found else MATCH

        return decide

    def saved() -> int:
        return sum(1 for path in (tmp_path / "store" / "examples").rglob("*") if path.is_file())

    low, high = (Kind.INPUT_MUTATED, range(20, 40)), (Kind.OUT_OF_BOUNDS_WRITE, range(50, 65))
    run(of(low, high), tmp_path, sweep=False, max_examples=300)
    before = saved()
    for seed in range(3):
        result, _ = run(of(low, high), tmp_path, sweep=False, max_examples=3, seed=seed)
        assert {discovery.finding.kind for discovery in result.discoveries} == {low[0], high[0]}
    assert saved() == before
    run(of(low), tmp_path, sweep=False, max_examples=3)
    result, _ = run(of(low, high), tmp_path, sweep=False, max_examples=3, seed=1)
    assert [discovery.finding.kind for discovery in result.discoveries] == [low[0]]
    assert saved() < before


@pytest.mark.parametrize("least", [2, 31])
def test_what_scouting_meets_is_shrunk_as_ever(tmp_path: Path, least: int) -> None:
    """The cases drawn again are those that were scouted, so that the bug is met again and nothing is judged twice."""
    asked: list[str] = []

    def from_rows(case: Case) -> Judgement:
        asked.append(case.key)
        return stray(case) if case.views["x"].layout.shape[0] >= least else MATCH

    result, _ = run(from_rows, tmp_path, sweep=False, max_examples=300)
    (discovery,) = result.discoveries
    assert discovery.minimal
    assert least <= discovery.case.views["x"].layout.shape[0] < least + 8
    assert discovery.case.views["out"].kinds == {LayoutKind.CONTIGUOUS}
    assert len(asked) - len(set(asked)) <= 2  # controls with one argument made contiguous


@pytest.mark.parametrize("phase", ["sweep", "shrinking"])
def test_no_finding_is_lost_when_the_time_is_up(tmp_path: Path, phase: str) -> None:
    """A case that shows a bug is never counted for a pass, whatever the run was doing when it ended."""
    over = threading.Event()

    def decide(case: Case) -> Judgement:
        if over.is_set():
            time.sleep(0.05)
        first = Finding(Kind.INPUT_MUTATED, "", kernel="k", source="first")
        second = Finding(Kind.OUT_OF_BOUNDS_WRITE, "", kernel="k", source="second")
        if case.views["x"].layout.shape[0] < 20:
            return MATCH
        over.set()
        if phase == "shrinking":
            return showing(first, second) if case.views["x"].layout.shape[0] >= 25 else showing(first)
        return showing(first)

    options = {"max_time": 0.5, "shrink_time": 0.2, "max_examples": 10_000}
    result, events = run(decide, tmp_path, sweep=phase == "sweep", **options)
    shown = {
        finding.kind
        for event in events
        if isinstance(event, CaseDone) and event.case is not None and event.verdict is CaseVerdict.FINDINGS
        for finding in decide(event.case).findings
    }
    assert shown
    assert {discovery.finding.kind for discovery in result.discoveries} == shown
    assert result.verdict is CaseVerdict.FINDINGS


def test_the_case_that_waits_with_the_worker_counts_when_the_time_is_up(tmp_path: Path) -> None:
    asked: list[Case] = []

    def decide(case: Case) -> Judgement:
        asked.append(case)
        if len(asked) == 3:
            time.sleep(0.6)
        return MATCH if len(asked) <= 3 else showing(Finding(Kind.INPUT_MUTATED, "", kernel="k", source="line"))

    result, _ = run(decide, tmp_path, sweep=False, max_time=0.5)
    assert [discovery.minimal for discovery in result.discoveries] == [True]


def test_the_case_that_waits_with_the_worker_counts_when_the_strategy_fails(tmp_path: Path) -> None:
    drawn: list[str] = []

    @st.composite
    def failing(draw: st.DrawFn) -> Case:
        case = draw(cases())
        if drawn and drawn[-1] == "shows":
            raise ValueError("no more")
        drawn.append("shows" if case.views["x"].layout.shape[0] >= 20 else "")
        return case

    def decide(case: Case) -> Judgement:
        found = Finding(Kind.INPUT_MUTATED, "", kernel="k", source="line")
        return showing(found) if case.views["x"].layout.shape[0] >= 20 else MATCH

    broken = kcheck.target(cases=failing(), kernels=["k"], outputs=["out"])(lambda out, x, flag: None)
    result, _ = run(decide, tmp_path, of=broken, sweep=False)
    assert [discovery.finding.kind for discovery in result.discoveries] == [Kind.INPUT_MUTATED]
    assert any("no more" in reason for reason in result.reasons)


@pytest.mark.parametrize("verdict", [CaseVerdict.COULD_NOT_CHECK, CaseVerdict.REJECTED])
def test_what_could_not_be_judged_is_no_culprit(tmp_path: Path, verdict: CaseVerdict) -> None:
    """That a finding is gone once an argument is contiguous is claimed only where that case was run."""

    def decide(case: Case) -> Judgement:
        return Judgement(verdict, "no") if "x dense" in case.backings else stray(case)

    result, _ = run(decide, tmp_path)
    assert [discovery.culprit for discovery in result.discoveries] == [""]


def test_an_interrupted_run_keeps_what_was_found(tmp_path: Path) -> None:
    found = threading.Event()
    store = Store(tmp_path).open()
    campaign = Campaign(
        [LoadedTarget(target, "t.py::target")], cast(Client, StandIn(stray)), store, Settings(seed=1), "interpret"
    )
    discoveries: list[Discovery] = []
    done = None
    for event in campaign.run():
        if isinstance(event, BugFound):
            discoveries.append(event.discovery)
            found.set()
            campaign.interrupt()
        done = event
    assert isinstance(done, RunDone)
    assert done.interrupted
    assert [d.fingerprint for d in done.results[0].discoveries] == [d.fingerprint for d in discoveries]
    assert store.find(discoveries[0].fingerprint).case == discoveries[0].case


def test_time_ends_a_run(tmp_path: Path) -> None:
    began = time.monotonic()
    run(lambda case: MATCH, tmp_path, max_examples=1_000_000, max_time=1.0)
    assert time.monotonic() - began < 20


def test_a_simpler_case_that_is_saved_and_still_shows_the_bug_stays(tmp_path: Path) -> None:
    def saved() -> Case:
        return Store(tmp_path / "store").find(fingerprint).case

    (minimal,) = run(stray, tmp_path)[0].discoveries
    fingerprint = minimal.fingerprint
    larger = {"sweep": False, "plan": Plan({"rows": 9}, {"x": LayoutKind.TRANSPOSED})}
    (met,) = run(stray, tmp_path, **larger)[0].discoveries
    assert met.fingerprint == fingerprint
    assert met.case.views["x"].layout.shape == (9, 4)
    assert any("an earlier run has saved a simpler case" in note for note in met.finding.notes)
    assert saved() == minimal.case

    def only_large(case: Case) -> Judgement:  # the bug has changed: the small case does not show it any more
        return stray(case) if case.views["x"].layout.shape[0] >= 5 else MATCH

    (met,) = run(only_large, tmp_path, **larger)[0].discoveries
    assert not met.finding.notes
    assert saved() == met.case
