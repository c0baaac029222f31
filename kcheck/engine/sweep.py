"""Phase 1: a fixed walk, the same everywhere. One thing is pinned at a time, the rest is small and contiguous."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kcheck.case import Case, Role
from kcheck.engine.attribute import is_explained
from kcheck.engine.draw import Drawn, merged, simplest
from kcheck.engine.search import pursue
from kcheck.engine.turn import Turn
from kcheck.errors import SpecError, UsageError
from kcheck.events import CaseVerdict, Cell, Phase, PhaseStarted
from kcheck.layout import LayoutKind
from kcheck.plan import Plan
from kcheck.protocol import Judgement
from kcheck.target import Target

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
    first = learn(turn.target, turn.settings.plan)
    slots = first.record.learn_slots(first.case.drawn)
    steps = list(walk(first, slots, turn.settings.plan))
    turn.emit(PhaseStarted(turn.title, Phase.SWEEP, len(steps)))
    base: Judgement | None = None
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
        base = base or judgement  # of the first step: nothing is pinned
        if step.kind is not None and not _is_of_any_layout(turn, step, judgement, base):
            turn.mark(step.argument, [step.kind], _CELLS[judgement.verdict])
        for finding in turn.news(case, judgement):
            if is_explained(turn, finding, case):
                continue
            pursue(turn, finding, Plan(layouts=step.plan.layouts, pins=turn.settings.plan.pins), slots)


def learn(target: Target, fixed: Plan) -> Drawn:
    """The small contiguous case: what arguments and choices there are.

    Args:
        target: Whose cases.
        fixed: Pins of the whole run, for a strategy that yields nothing without them.

    Raises:
        SpecError: The strategy yields nothing.
    """
    first = simplest(target, Plan(small=True)) or simplest(target, merged(fixed, small=True))
    if first is None:
        raise SpecError(f"{target.file}:{target.line}: the case strategy of {target.name} yields nothing")
    return first


def check_pins(targets: Sequence[Target], fixed: Plan) -> None:
    """Check that what the user pinned can be had: a pin that changes nothing must not look like a pass.

    Raises:
        UsageError: No target has a choice of that name, or one cannot honour a pin.
    """
    known: set[str] = set()
    for target in targets if fixed.pins or fixed.layouts else ():
        try:
            first = learn(target, fixed)
            slots = first.record.learn_slots(first.case.drawn)
            pinned = simplest(target, merged(fixed, small=True), slots)
        except SpecError:
            continue  # told when the target has its turn
        known |= set(first.record.choices)
        if pinned is not None and pinned.record.unmet:
            raise UsageError(f"{target.name} cannot have what is pinned: {'; '.join(pinned.record.unmet)}")
    for name in fixed.pins:
        if known and name not in known:
            raise UsageError(f"--set {name}=…: no target has the choice {name!r}; known: {', '.join(sorted(known))}")


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


def _is_of_any_layout(turn: Turn, step: Step, judgement: Judgement, base: Judgement) -> bool:
    """All that a step shows is seen in the contiguous case too, and is about other arguments."""
    known = {turn.fingerprint(finding) for finding in base.findings}
    return bool(judgement.findings) and all(
        turn.fingerprint(finding) in known and finding.argument != step.argument for finding in judgement.findings
    )


def _has(case: Case, argument: str, kind: LayoutKind) -> bool:
    view = case.views.get(argument)
    return view is not None and kind in view.kinds
