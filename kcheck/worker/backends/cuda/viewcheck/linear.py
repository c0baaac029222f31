"""Pointers to tiles as linear forms: their hull without a look at any lane.

``base + pid * TILE + arange`` is ``c + Σ m_a · i_a`` over the axes of a tile; a mask ``lane < n`` cuts one short. So
the first and the last offset of the lanes that make an access are a few operations on scalars, with no branch: a kernel
is slowed down more by the registers that a check holds than by its arithmetic.

Integers of 32 bits that wrap on the way do not matter as long as the sum of them fits: what is added and multiplied
modulo 2**32 is then what is added and multiplied here, modulo 2**64.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kcheck.worker.backends.cuda.viewcheck.bounds import Bounds, Interval, Unbounded, kind_of
from kcheck.worker.backends.cuda.viewcheck.code import Code
from kcheck.worker.backends.cuda.viewcheck.ttir import Op, Value

_AXIS = re.compile(r"\{axis = (\d+) : i32\}")
_RANGE = re.compile(r"end = (-?\d+) : i32, start = (-?\d+) : i32")
_COMPARISON = re.compile(r"arith\.cmpi (\w+),")
_SWAPPED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}


@dataclass(frozen=True, slots=True)
class Form:
    """``base + Σ factor · index`` over the axes of a tile.

    Attributes:
        base: Bounds of what does not vary along an axis, or not by a rule that is known.
        factors: int64 by axis; a number where it is known now.
    """

    base: Interval
    factors: dict[int, str | int]


@dataclass(slots=True)
class Linear:
    """The linear form of one access.

    Attributes:
        code: Where the hull is written.
        bounds: Knows scalars, and what is no linear form.
        shape: Of the tile.
        conditions: int1 values that must all be true, or the hull is wrong.
    """

    code: Code
    bounds: Bounds
    shape: tuple[int, ...]
    conditions: list[str] = field(default_factory=list)
    _first: dict[int, str] = field(default_factory=dict)
    _last: dict[int, str] = field(default_factory=dict)

    def hull(self, pointer: Value, mask: Value | None) -> tuple[Interval, str] | None:
        """First and last offset in bytes of the lanes that make an access, and whether there are none, as int1.

        Args:
            pointer: To a tile.
            mask: Of the lanes.

        Returns:
            None if the pointer is no linear form.
        """
        try:
            for axis, size in enumerate(self.shape):
                self._first[axis] = self.code.constant(0)
                self._last[axis] = self.code.constant(size - 1)
            if mask is not None:
                self._cut(mask)
            hull = self._hull(self._pointer(pointer))
        except Unbounded:
            return None
        nothing = self.code.constant(0, "i1")
        for axis in range(len(self.shape)):
            empty = self.code.compare("sgt", self._first[axis], self._last[axis])
            nothing = self.code.binary("ori", nothing, empty, "i1")
        self.conditions += self.bounds.conditions
        self.conditions.append(self.code.compare("sle", hull.low, hull.high))
        return hull, nothing

    def _hull(self, form: Form) -> Interval:
        low, high = form.base.low, form.base.high
        for axis, factor in form.factors.items():
            name = self.code.constant(factor) if isinstance(factor, int) else factor
            one, other = (self.code.binary("muli", name, end) for end in (self._first[axis], self._last[axis]))
            if isinstance(factor, int):
                least, most = (one, other) if factor >= 0 else (other, one)
            else:
                least, most = self.code.binary("minsi", one, other), self.code.binary("maxsi", one, other)
            low, high = self.code.binary("addi", low, least), self.code.binary("addi", high, most)
        return Interval(low, high)

    def _pointer(self, value: Value) -> Form:
        if value in self.bounds.function.parameters:
            return self._constant(0)
        op = value.maker
        if op is None:
            start, moved = self.bounds.carried(value)
            return self._sum(self._pointer(start), Form(moved, {}))
        if op.name == "tt.addptr":
            return self._sum(
                self._pointer(op.operands[0]), self._scaled(self._integer(op.operands[1]), self.bounds.size_of(op))
            )
        return self._through(op, self._pointer)

    def _through(self, op: Op, follow: Callable[[Value], Form]) -> Form:
        """An operation that gives its operand another shape.

        Raises:
            Unbounded: It does something else.
        """
        if op.name in ("tt.splat", "tt.broadcast", "tt.bitcast"):
            return follow(op.operands[0])
        if op.name == "tt.expand_dims":
            found = _AXIS.search(op.body)
            if found is not None:
                new = int(found[1])
                inner = follow(op.operands[0])
                return Form(inner.base, {axis + (axis >= new): factor for axis, factor in inner.factors.items()})
        raise Unbounded

    def _integer(self, value: Value) -> Form:
        """The form of an integer, all of whose lanes that count fit into its type."""
        form, kind = self._raw(value)
        if form.factors and "i64" not in kind:
            self._fits(self._hull(form))
        return form

    def _fits(self, hull: Interval) -> None:
        self.conditions.append(self.code.compare("sge", hull.low, self.code.constant(-(1 << 31))))
        self.conditions.append(self.code.compare("slt", hull.high, self.code.constant(1 << 31)))

    def _raw(self, value: Value) -> tuple[Form, str]:
        """The form of an integer modulo its type, and the type."""
        op = value.maker
        kind = kind_of(op, value) if op is not None else ""
        if op is None or not kind.startswith("tensor"):
            return Form(self.bounds.integer(value), {}), kind
        if not kind.endswith(("i32>", "i64>")):
            raise Unbounded
        if op.name == "tt.make_range":
            found = _RANGE.search(op.body)
            if found is None:
                raise Unbounded
            return self._sum(self._constant(int(found[2])), Form(self._constant(0).base, {0: 1})), kind
        if op.name in ("arith.addi", "arith.subi"):
            left, right = self._raw(op.operands[0])[0], self._raw(op.operands[1])[0]
            return self._sum(left, right if op.name == "arith.addi" else self._scaled(right, -1)), kind
        if op.name == "arith.muli":
            return self._product(self._raw(op.operands[0])[0], self._raw(op.operands[1])[0]), kind
        if op.name == "arith.extsi":
            return self._integer(op.operands[0]), kind
        try:
            return self._through(op, lambda inner: self._raw(inner)[0]), kind
        except Unbounded:
            return Form(self.bounds.integer(value), {}), kind

    def _constant(self, number: int) -> Form:
        name = self.code.constant(number)
        return Form(Interval(name, name), {})

    def _sum(self, left: Form, right: Form) -> Form:
        factors = dict(left.factors)
        for axis, factor in right.factors.items():
            factors[axis] = self._added(factors[axis], factor) if axis in factors else factor
        return Form(self.bounds.sum(left.base, right.base), factors)

    def _added(self, one: str | int, other: str | int) -> str | int:
        if isinstance(one, int) and isinstance(other, int):
            return one + other
        return self.code.binary("addi", self._name(one), self._name(other))

    def _name(self, factor: str | int) -> str:
        return self.code.constant(factor) if isinstance(factor, int) else factor

    def _scaled(self, form: Form, number: int) -> Form:
        """A form times a number."""
        if number == 1:
            return form
        name = self.code.constant(number)
        factors = {
            axis: factor * number if isinstance(factor, int) else self.code.binary("muli", factor, name)
            for axis, factor in form.factors.items()
        }
        return Form(self.bounds.scaled(form.base, name), factors)

    def _product(self, left: Form, right: Form) -> Form:
        if left.factors:
            left, right = right, left
        if left.factors or not left.base.exact:
            raise Unbounded
        number = left.base.low
        known = self.code.known(number)
        if known is not None:
            return self._scaled(right, known)
        factors = {axis: self.code.binary("muli", self._name(f), number) for axis, f in right.factors.items()}
        return Form(self.bounds.scaled(right.base, number), dict(factors))

    def _cut(self, mask: Value) -> None:
        """Shorten axes by a mask; what is not understood of it shortens nothing."""
        op = mask.maker
        if op is None:
            return
        if op.name == "arith.andi":
            self._cut(op.operands[0])
            self._cut(op.operands[1])
        elif op.name == "tt.broadcast":
            self._cut(op.operands[0])
        elif op.name == "tt.expand_dims":
            self._cut_expanded(op)
        elif op.name == "arith.cmpi":
            self._compare(op, 0)

    def _cut_expanded(self, op: Op) -> None:
        """A comparison of vectors, made a part of a tile: ``(rows < n)[:, None]``."""
        inner, shift = op, 0
        while inner.name == "tt.expand_dims":
            found = _AXIS.search(inner.body)
            if found is None or inner.operands[0].maker is None:
                return
            shift += int(found[1]) == 0
            inner = inner.operands[0].maker
        if inner.name == "arith.cmpi":
            self._compare(inner, shift)

    def _compare(self, op: Op, shift: int) -> None:
        """Shorten an axis by ``factor · index + … < bound``.

        Args:
            op: A comparison.
            shift: How many axes of the tile stand before the first of what is compared.
        """
        found = _COMPARISON.match(op.body)
        how = found[1] if found else ""
        before = len(self.conditions)
        try:
            left, right = (self._integer(operand) for operand in op.operands[:2])
        except Unbounded:
            del self.conditions[before:]
            return
        if right.factors:
            left, right, how = right, left, _SWAPPED.get(how, "")
        if how not in _SWAPPED or right.factors or len(left.factors) != 1:
            return
        ((axis, factor),) = left.factors.items()
        if isinstance(factor, int) and factor > 0 and axis + shift < len(self.shape):
            self._shorten(axis + shift, factor, left.base, right.base, how)

    def _shorten(self, axis: int, factor: int, base: Interval, bound: Interval, how: str) -> None:
        code = self.code
        one = code.constant(1)
        if how in ("slt", "sle"):  # index <= (bound - base) / factor, the largest that may be
            room = code.binary("subi", bound.high, base.low)
            room = code.binary("subi", room, one) if how == "slt" else room
            none = code.compare("slt", room, code.constant(0))
            most = room if factor == 1 else code.binary("divsi", room, code.constant(factor))
            most = code.value(f"arith.select {none}, {code.constant(-1)}, {most} : i64")
            self._last[axis] = code.binary("minsi", self._last[axis], most)
        elif factor == 1:
            least = code.binary("subi", bound.low, base.high)
            least = code.binary("addi", least, one) if how == "sgt" else least
            self._first[axis] = code.binary("maxsi", self._first[axis], least)
