"""Phase 1: a fixed walk, the same everywhere. One thing is pinned at a time, the rest is small and contiguous."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from kcheck.case import Case, Role
from kcheck.engine.attribute import is_explained
from kcheck.engine.draw import Drawn, merged, simplest
from kcheck.engine.search import pursue
from kcheck.engine.turn import Turn
from kcheck.errors import SpecError
from kcheck.events import CaseVerdict, Cell, Phase, PhaseStarted
from kcheck.layout import LayoutKind
from kcheck.plan import Plan

SHARE = 0.5  # of a target's time; the rest is for random cases
_CELLS = {
    CaseVerdict.MATCH: Cell.MATCH,
    CaseVerdict.FINDINGS: Cell.FINDING,  # nothing else differs from contiguous, so it is this layout, or any
    CaseVerdict.REJECTED: Cell.REJECTED,
    CaseVerdict.COULD_NOT_CHECK: Cell.COULD_NOT_CHECK,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One case of the walk.

    Attributes:
        plan: What is pinned.
        argument: The argument whose layout is pinned, ``""`` if a choice is.
        kind: The kind that its layout must have.
    """

    plan: Plan
    argument: str = ""
    kind: LayoutKind | None = None


def sweep(turn: Turn) -> None:
    """Walk through layouts and boundary sizes; pursue every new finding to its minimal case.

    Raises:
        SpecError: The target's strategy yields nothing, or fails.
        Stop: The budget is used up.
    """
    first = learn(turn)
    slots = first.record.learn_slots(first.case.drawn)
    steps = list(walk(first, slots, turn.settings.plan))
    turn.emit(PhaseStarted(turn.target.name, Phase.SWEEP, len(steps)))
    end = time.monotonic() + turn.settings.max_time * SHARE
    for done, step in enumerate(steps):
        if time.monotonic() > end:
            turn.notes.append(f"the sweep ran {done} of {len(steps)} cases; give it more --max-time")
            break
        turn.phase = Phase.SWEEP
        drawn = simplest(turn.target, step.plan, slots)
        if drawn is None:
            continue
        case = drawn.case
        if step.kind is not None and not _has(case, step.argument, step.kind):
            turn.mark(step.argument, [step.kind], Cell.NOT_TRIED)
            continue
        judgement = turn.judge(case)
        if step.kind is not None:
            turn.mark(step.argument, [step.kind], _CELLS[judgement.verdict])
        for finding in turn.news(case, judgement):
            if is_explained(turn, finding, case):
                continue
            pursue(turn, finding, Plan(layouts=step.plan.layouts, pins=turn.settings.plan.pins), slots)


def learn(turn: Turn) -> Drawn:
    """The small contiguous case: what arguments and choices there are.

    Raises:
        SpecError: The strategy yields nothing.
    """
    base = merged(turn.settings.plan, small=True)
    first = simplest(turn.target, Plan(small=True)) or simplest(turn.target, base)
    if first is None:
        raise SpecError(
            f"{turn.target.file}:{turn.target.line}: the case strategy of {turn.target.name} yields nothing"
        )
    return first


def walk(first: Drawn, slots: tuple[str, ...], fixed: Plan) -> Iterator[Step]:
    """The steps, small ones first.

    Args:
        first: The small contiguous case.
        slots: Argument of each tensor draw.
        fixed: Pins of the whole run; nothing else is pinned in their place.
    """
    yield Step(merged(fixed, small=True))
    yield Step(fixed)
    drawn = zip(slots, first.record.tensors, strict=True)
    for name, (_, kinds) in sorted(drawn, key=lambda one: one[1][0].role is not Role.INDEX):  # indices: bugs live there
        for kind in kinds if name and name not in fixed.layouts else ():
            yield Step(merged(fixed, small=True, layouts={name: kind}), name, kind)
    free = [choice for choice in first.record.choices.values() if choice.name not in fixed.pins]
    values = [(choice.name, value) for choice in free for value in choice.values]
    for name, value in sorted(values, key=lambda pin: pin[1] if isinstance(pin[1], int) else 0):
        yield Step(merged(fixed, small=True, pins={name: value}))


def _has(case: Case, argument: str, kind: LayoutKind) -> bool:
    view = case.views.get(argument)
    return view is not None and kind in view.kinds
