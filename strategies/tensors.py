"""Tensors of every role: a layout, a data type, a fill."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from kcheck import plan
from kcheck.case import Role, Tensor
from kcheck.dtypes import dtype_named
from kcheck.errors import SpecError
from kcheck.fill import Fill
from kcheck.layout import LayoutKind
from kcheck.plan import Drawing
from kcheck.strategies.dims import draw_option, sampled
from kcheck.strategies.direct import direct
from kcheck.strategies.kinds import ANY, Kinds, Site, possible
from kcheck.strategies.layouts import planned_layout

DTypes = Any  # a name, a torch.dtype, a sequence of these, or a strategy of them
INT32, INT64 = "int32", "int64"

SEEDS = 256  # seeds of a case; the ordinal of a tensor in it makes the rest of the difference
RANGE = 16  # integers lie in [-16, 16] by default: sums and products stay exact
_SEED = st.integers(0, SEEDS - 1)
# Outside of a run no record holds what is drawn once for each case.
_SHARED_SEED = st.shared(_SEED, key="kcheck.strategies.seed")
_ORDINALS = st.shared(st.builds(itertools.count), key="kcheck.strategies.ordinals")


@dataclass(frozen=True, slots=True)
class Values:
    """What a tensor's hashed values are to be; None lets the data type say.

    Attributes:
        low: Smallest integer.
        high: Largest integer.
        exponent: Floats lie in [-2**exponent, 2**exponent).
    """

    low: int | None = None
    high: int | None = None
    exponent: int = 0

    def fill(self, dtype: str, seed: int) -> Fill:
        """The fill for a data type."""
        kind = dtype_named(dtype)
        if kind.is_float:
            return Fill(seed=seed, exponent=self.exponent)
        low = max(kind.low, -RANGE if self.high is None else min(-RANGE, self.high)) if self.low is None else self.low
        high = min(kind.high, max(RANGE, low)) if self.high is None else self.high
        if not kind.low <= low <= high <= kind.high:
            raise SpecError(f"values from {low} to {high} do not fit {dtype} [{kind.low}, {kind.high}]")
        return Fill(seed=seed, low=low, high=high)


def tensors(
    shape: Sequence[int],
    dtype: DTypes = "float32",
    *,
    kinds: Kinds | Iterable[LayoutKind | str] = ANY,
    low: int | None = None,
    high: int | None = None,
    exponent: int = 0,
    fill: Fill | None = None,
) -> st.SearchStrategy[Tensor]:
    """Input tensors.

    One choice, for the layout, and one for all tensors of a case, the seed. Shrinks towards a contiguous layout and
    seed 0; two tensors of a case have different values even then.

    Args:
        shape: Sizes of the view.
        dtype: A name or a ``torch.dtype``; a sequence or a strategy of these is drawn from, simplest first.
        kinds: Layouts that may be drawn; see `layouts`.
        low: Smallest value of an integer tensor; -16 by default, or what the type has.
        high: Largest value of an integer tensor; 16 by default, or what the type has.
        exponent: Values of a float tensor lie in [-2**exponent, 2**exponent).
        fill: These values instead of seeded ones.

    Raises:
        SpecError: The values do not fit the data type, or there is no such layout kind.
    """
    return _tensors(tuple(shape), dtype, Kinds.of(kinds), Role.INPUT, Values(low, high, exponent), fill, None)


def indices(
    shape: Sequence[int],
    *,
    bound: int,
    min_value: int = 0,
    dtype: DTypes = (INT32, INT64),
    kinds: Kinds | Iterable[LayoutKind | str] = ANY,
) -> st.SearchStrategy[Tensor]:
    """Index tensors: integers in [`min_value`, `bound`) that address something.

    Choices and shrinking as for `tensors`.

    Args:
        shape: Sizes of the view.
        bound: Number of things addressed; a decoy outside the view lies in [0, bound) too.
        min_value: Smallest value, -1 for example.
        dtype: As for `tensors`.
        kinds: As for `tensors`.

    Raises:
        SpecError: There is nothing to address, or the values do not fit the data type.
    """
    if bound <= min_value:
        raise SpecError(f"indices: bound is {bound}; expected more than min_value, {min_value}")
    values = Values(min_value, bound - 1)
    return _tensors(tuple(shape), dtype, Kinds.of(kinds), Role.INDEX, values, None, bound)


def outputs(
    shape: Sequence[int], dtype: DTypes = "float32", *, kinds: Kinds | Iterable[LayoutKind | str] = ANY
) -> st.SearchStrategy[Tensor]:
    """Output tensors: every element is to be written. Never expanded.

    One choice, for the layout. Shrinks towards contiguous.

    Args:
        shape: Sizes of the view.
        dtype: As for `tensors`.
        kinds: As for `tensors`.
    """
    # Nobody sees the values of an output: a run starts it with poison.
    return _tensors(tuple(shape), dtype, _writable(kinds), Role.OUTPUT, Values(), Fill(), None)


def inouts(
    shape: Sequence[int],
    dtype: DTypes = "float32",
    *,
    kinds: Kinds | Iterable[LayoutKind | str] = ANY,
    low: int | None = None,
    high: int | None = None,
    exponent: int = 0,
    fill: Fill | None = None,
) -> st.SearchStrategy[Tensor]:
    """Tensors that are read and written; elements not written keep their value. Never expanded.

    Arguments, choices and shrinking as for `tensors`.
    """
    return _tensors(tuple(shape), dtype, _writable(kinds), Role.INOUT, Values(low, high, exponent), fill, None)


def _writable(kinds: Kinds | Iterable[LayoutKind | str]) -> Kinds:
    return Kinds.of(kinds).without(LayoutKind.EXPANDED)


@direct
def _tensors(
    draw: st.DrawFn,
    shape: tuple[int, ...],
    dtype: DTypes,
    kinds: Kinds,
    role: Role,
    values: Values,
    fill: Fill | None,
    bound: int | None,
) -> Tensor:
    record = plan.current()
    name = draw_dtype(draw, record, dtype)
    # Given values are given for every element, so no two may be one.
    given = fill is not None and fill.kind == "values"
    site = Site.of(shape, name, kinds, () if given else None)
    layout = planned_layout(draw, record, site)
    fill = values.fill(name, draw_seed(draw, record)) if fill is None else fill
    return note(record, Tensor(name, layout, fill, role, bound), site)


def note(record: Drawing, tensor: Tensor, site: Site) -> Tensor:
    """Enter a drawn tensor in the record, with the kinds that it could have had."""
    record.enter(tensor, possible(site))
    return tensor


def case_seed(draw: st.DrawFn, record: Drawing) -> int:
    """The seed of the case: one choice for all that ask, none in a sweep."""
    if record.plan.small:
        return 0
    if not record.current:
        return draw(_SHARED_SEED)
    if record.seed is None:
        record.seed = draw(_SEED)
    return record.seed


def draw_seed(draw: st.DrawFn, record: Drawing) -> int:
    """A seed that no other tensor of the case has."""
    ordinal = record.seeds if record.current else next(draw(_ORDINALS))
    record.seeds += 1
    return ordinal * SEEDS + case_seed(draw, record)


def explicit(
    draw: st.DrawFn,
    shape: tuple[int, ...],
    dtype: str,
    values: Sequence[int],
    *,
    kinds: Kinds,
    bound: int | None,
    may_be_equal: bool = False,
) -> Tensor:
    """An index tensor with given row-major values. It is expanded along its first dimension only, if all rows agree.

    Args:
        draw: Hypothesis's.
        shape: Sizes of the view.
        dtype: Name of the data type.
        values: One for each element.
        kinds: Layouts that may be drawn.
        bound: The values address [0, bound).
        may_be_equal: Under another plan the rows agree.
    """
    record = plan.current()
    row = tuple(values[: len(values) // shape[0]]) if shape[0] else ()
    equal = row * shape[0] == tuple(values)
    site = Site.of(shape, dtype, kinds, (0,) if equal else ())
    layout = planned_layout(draw, record, site)
    fill = Fill.of(row if layout.overlapping else values)
    could = Site.of(shape, dtype, kinds, (0,) if equal or may_be_equal else ())
    return note(record, Tensor(dtype, layout, fill, Role.INDEX, bound), could)


def draw_index_dtype(draw: st.DrawFn, dtype: Sequence[str] | str) -> str:
    """The data type of an index tensor: a named choice where there are several."""
    if isinstance(dtype, str):
        return dtype_named(dtype).name
    return draw_option(draw, "index_dtype", tuple(dtype_named(str(name)).name for name in dtype))


def draw_dtype(draw: st.DrawFn, record: Drawing, dtype: DTypes) -> str:
    """The name of a data type; drawn where there are several, the first one in a sweep."""
    if isinstance(dtype, st.SearchStrategy):
        dtype = draw(dtype)
    elif isinstance(dtype, (list, tuple)):
        names = tuple(str(one) for one in dtype)
        if not names:
            raise SpecError("dtype: there are no data types to draw from")
        dtype = names[0] if record.plan.small or len(names) == 1 else draw(sampled(names))
    return dtype_named(str(dtype)).name
