"""Drawing cases under a plan."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, reject, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, Frozen, Unsatisfiable, UnsatisfiedAssumption
from hypothesis.strategies import SearchStrategy

from kcheck.case import Case
from kcheck.errors import InvalidDocument, SpecError, quoted
from kcheck.importing import no_way_out
from kcheck.origin import is_user_code
from kcheck.plan import Drawing, Plan, Slots, drawing
from kcheck.target import Target

# Cases may be slow, big or rarely valid; that is the target's business. No deadline: a first case pays for imports.
QUIET: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "verbosity": Verbosity.quiet,
    "print_blob": False,
}


NO_SLOTS: Slots = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case and the record of how it was drawn."""

    case: Case
    record: Drawing


def planned(target: Target, plan: Plan, slots: Slots = NO_SLOTS) -> SearchStrategy[Drawn]:
    """The target's cases under a plan.

    Args:
        target: Whose cases.
        plan: What is pinned.
        slots: Which argument each tensor draw becomes, from earlier cases. Others that escape a pin are not drawn.

    Returns:
        A strategy; drawing from it raises SpecError where the target's own strategy fails.
    """

    @st.composite
    def draw_planned(draw: st.DrawFn) -> Drawn:
        with drawing(Drawing(plan, slots)) as record, no_way_out():
            try:
                case = draw(target.cases)
            except (UnsatisfiedAssumption, Frozen):  # how Hypothesis drops a case
                raise
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                raise spec_error(target, error) from None
        if not isinstance(case, Case):
            raise SpecError(
                f"{target.file}:{target.line}: cases yields a {type(case).__name__}; expected kcheck.Case(...)"
            )
        if record.is_misled(case.drawn):
            reject()
        return Drawn(case, record)

    return draw_planned()


def simplest(target: Target, plan: Plan, slots: Slots = NO_SLOTS) -> Drawn | None:
    """The simplest case under a plan: Hypothesis tries it first.

    Returns:
        None if the strategy rejects what the plan asks for.

    Raises:
        SpecError: The target's strategy fails, or yields nothing at all.
    """
    drawn: list[Drawn] = []

    @settings(max_examples=1, database=None, phases=[Phase.generate], **QUIET)
    @given(planned(target, plan, slots))
    def take(one: Drawn) -> None:
        drawn.append(one)

    try:
        take()
    except Unsatisfiable:
        pass
    except SpecError as error:
        raise error from None
    except Flaky:
        raise flaky(target) from None
    return drawn[0] if drawn else None


def flaky(target: Target) -> SpecError:
    """What is to be said of a strategy that draws otherwise when Hypothesis runs it again."""
    return SpecError(
        f"{target.file}:{target.line}: the case strategy of {target.name} is not deterministic: with the same choices "
        "it draws something else; take every random value from draw(...)"
    )


def spec_error(target: Target, error: BaseException) -> SpecError:
    """An exception of the case strategy, with file and line."""
    if isinstance(error, SpecError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if is_user_code(f.filename)] or frames[-1:]
    text = f"{error}" if isinstance(error, InvalidDocument) else quoted(error)
    return SpecError(f"{own[-1].filename}:{own[-1].lineno}: the case strategy of {target.name} raised {text}")


def merged(base: Plan, **changes: Any) -> Plan:
    """A plan with more pins; those of `base` win."""
    pins = {**changes.pop("pins", {}), **base.pins}
    layouts = {**changes.pop("layouts", {}), **base.layouts}
    return replace(base, pins=pins, layouts=layouts, **changes)
