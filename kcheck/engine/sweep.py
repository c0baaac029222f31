"""Phase 1: a fixed walk, the same everywhere. One thing is pinned at a time, the rest is small and contiguous."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from kcheck.case import Case, Role
from kcheck.engine.attribute import is_explained
from kcheck.engine.draw import merged, simplest
from kcheck.engine.learn import Learnt
from kcheck.engine.search import pursue
from kcheck.engine.turn import Turn
from kcheck.events import CaseVerdict, Cell, Phase, PhaseStarted
from kcheck.layout import LayoutKind
from kcheck.plan import Plan, Slots
from kcheck.protocol import Judgement
from kcheck.shard import takes

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


def sweep(turn: Turn, learnt: Learnt) -> None:
    """Walk through layouts and boundary sizes, as far as they are of this shard; pursue every new finding.

    Args:
        turn: The target's turn.
        learnt: What is known of its cases.

    Raises:
        SpecError: The target's strategy fails.
        Stop: The budget is used up.
    """
    slots = learnt.slots
    planned = list(walk(learnt, turn.settings.plan))
    steps = [step for ordinal, step in enumerate(planned) if takes(turn.settings.part, ordinal)][turn.first_step :]
    turn.emit(PhaseStarted(turn.title, Phase.SWEEP, len(steps)))
    of_any_layout = cache(lambda: _shown_contiguous(turn, planned[0], slots))
    end = time.monotonic() + turn.settings.max_time * SHARE
    for done, step in enumerate(steps):
        turn.swept = done, len(steps)
        if time.monotonic() > end:
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
        if step.kind is not None and not _is_of_any_layout(turn, step, judgement, of_any_layout):
            turn.mark(step.argument, [step.kind], _CELLS[judgement.verdict])
        for finding in turn.news(case, judgement):
            if is_explained(turn, finding, case):
                continue
            pursue(turn, finding, Plan(layouts=step.plan.layouts, pins=turn.settings.plan.pins), slots)
    else:
        turn.swept = len(steps), len(steps)


def walk(learnt: Learnt, fixed: Plan) -> Iterator[Step]:
    """The steps, small ones first.

    Args:
        learnt: What is known of the target's cases.
        fixed: Pins of the whole run; nothing else is pinned in their place.
    """
    yield Step(merged(fixed, small=True))
    yield Step(fixed)
    drawn = sorted(learnt.offered.items(), key=lambda one: one[1].role is not Role.INDEX)  # bugs live in indices
    for name, tensor in drawn:
        for kind in tensor.kinds if name not in fixed.layouts else ():
            yield Step(merged(fixed, small=True, layouts={name: kind}, pins=tensor.pins), name, kind)
    free = [choice for choice in learnt.first.record.choices.values() if choice.name not in fixed.pins]
    values = [(choice.name, value) for choice in free for value in choice.values]
    for name, value in sorted(values, key=lambda pin: pin[1] if isinstance(pin[1], int) else 0):
        yield Step(merged(fixed, small=True, pins={name: value}))


def _is_of_any_layout(turn: Turn, step: Step, judgement: Judgement, known: Callable[[], frozenset[str]]) -> bool:
    """All that a step shows is seen in the contiguous case too, and is about other arguments."""
    return bool(judgement.findings) and all(
        finding.argument != step.argument and turn.fingerprint(finding) in known() for finding in judgement.findings
    )


def _shown_contiguous(turn: Turn, step: Step, slots: Slots) -> frozenset[str]:
    """Fingerprints of what the small contiguous case shows, which may be another shard's."""
    drawn = simplest(turn.target, step.plan, slots)
    judgement = turn.look(drawn.case) if drawn is not None else None
    return frozenset(turn.fingerprint(finding) for finding in judgement.findings) if judgement else frozenset()


def _has(case: Case, argument: str, kind: LayoutKind) -> bool:
    view = case.views.get(argument)
    return view is not None and kind in view.kinds
