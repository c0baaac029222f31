"""Scouting: random cases at full speed, one being drawn while a worker runs the one before.

Hypothesis wants the verdict of a case before it draws the next, but needs it only to shrink. So a scout tells it that
every case passes, and ends when one did not. The search then draws the same cases again, from the same seed, and knows
their verdicts up to the one that matters.
"""

from __future__ import annotations

from hypothesis import Phase, given, seed, settings
from hypothesis.errors import Flaky, Unsatisfiable

from kcheck.engine.attribute import is_explained
from kcheck.engine.draw import QUIET, Drawn, flaky, planned
from kcheck.engine.trouble import let_through, telling
from kcheck.engine.turn import Judged, Turn
from kcheck.plan import Plan, Slots


class _Met(BaseException):
    """A case shows a new bug. A BaseException, so that Hypothesis lets it through."""


def scout(turn: Turn, plan: Plan, slots: Slots, examples: int) -> bool:
    """Draw until a case shows a new bug, or the examples are used up.

    Args:
        turn: The target's turn.
        plan: What is pinned.
        slots: Argument of each tensor draw.
        examples: Cases to draw.

    Returns:
        A new bug was met.

    Raises:
        Stop: The budget is used up.
        SpecError: The case strategy failed.
        KcheckError: The machine failed.
    """

    def test(drawn: Drawn) -> None:
        with let_through():
            _look(turn, turn.scout(drawn.case))

    test = given(planned(turn.target, plan, slots))(test)
    test = settings(max_examples=examples, database=None, phases=[Phase.generate], **QUIET)(test)
    try:
        try:
            with telling():
                seed(turn.seed)(test)()
        finally:  # whatever ended it, a case may be with the worker still
            _look(turn, turn.settle())
    except _Met:
        return True
    except Unsatisfiable:
        pass
    except Flaky:
        raise flaky(turn.target) from None
    return False


def _look(turn: Turn, judged: Judged | None) -> None:
    """End the scouting if a case shows a new bug.

    Raises:
        _Met: It does.
    """
    while judged is not None:
        case, judgement = judged
        news = turn.news(case, judgement)
        judged = turn.settle() if news else None  # the worker is needed for the questions that follow
        if not all(is_explained(turn, finding, case) for finding in news):
            raise _Met
