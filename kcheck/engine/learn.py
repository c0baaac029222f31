"""What arguments and choices a target's cases have: learnt from small ones, before a run begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kcheck.case import Case, Role
from kcheck.engine.draw import Drawn, merged, simplest
from kcheck.errors import SpecError, UsageError
from kcheck.layout import LayoutKind
from kcheck.objects import argument_of
from kcheck.plan import Pin, Place, Plan
from kcheck.target import Target

MOST_TRIES = 64  # small cases that are drawn to meet tensors that the first one lacks


@dataclass(frozen=True, slots=True)
class Offered:
    """A tensor argument that kcheck's strategies draw.

    Attributes:
        kinds: Layout kinds that it can have.
        role: Its role.
        pins: Choices under which it is drawn; empty: in the first case.
    """

    kinds: tuple[LayoutKind, ...]
    role: Role
    pins: Mapping[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is known of a target's cases.

    Attributes:
        first: The small contiguous case.
        slots: Place of a tensor draw → the argument that it becomes.
        offered: Tensor arguments by path, in the order of their draws.
    """

    first: Drawn
    slots: dict[Place, str] = field(default_factory=dict)
    offered: dict[str, Offered] = field(default_factory=dict)

    def plan(self, fixed: Plan) -> Plan:
        """A plan of which every pinned layout comes to bear: with the choices under which its argument is drawn."""
        pins = {k: v for name in fixed.layouts if name in self.offered for k, v in self.offered[name].pins.items()}
        return merged(fixed, pins=pins)

    def take(self, drawn: Drawn, pins: Mapping[str, Pin]) -> None:
        """Learn from a case.

        Args:
            drawn: The case.
            pins: Choices under which it was drawn.
        """
        record = drawn.record
        slots = record.learn_slots(drawn.case.drawn)
        for place, (tensor, kinds) in zip(record.places, record.tensors, strict=True):
            if place in slots and place not in self.slots:
                self.slots[place] = slots[place]
                self.offered.setdefault(slots[place], Offered(kinds, tensor.role, pins))


def learn(target: Target, fixed: Plan) -> Learnt:
    """Draw small contiguous cases: the first one, and others where it lacks a tensor or a layout is pinned.

    Args:
        target: Whose cases.
        fixed: Pins of the whole run: of layouts the arguments must be met, and a strategy may yield nothing without
            those of choices.

    Raises:
        SpecError: The strategy yields nothing.
    """
    own = Plan(fixed.pins, small=True)  # without the run's seed: the sweep is the same in every run
    first = simplest(target, Plan(small=True)) or simplest(target, own)
    if first is None:
        raise SpecError(f"{target.file}:{target.line}: the case strategy of {target.name} yields nothing")
    learnt = Learnt(first)
    learnt.take(first, {})
    for pins in _others(first, fixed):
        if not fixed.layouts and not _lacking(first.case, learnt):
            break
        drawn = simplest(target, merged(own, pins=pins))
        if drawn is not None:
            learnt.take(drawn, pins)
    return learnt


def check_pins(targets: Sequence[Target], fixed: Plan) -> None:
    """Check that what the user pinned can be had: a pin that changes nothing must not look like a pass.

    Raises:
        UsageError: No target has an argument or a choice of that name, or one cannot honour a pin.
    """
    parameters = {parameter for target in targets for parameter in target.parameters}
    for name in fixed.layouts:
        if argument_of(name) not in parameters:
            listed = ", ".join(sorted(parameters))
            raise UsageError(f"--layout {name}=…: no target has the argument {name!r}; known: {listed}")
    known: set[str] = set()
    for target in targets if fixed.pins or fixed.layouts else ():
        try:
            learnt = learn(target, fixed)
            pinned = simplest(target, merged(learnt.plan(fixed), small=True), learnt.slots)
        except SpecError:
            continue  # told when the target has its turn
        known |= set(learnt.first.record.choices)
        unmet = list(_unmet(target, fixed, learnt, pinned))
        if unmet:
            raise UsageError(f"{target.name} cannot have what is pinned: {'; '.join(unmet)}")
    for name in fixed.pins:
        if known and name not in known:
            raise UsageError(f"--set {name}=…: no target has the choice {name!r}; known: {', '.join(sorted(known))}")


def _unmet(target: Target, fixed: Plan, learnt: Learnt, pinned: Drawn | None) -> Iterator[str]:
    """Pins that come to nothing, a clause each."""
    if pinned is not None:
        yield from pinned.record.unmet
    for name, kind in fixed.layouts.items():
        if argument_of(name) not in target.parameters:
            continue
        if name not in learnt.offered:
            yield f"no small case draws {name} with a strategy of kcheck, so that it cannot be made {kind}"
        elif pinned is not None and not pinned.record.unmet and name not in pinned.case.views:
            yield f"{name} is no tensor where the other pins hold"


def _others(first: Drawn, fixed: Plan) -> Iterator[Mapping[str, Pin]]:
    """Choices under which other tensors may be drawn: named options; sizes too where a layout is pinned."""
    if fixed.pins:
        yield {}
    choices = [choice for choice in first.record.choices.values() if choice.name not in fixed.pins]
    values = [(choice.name, value) for choice in choices for value in choice.values]
    values = [(name, value) for name, value in values if isinstance(value, str) or fixed.layouts]
    for name, value in sorted(values, key=lambda pin: not isinstance(pin[1], str))[:MOST_TRIES]:
        yield {name: value}


def _lacking(case: Case, learnt: Learnt) -> bool:
    """Whether an argument of the first case may be a tensor in others, and none of those met had it."""
    names = {argument_of(path) for path in learnt.offered}
    return any(
        name not in names and (value is None or name in case.views or value in ((), []))
        for name, value in case.args.items()
    )
