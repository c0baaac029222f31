"""A plan pins named choices and layouts while cases are drawn; kcheck's strategies read it.

The sweep pins one thing at a time; ``--set num_requests=64 --layout block_table=narrowed`` pins for a whole run. A
context variable carries the plan into an opaque ``cases()`` strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from kcheck.case import Tensor
from kcheck.layout import LayoutKind

Pin = int | str


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
        slots: Ordinal of a tensor draw → the argument it becomes, as learnt from an earlier case.
        choices: Named choices met, in order.
        tensors: Tensors drawn, in order, each with the layout kinds its strategy can draw.
        unmet: Pins that a strategy could not honour, a sentence each.
        current: It is the record of the whole case; False for one made on the spot, outside of a run.
        seed: The seed of the case, once a strategy has drawn it.
        seeds: Seeds made from it so far.
    """

    plan: Plan
    slots: Sequence[str] = ()
    choices: dict[str, Choice] = field(default_factory=dict)
    tensors: list[tuple[Tensor, tuple[LayoutKind, ...]]] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    current: bool = False
    seed: int | None = None
    seeds: int = 0

    def name_of_next(self, ahead: int = 0) -> str:
        """Argument that the tensor drawn next becomes, as far as known; `ahead` looks at a later one."""
        ordinal = len(self.tensors) + ahead
        return self.slots[ordinal] if ordinal < len(self.slots) else ""

    def layout_of_next(self, ahead: int = 0) -> LayoutKind | None:
        """Kind pinned for the tensor drawn next, None if it is free; `ahead` looks at a later one."""
        return self.plan.layouts.get(self.name_of_next(ahead))

    def learn_slots(self, drawn: Mapping[str, Tensor]) -> tuple[str, ...]:
        """Argument of each tensor draw of this case, the first one of several; ``""`` for one that became none.

        Args:
            drawn: `Case.drawn` of the case that came out.
        """
        names = {id(tensor): name for name, tensor in reversed(list(drawn.items()))}
        return tuple(names.get(id(tensor), "") for tensor, _ in self.tensors)


_current: ContextVar[Drawing | None] = ContextVar("kcheck_drawing", default=None)


def current() -> Drawing:
    """The case being drawn, or a fresh record with an empty plan outside a run."""
    return _current.get() or Drawing(Plan())


@contextmanager
def drawing(record: Drawing) -> Iterator[Drawing]:
    """Make a record the current one."""
    record.current = True
    token = _current.set(record)
    try:
        yield record
    finally:
        _current.reset(token)
