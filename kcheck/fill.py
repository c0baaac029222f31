"""How values are made: a hash of (seed, logical index), with the same bits on every device and torch version.

The logical index of an element is its row-major position in the view, expanded dimensions counted as size 1: values
do not move when the layout changes. `hashed` is the definition in pure Python; the worker computes the same numbers
with tensor arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from kcheck.dtypes import DType
from kcheck.errors import InvalidDocument

FILL_VERSION = 1
MASK = 0xFFFFFFFF
FillKind = Literal["hashed", "values", "constant"]
Number = int | float


def mix(x: int) -> int:
    """Scramble 32 bits (the public-domain "lowbias32" integer hash, https://nullprogram.com/blog/2018/07/31/)."""
    x &= MASK
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & MASK
    return x ^ (x >> 16)


def hashed(seed: int, index: int) -> int:
    """32 bits of element `index` under `seed`."""
    return mix(mix(index + 0x9E3779B9 * seed) ^ mix(seed))


@dataclass(frozen=True, slots=True)
class Fill:
    """The values of a view.

    Attributes:
        kind: ``hashed``: floats k·2**(exponent - digits) in [-2**exponent, 2**exponent), integers in [low, high];
            ``values``: the given ones, row-major; ``constant``: the single one in `values`.
        seed: Of the hash.
        low: Smallest integer.
        high: Largest integer; not below `low`, and at most 2**32 - 1 above it.
        exponent: Range of hashed floats.
        values: The given ones.
    """

    kind: FillKind = "hashed"
    seed: int = 0
    low: int = 0
    high: int = 1
    exponent: int = 0
    values: tuple[Number, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.kind not in get_args(FillKind):
            raise InvalidDocument("kind", f"is {self.kind!r}; expected one of {', '.join(get_args(FillKind))}")
        for name in ("seed", "low", "high", "exponent"):
            if type(getattr(self, name)) is not int:
                raise InvalidDocument(name, f"is {getattr(self, name)!r}; expected an integer")
        if self.low > self.high:
            raise InvalidDocument("low", f"is {self.low}, above high, {self.high}")
        if self.high - self.low > MASK:
            raise InvalidDocument("high", f"is {self.high}, more than {MASK} above low: a hash has 32 bits")
        if not 0 <= self.seed <= MASK:
            raise InvalidDocument("seed", f"is {self.seed}; expected an integer in [0, {MASK}]")
        if any(type(value) not in (int, float) for value in self.values):
            raise InvalidDocument("values", "expected numbers")
        if self.kind == "constant" and len(self.values) != 1:
            raise InvalidDocument("values", f"has {len(self.values)} entries; a constant fill has one")

    @staticmethod
    def of(values: Sequence[Number]) -> Fill:
        """These values, row-major."""
        return Fill("values", values=tuple(values))

    @staticmethod
    def constant(value: Number) -> Fill:
        """One value everywhere."""
        return Fill("constant", values=(value,))

    def check(self, dtype: DType, count: int) -> None:
        """Check that these values exist in a data type.

        Args:
            dtype: The view's data type.
            count: Distinct elements of the view.

        Raises:
            InvalidDocument: A value is out of range, or there are too few or too many.
        """
        if self.kind == "values" and len(self.values) != count:
            raise InvalidDocument("values", f"has {len(self.values)} entries for {count} elements")
        if dtype.is_float:
            self._check_float(dtype)
            return
        wanted = (self.low, self.high) if self.kind == "hashed" else self.values
        for value in wanted:
            if not dtype.low <= value <= dtype.high or int(value) != value:
                raise InvalidDocument("values", f"{value!r} does not fit {dtype.name} [{dtype.low}, {dtype.high}]")

    def _check_float(self, dtype: DType) -> None:
        least, greatest = dtype.exponents
        if self.kind == "hashed" and not least <= self.exponent <= greatest:
            raise InvalidDocument(
                "exponent", f"is {self.exponent}; {dtype.name} holds these values exactly from {least} to {greatest}"
            )
        for value in self.values:
            if type(value) is int and abs(value) > 2**1023:
                raise InvalidDocument("values", f"an integer of {value.bit_length()} bits is no {dtype.name}")

    def value(self, dtype: DType, index: int) -> Number:
        """The value of one element, exact.

        Args:
            dtype: The view's data type.
            index: Row-major position in the view, expanded dimensions counted as size 1.
        """
        if self.kind == "constant":
            return self.values[0]
        if self.kind == "values":
            return self.values[index]
        bits = hashed(self.seed, index)
        if dtype.is_float:
            k = (bits >> (31 - dtype.digits)) - (1 << dtype.digits)
            return math.ldexp(k, self.exponent - dtype.digits)
        return self.low + bits % (self.high - self.low + 1)

    def to_json(self) -> dict[str, Any]:
        """Plain data, only what the kind uses."""
        if self.kind == "hashed":
            return {
                "kind": self.kind,
                "version": FILL_VERSION,
                "seed": self.seed,
                "low": self.low,
                "high": self.high,
            } | ({"exponent": self.exponent} if self.exponent else {})
        return {"kind": self.kind, "values": [_number_to_json(value) for value in self.values]}


def _number_to_json(value: Number) -> Number | str:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def number_from_json(value: Any, where: str) -> Number:
    """Read a number; JSON has no NaN and no infinities, so these are strings.

    Raises:
        InvalidDocument: It is not a number.
    """
    if value in ("nan", "inf", "-inf"):
        return float(value)
    if type(value) not in (int, float):
        raise InvalidDocument(where, f"is {value!r}; expected a number")
    return value  # type: ignore[no-any-return]
