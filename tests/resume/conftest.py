"""A campaign over a stand-in for the workers, and a journal in memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.case import Backing, Case
from kcheck.client import Client
from kcheck.engine import Campaign, Settings, campaign
from kcheck.engine.settings import Earlier
from kcheck.events import CaseVerdict, Event, RunDone, TargetResult
from kcheck.findings import Finding, Kind
from kcheck.layout import Layout
from kcheck.loader import LoadedTarget
from kcheck.protocol import Judgement
from kcheck.store import Store

Decide = Callable[[Case], Judgement]
MATCH = Judgement(CaseVerdict.MATCH, launches={"k": 1})


def showing(*findings: Finding) -> Judgement:
    return Judgement(CaseVerdict.FINDINGS, findings=findings, launches={"k": 1})


def stray(case: Case) -> Judgement:
    """A read outside of x where its rows are not dense and there are two or more."""
    layout = case.views["x"].layout
    if layout.shape[0] >= 2 and layout.strides[0] != 4:
        return showing(Finding(Kind.OUT_OF_VIEW_READ, "stray", kernel="k", source="load", argument="x"))
    return MATCH


@dataclass
class StandIn:
    """Judges by a function. A view made dense is made contiguous in the case."""

    decide: Decide
    asked: list[Case] = field(default_factory=list)
    case_timeout: float = 20.0
    backend: str = "interpret"
    on_replaced: Callable[[str, float], None] | None = None
    versions: dict[str, str] = field(default_factory=dict)

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
        views = {
            name: replace(view, backing=f"{name} dense", layout=Layout.contiguous(view.layout.shape))
            for name, view in case.views.items()
            if name in names
        }
        own = {view.backing: Backing(view.dtype, view.layout.backing_numel) for view in views.values()}
        return self.decide(Case.of({**case.args, **views}, {**case.backings, **own}))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = draw(ks.dims("rows", min_value=1, max_value=64))
    return Case(
        out=draw(ks.outputs((rows, 4), "float32")), x=draw(ks.tensors((rows, 4), "float32")), flag=draw(st.booleans())
    )


@kcheck.target(cases=cases(), kernels=["k"], outputs=["out"])
def one(out: Any, x: Any, flag: bool) -> None:
    raise AssertionError("the stand-in never calls it")


@kcheck.target(cases=cases(), kernels=["k"], outputs=["out"])
def two(out: Any, x: Any, flag: bool) -> None:
    raise AssertionError("the stand-in never calls it")


class Memory:
    """A journal that keeps every state."""

    def __init__(self) -> None:
        self.states: list[Earlier] = []
        self.finished = False

    def note(self, state: Earlier) -> None:
        self.states.append(state)

    def finish(self) -> None:
        self.finished = True


@dataclass
class Ran:
    """A run that came to its end."""

    results: tuple[TargetResult, ...]
    events: list[Event]
    asked: list[Case]
    journal: Memory


def run_both(
    folder: Path, decide: Decide, earlier: Earlier | None = None, stop_after: int | None = None, **settings: Any
) -> Ran:
    """Run both targets, noting how far the run is after every event; Ctrl-C comes after so many of them."""
    store = Store(folder / "store").open()
    client, journal = StandIn(decide), Memory()
    targets = [LoadedTarget(one, "t.py::one"), LoadedTarget(two, "t.py::two")]
    chosen = replace(Settings(max_examples=40, seed=3, earlier=earlier or Earlier()), **settings)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NOTE_EVERY", "NOTE_SHARE", "TELL_EVERY"):
            patch.setattr(campaign, name, 0)
        running = Campaign(targets, cast(Client, client), store, chosen, "interpret", journal)
        events: list[Event] = []
        for event in running.run():
            events.append(event)
            if len(events) == stop_after:
                running.interrupt()
    done = events[-1]
    assert isinstance(done, RunDone)
    return Ran(done.results, events, client.asked, journal)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    """Runs both targets."""
    return functools.partial(run_both, tmp_path)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run with a bug, from its start to its end."""
    return run_both(tmp_path_factory.mktemp("whole"), stray)
