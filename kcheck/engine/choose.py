"""Cases of a target for a run that does not look for more of them: boundary cases, saved findings, random ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from hypothesis import Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable

from kcheck.case import Case
from kcheck.engine.draw import QUIET, Drawn, planned, simplest
from kcheck.engine.learn import learn
from kcheck.engine.sweep import walk
from kcheck.errors import UsageError
from kcheck.plan import Plan
from kcheck.saved_case import read_case
from kcheck.store import Store
from kcheck.target import Target


def boundary_cases(target: Target, plan: Plan) -> Iterator[Case]:
    """The cases of the sweep, small ones first.

    Args:
        target: Whose cases.
        plan: Pins for all of them.

    Raises:
        SpecError: The target's strategy fails, or yields nothing.
    """
    learnt = learn(target, plan)
    for step in walk(learnt, learnt.plan(plan)):
        drawn = simplest(target, step.plan, learnt.slots)
        if drawn is not None and (step.kind is None or step.kind in drawn.case.views[step.argument].kinds):
            yield drawn.case


def random_cases(target: Target, plan: Plan, count: int, run_seed: int) -> list[Case]:
    """That many random cases, or fewer where there are no more.

    Args:
        target: Whose cases.
        plan: Pins for all of them.
        count: How many.
        run_seed: Seed of the run.

    Raises:
        SpecError: The target's strategy fails, or yields nothing.
    """
    if not count:
        return []
    learnt = learn(target, plan)
    cases: list[Case] = []

    @seed(run_seed)
    @settings(max_examples=count, database=None, phases=[Phase.generate], **QUIET)
    @given(planned(target, learnt.plan(plan), learnt.slots))
    def take(drawn: Drawn) -> None:
        cases.append(drawn.case)

    with suppress(Unsatisfiable):
        take()
    return cases


def saved_cases(store: Store, spec: str, target: Target) -> tuple[list[Case], list[str]]:
    """Cases of saved findings of a target.

    Returns:
        The cases, and a sentence for each file that was passed over.
    """
    cases, notes = [], []
    for path in sorted((store.root / "findings").glob("*.json")):
        try:
            saved = read_case(path)
        except UsageError as error:
            notes.append(f"a saved finding was passed over: {error}")
            continue
        if saved.spec == spec and set(saved.case.args) == set(target.parameters):
            cases.append(saved.case)
    return cases, notes


def distinct(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Each case once, in the order of its first occurrence."""
    found: dict[str, Case] = {}
    for case in cases:
        found.setdefault(case.key, case)
    return tuple(found.values())
