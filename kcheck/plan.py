"""A plan pins named choices and layouts while cases are drawn; kcheck's strategies read it.

The sweep pins one thing at a time; ``--set num_requests=64 --layout block_table=narrowed`` pins for a whole run. A
context variable carries the plan into an opaque ``cases()`` strategy.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType

from kcheck.case import Tensor
from kcheck.layout import LayoutKind

Pin = int | str
Place = tuple[tuple[int, ...], int]
"""Where a tensor is drawn: the lines of the user's code that lead there, and how many were drawn there before."""
Slots = Mapping[Place, str]
"""Place of a tensor draw → the argument it becomes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is pinned.

    Attributes:
        pins: Named choices (dimensions and options) and their values.
        layouts: Arguments and the kind their layout must have.
        small: What is not pinned takes its typical small value (sizes of 2 and more, so that strides matter) and a
            contiguous layout, instead of being drawn.
        most: Largest size that a dimension is drawn with (its smallest where that is larger); 0: no limit.
        seed: Chooses the few values that a run draws of what costs a compile each.
    """

    pins: Mapping[str, Pin] = field(default_factory=dict)
    layouts: Mapping[str, LayoutKind] = field(default_factory=dict)
    small: bool = False
    most: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """A named choice that a strategy offered.

    Attributes:
        name: Its name, ``num_requests`` for example.
        values: What the sweep should try: boundary values of a dimension, or all options.
    """

    name: str
    values: tuple[Pin, ...]


@dataclass(slots=True)
class Drawing:
    """One case being drawn under a plan; a record of what the strategies offered.

    Attributes:
        plan: What is pinned.
        slots: Which draw becomes which argument, as learnt from earlier cases. By place, not by ordinal: a tensor that
            is drawn under a condition would shift those behind it.
        choices: Named choices met, in order.
        tensors: Tensors drawn, in order, each with the layout kinds its strategy can draw.
        places: Where each of them was drawn.
        unmet: Pins that a strategy could not honour, a sentence each.
        current: It is the record of the whole case; False for one made on the spot, outside of a run.
        seed: The seed of the case, once a strategy has drawn it.
        seeds: Seeds made from it so far.
        outside: Code that asks for the case; what called it is no place in it.
    """

    plan: Plan
    slots: Slots = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)
    tensors: list[tuple[Tensor, tuple[LayoutKind, ...]]] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    current: bool = False
    seed: int | None = None
    seeds: int = 0
    outside: CodeType | None = None
    _drawn: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def enter(self, tensor: Tensor, kinds: tuple[LayoutKind, ...]) -> None:
        """Note the tensor that was drawn.

        Args:
            tensor: The tensor.
            kinds: Kinds that its layout could have had.
        """
        place = self._place_of_next()
        self._drawn[place[0]] += 1
        self.places.append(place)
        self.tensors.append((tensor, kinds))

    def name_of_next(self, ahead: int = 0) -> str:
        """Argument that the tensor drawn next becomes, as far as known; `ahead` looks at a later one."""
        return self.slots.get(self._place_of_next(ahead), "") if self.slots else ""

    def layout_of_next(self, ahead: int = 0) -> LayoutKind | None:
        """Kind pinned for the tensor drawn next, None if it is free; `ahead` looks at a later one."""
        return self.plan.layouts.get(self.name_of_next(ahead)) if self.plan.layouts else None

    def learn_slots(self, drawn: Mapping[str, Tensor]) -> dict[Place, str]:
        """Argument of each tensor draw of this case, the first one of several, for draws that became one.

        Args:
            drawn: `Case.drawn` of the case that came out.
        """
        names = {id(tensor): name for name, tensor in reversed(list(drawn.items()))}
        named = zip(self.places, (names.get(id(tensor)) for tensor, _ in self.tensors), strict=True)
        return {place: name for place, name in named if name is not None}

    def is_misled(self, drawn: Mapping[str, Tensor]) -> bool:
        """Whether a pinned argument of this case was drawn where nobody knew that it would become this one.

        Args:
            drawn: As for `learn_slots`.
        """
        if not self.plan.layouts:
            return False
        became = self.learn_slots(drawn)
        return any(name in self.plan.layouts and self.slots.get(place) != name for place, name in became.items())

    def _place_of_next(self, ahead: int = 0) -> Place:
        lines = _lines(self.outside)
        return lines, self._drawn[lines] + ahead


def _lines(outside: CodeType | None) -> tuple[int, ...]:
    """The frames of user code, innermost first, that lead here from code that asks for a case."""
    found: list[int] = []
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not outside:
        if not frame.f_globals.get("__name__", "").startswith(_BETWEEN):
            found += (id(frame.f_code), frame.f_lasti)
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


# Modules whose frames say nothing about which tensor is drawn: they differ where Hypothesis replays a case.
_BETWEEN = ("hypothesis.", "kcheck.strategies", "kcheck.plan", "contextlib")
_current: ContextVar[Drawing | None] = ContextVar("kcheck_drawing", default=None)


def current() -> Drawing:
    """The case being drawn, or a fresh record with an empty plan outside a run."""
    return _current.get() or Drawing(Plan())


@contextmanager
def drawing(record: Drawing) -> Iterator[Drawing]:
    """Make a record the current one."""
    record.current = True
    record.outside = sys._getframe(2).f_code  # past `contextmanager`
    token = _current.set(record)
    try:
        yield record
    finally:
        _current.reset(token)
