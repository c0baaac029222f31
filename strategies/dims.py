"""Named choices: sizes with their boundary values, and options."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from hypothesis import strategies as st

from kcheck import plan
from kcheck.errors import SpecError
from kcheck.fill import hashed
from kcheck.plan import Choice, Drawing, Pin
from kcheck.strategies.direct import direct

T = TypeVar("T", bound=Hashable)

MANY = 512  # values of a wide range that are not boundaries: more would only make the table long
CHEAP = 17  # up to here sizes are drawn more often: nearly all bugs show there, at a fraction of the cost
FAVOUR_CHEAP = 3
NEIGHBOURS = 33  # boundary values above it are swept without their neighbours
POOL = 8  # values of what costs a compile each, in one run
SMALL = (2, 3, 4, 5)  # sizes of an unpinned dimension in a sweep: different, so that no two strides agree by chance


def dims(
    name: str, *, min_value: int = 1, max_value: int, boundaries: Iterable[int] = (), compiled: bool = False
) -> st.SearchStrategy[int]:
    """A size with a name, so that a plan can pin it (``--set name=value``).

    Most draws are boundary values: the ends, 0, 1, 2, the powers of two and their neighbours, and yours.
    One choice. Shrinks towards the smallest boundary value, which is `min_value`.

    Args:
        name: What reports and ``--set`` call it.
        min_value: Smallest size.
        max_value: Largest size.
        boundaries: Further values to try often, such as a block size and its neighbours.
        compiled: The size becomes a constexpr, so that each value costs a compile: a run draws it from 8 of the
            boundary values, another run (another seed) from others; the ends are always among them.

    Raises:
        SpecError: The range is empty.
    """
    return _dims(name, min_value, max_value, tuple(boundaries), compiled)


def options(name: str, values: Sequence[T], *, compiled: bool = False) -> st.SearchStrategy[T]:
    """One of several values, with a name, so that a plan can pin it (``--set name=value``).

    One choice, none where there is a single value. Shrinks towards the first value.

    Args:
        name: What reports and ``--set`` call it.
        values: Simplest first. A pin names one by its text (``str(value)``).
        compiled: Each value costs a compile: a run draws from 8 of them, the first and the last always among them.

    Raises:
        SpecError: There are no values.
    """
    return _options(name, tuple(values), compiled, types_of(values))


@lru_cache(maxsize=1024)
def boundary_values(min_value: int, max_value: int, further: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Boundary values in a range, ascending."""
    powers = (2**i for i in range(max_value.bit_length() + 1))
    near = {power + by for power in powers for by in (-1, 0, 1)}
    wanted = {min_value, max_value, 0, 1, 2, *near, *further}
    return tuple(sorted(value for value in wanted if min_value <= value <= max_value))


@lru_cache(maxsize=1024)
def _swept(min_value: int, max_value: int, further: tuple[int, ...]) -> tuple[int, ...]:
    """What a sweep tries: the boundary values, of the large ones only powers of two, the end and yours."""
    return tuple(
        value
        for value in boundary_values(min_value, max_value, further)
        if value <= NEIGHBOURS or value.bit_count() == 1 or value == max_value or value in further
    )


@lru_cache(maxsize=1024)
def _table(min_value: int, max_value: int, further: tuple[int, ...]) -> st.SearchStrategy[int]:
    edges = boundary_values(min_value, max_value, further)
    thinned = range(min_value, max_value + 1, max(1, (max_value - min_value) // MANY))
    others = tuple(value for value in thinned if value not in edges)
    # The first copy of the boundary values comes first: what shrinks ends there, ascending.
    return st.sampled_from(edges * max(1, 2 * len(others) // len(edges)) + others)


@lru_cache(maxsize=1024)
def _dims(
    name: str, min_value: int, max_value: int, further: tuple[int, ...], compiled: bool
) -> st.SearchStrategy[int]:
    if not min_value <= max_value:
        raise SpecError(f"dims({name!r}): min_value is {min_value}, above max_value, {max_value}")
    return _drawn_dim(name, min_value, max_value, further, compiled)


@direct
def _drawn_dim(
    draw: st.DrawFn, name: str, min_value: int, max_value: int, further: tuple[int, ...], compiled: bool
) -> int:
    return draw_dim(draw, name, min_value, max_value, further, compiled=compiled)


def draw_dim(
    draw: st.DrawFn,
    name: str,
    min_value: int,
    max_value: int,
    further: tuple[int, ...] = (),
    *,
    compiled: bool = False,
) -> int:
    """What `dims` draws, without a strategy around it: in a composite that saves a tenth of a millisecond."""
    record = plan.current()
    ordinal = list(record.choices).index(name) if name in record.choices else len(record.choices)
    edges = boundary_values(min_value, max_value, further) if compiled else ()
    few = pool(edges, record.plan.seed, types_of(edges))
    pinned = offer(record, name, few or _swept(min_value, max_value, further))
    if pinned is not None:
        if isinstance(pinned, int) and min_value <= pinned <= max_value:
            return pinned
        unmet(record, f"{name}={pinned} is outside {min_value} … {max_value}")
        return min_value
    if record.plan.small:
        return min(max(SMALL[ordinal % len(SMALL)], min_value), max_value)
    if record.plan.most:
        max_value = max(min_value, min(max_value, record.plan.most))
    if min_value == max_value:
        return min_value
    if compiled:
        chosen: int = draw(sampled(tuple(value for value in few if value <= max_value)))
        return chosen
    return draw(_table(min_value, max_value, further))


@lru_cache(maxsize=1024)
def _options(name: str, values: tuple[T, ...], compiled: bool, types: tuple[type, ...]) -> st.SearchStrategy[T]:
    if not values:
        raise SpecError(f"options({name!r}): there are no values")
    return _drawn_option(name, values, compiled)


@direct
def _drawn_option(draw: st.DrawFn, name: str, values: tuple[T, ...], compiled: bool) -> T:
    record = plan.current()
    if compiled and name not in record.plan.pins:
        values = pool(values, record.plan.seed, types_of(values))
    return draw_option(draw, name, values)


@lru_cache(maxsize=1024)
def pool(values: tuple[T, ...], seed: int, types: tuple[type, ...]) -> tuple[T, ...]:
    """The few of many values that a run with this seed draws: the ends, and others by chance; in their order."""
    if len(values) <= POOL:
        return values
    inner = sorted(range(1, len(values) - 1), key=lambda place: hashed(seed, place))[: POOL - 2]
    return tuple(values[place] for place in sorted((0, *inner, len(values) - 1)))


def draw_option(draw: st.DrawFn, name: str, values: tuple[T, ...], selector: int | None = None) -> T:
    """What `options` draws, without a strategy around it.

    Args:
        draw: Hypothesis's.
        name: Name of the choice.
        values: What there is to choose from.
        selector: Decides, modulo the number of values, instead of another choice of Hypothesis's.
    """
    record = plan.current()
    pinned = offer(record, name, tuple(map(_label, values)))
    if pinned is not None:
        for value in values:
            if str(value) == str(pinned):
                return value
        unmet(record, f"{name}={pinned} is not one of {', '.join(map(str, values))}")
        return values[0]
    if record.plan.small or len(values) == 1:
        return values[0]
    return draw(sampled(values)) if selector is None else values[selector % len(values)]


def sampled(values: tuple[T, ...]) -> st.SearchStrategy[T]:
    """`sampled_from`, built once for each table."""
    return _sampled(values, types_of(values))


@lru_cache(maxsize=1024)
def _sampled(values: tuple[T, ...], types: tuple[type, ...]) -> st.SearchStrategy[T]:
    return st.sampled_from(values)


def types_of(values: Sequence[object]) -> tuple[type, ...]:
    """Part of a cache's key: 1, 1.0 and True are equal, and must not be taken for each other."""
    return tuple(map(type, values))


def _label(value: object) -> Pin:
    return value if isinstance(value, str) or type(value) is int else str(value)


def offer(record: Drawing, name: str, values: tuple[Pin, ...]) -> Pin | None:
    """Note a named choice in the record; gives the value it is pinned to, None where it is free."""
    record.choices[name] = Choice(name, values)
    return record.plan.pins.get(name)


def unmet(record: Drawing, sentence: str) -> None:
    """Note a pin that cannot be honoured, once."""
    if sentence not in record.unmet:
        record.unmet.append(sentence)
