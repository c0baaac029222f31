"""Bounds of an access, as IR of scalars: where they lie inside a dense view, no lane needs to be looked at.

A pointer is followed back to the kernel's parameter it comes from; what is added on the way is bounded by scalars that
are computed beside the kernel's own. Where a step is not understood, or may have wrapped, there are no bounds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kcheck.worker.backends.cuda.viewcheck.code import Code
from kcheck.worker.backends.cuda.viewcheck.ttir import Function, Op, Value

_THROUGH = frozenset(
    {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.bitcast", "tt.unsplat"}
)
_INTEGER = re.compile(r"(?:tensor<(?:\d+x)+)?i(\d+)>?")
_POINTEE = re.compile(r"!tt\.ptr<((?:!tt\.ptr<.*?>|[^<>,]+))")
_RANGE = re.compile(r"end = (-?\d+) : i32, start = (-?\d+) : i32")
_SPLAT = re.compile(r"arith\.constant (?:dense<(-?\d+|true|false)>|(-?\d+|true|false))(?: :|$)")
_LARGEST = 1 << 56  # of an int64 on the way: what is made of two of them does not wrap


class Unbounded(Exception):
    """A step is not understood: there are no bounds."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds: names of int64 values."""

    low: str
    high: str

    @property
    def exact(self) -> bool:
        """Both are the same."""
        return self.low == self.high


Loops = dict[Value, tuple[Op, int]]


def owners(function: Function) -> Loops:
    """Loops by the parameters of their bodies, with the parameter's position."""
    return {value: (op, number) for op in function.ops for number, value in enumerate(op.arguments)}


@dataclass(slots=True)
class Bounds:
    """The bounds of one access.

    Attributes:
        code: Where they are written.
        function: The kernel.
        owners: From `owners`.
        sizes: Bytes of an element by type.
        hoisted: A loop before which they are written; they hold for all of its turns.
        conditions: int1 values that must all be true, or the bounds are wrong.
    """

    code: Code
    function: Function
    owners: Loops
    sizes: dict[str, int]
    hoisted: Op | None = None
    conditions: list[str] = field(default_factory=list)
    _known: dict[tuple[Value, Op | None], Interval] = field(default_factory=dict)

    def of_pointer(self, value: Value) -> Interval | None:
        """Bounds of a pointer, in bytes from the parameter that it comes from; None if there are none."""
        try:
            return self._pointer(value)
        except Unbounded:
            return None

    def _pointer(self, value: Value) -> Interval:
        if value in self.function.parameters:
            zero = self.code.constant(0)
            return Interval(zero, zero)
        op = value.maker
        if op is None:
            start, moved = self.carried(value)
            return self.sum(self._pointer(start), moved)
        if op.name == "tt.addptr":
            return self.sum(self._pointer(op.operands[0]), self._bytes(op, None))
        if op.name in _THROUGH:
            return self._pointer(op.operands[0])
        raise Unbounded

    def integer(self, value: Value) -> Interval:
        """Bounds of an integer.

        Raises:
            Unbounded: There are none.
        """
        return self._integer(value, None)

    def size_of(self, op: Op) -> int:
        """Bytes of the elements that an ``addptr`` counts.

        Raises:
            Unbounded: It is not known.
        """
        found = _POINTEE.search(op.body)
        if found is None or found[1] not in self.sizes:
            raise Unbounded
        return self.sizes[found[1]]

    def _bytes(self, op: Op, loop: Op | None) -> Interval:
        """What an ``addptr`` adds."""
        size = self.size_of(op)
        moved = self._integer(op.operands[1], loop)
        return moved if size == 1 else self.scaled(moved, self.code.constant(size))

    def carried(self, value: Value) -> tuple[Value, Interval]:
        """A pointer that a loop moves by the same each time: what it began with, and how far it was moved, in bytes.

        Raises:
            Unbounded: It is none.
        """
        loop, position = self.owners.get(value, (None, 0))
        if loop is None or loop.name != "scf.for" or position == 0 or len(loop.ends) != 1:
            raise Unbounded
        end: Value = loop.ends[0].operands[position - 1]
        zero = self.code.constant(0)
        step = Interval(zero, zero)
        while end is not value:
            op = end.maker
            if op is None or op.name not in ("tt.addptr", *_THROUGH):
                raise Unbounded
            if op.name == "tt.addptr":
                step = self.sum(step, self._bytes(op, loop))
            end = op.operands[0]
        moved = self._scaled_by_count(step, self._turn(loop))
        if loop is self.hoisted:
            moved = self._either(moved, Interval(zero, zero))
        return loop.initial[position - 1], moved

    def _turn(self, loop: Op) -> str:
        """How often the body of a loop has run before; of the hoisted loop, before its last turn."""
        first, end, step = (self._given_or_made(operand) for operand in loop.operands[:3])
        if loop is self.hoisted:
            last = self.code.binary("subi", end, self.code.constant(1))
        else:
            last = self._scalar(loop.arguments[0].text, self._counter_kind(loop)).low
        passed = self.code.binary("maxsi", self.code.binary("subi", last, first), self.code.constant(0))
        return self.code.binary("divsi", passed, self.code.binary("maxsi", step, self.code.constant(1)))

    def _given_or_made(self, value: Value) -> str:
        """An exact integer."""
        found = self._integer(value, None)
        if not found.exact:
            raise Unbounded
        return found.low

    @staticmethod
    def _counter_kind(loop: Op) -> str:
        found = re.search(r" : (i\d+) \{$", loop.body)
        if found is None or "unsigned" in loop.body.split("=")[0]:
            raise Unbounded
        return found[1]

    def _integer(self, value: Value, loop: Op | None) -> Interval:
        """Bounds of an integer; within `loop` only of what does not change there."""
        known = self._known.get((value, loop))
        if known is None:
            known = self._known[value, loop] = self._work_out(value, loop)
        return known

    def _work_out(self, value: Value, loop: Op | None) -> Interval:
        op = value.maker
        if op is None and self.hoisted is not None and self.hoisted is not loop and value is self.hoisted.arguments[0]:
            return self._counted(self.hoisted)
        changes = any(around is not None and self._changes(value, around) for around in (loop, self.hoisted))
        if op is None:
            if changes:
                raise Unbounded
            return self._given(value)
        kind = kind_of(op, value)
        constant = _SPLAT.match(op.body) if op.name == "arith.constant" else None
        if constant:
            text = constant[1] or constant[2]
            number = self.code.constant(int(text == "true") if text in ("true", "false") else int(text))
            return Interval(number, number)
        if not kind.startswith("tensor") and not changes:
            return self._scalar(value.text, kind)
        return self._made(op, kind, loop)

    def _counted(self, loop: Op) -> Interval:
        """All values of a loop's counter."""
        first, end = (self._given_or_made(operand) for operand in loop.operands[:2])
        return Interval(first, self.code.binary("subi", end, self.code.constant(1)))

    def _changes(self, value: Value, loop: Op) -> bool:
        if value.maker is not None:
            return value.maker is loop or value.maker.inside(loop)
        owner = self.owners.get(value)
        return owner is not None and (owner[0] is loop or owner[0].inside(loop))

    def _given(self, value: Value) -> Interval:
        """A parameter: of the kernel, or of a loop's body."""
        if value in self.function.parameters:
            return self._scalar(value.text, self.function.types[self.function.parameters.index(value)])
        loop, position = self.owners.get(value, (None, 0))
        if loop is None or loop.name != "scf.for":
            raise Unbounded
        if position == 0:
            return self._scalar(value.text, self._counter_kind(loop))
        kinds = re.search(r"-> \((.*)\) +: i\d+ \{$", loop.body)
        kind = kinds[1].split(", ")[position - 1] if kinds and kinds[1].count(", ") == len(loop.initial) - 1 else ""
        return self._scalar(value.text, kind)

    def _scalar(self, text: str, kind: str) -> Interval:
        if kind == "i64":
            return self._within(Interval(text, text), _LARGEST)
        if kind not in ("i32", "i16", "i8"):
            raise Unbounded
        wide = self.code.value(f"arith.extsi {text} : {kind} to i64")
        return Interval(wide, wide)

    def _made(self, op: Op, kind: str, loop: Op | None) -> Interval:
        """What an operation gives."""
        if op.name == "tt.make_range":
            found = _RANGE.search(op.body)
            if found is None:
                raise Unbounded
            return Interval(self.code.constant(int(found[2])), self.code.constant(int(found[1]) - 1))
        if op.name in _THROUGH or op.name == "arith.extsi":
            return self._integer(op.operands[0], loop)
        name = op.name.removeprefix("arith.")
        if name in ("extui", "trunci"):
            given = self._integer(op.operands[0], loop)
            if name == "extui":
                self._positive(given.low)
                return given
            return self._fitting(given, kind)
        if name in ("addi", "subi", "muli", "minsi", "maxsi", "remsi", "remui", "divsi", "divui"):
            left, right = (self._integer(operand, loop) for operand in op.operands[:2])
            return self._fitting(self._calculated(name, left, right), kind)
        if name == "select" and not kind.startswith("!"):
            left, right = (self._integer(operand, loop) for operand in op.operands[1:3])
            return self._either(left, right)
        raise Unbounded

    def _calculated(self, name: str, left: Interval, right: Interval) -> Interval:
        code = self.code
        if name == "addi":
            return self.sum(left, right)
        if name == "subi":
            return Interval(code.binary("subi", left.low, right.high), code.binary("subi", left.high, right.low))
        if name == "muli":
            self._within(left, 1 << 31)
            self._within(right, 1 << 31)
            return self.scaled(left, right.low) if right.exact else self._product(left, right)
        if name in ("minsi", "maxsi"):
            return Interval(code.binary(name, left.low, right.low), code.binary(name, left.high, right.high))
        if not right.exact:
            raise Unbounded
        self._positive(left.low)
        self.conditions.append(code.compare("sgt", right.low, code.constant(0)))
        divisor = code.binary("maxsi", right.low, code.constant(1))  # it is computed where the condition is false, too
        if name.startswith("div"):
            return Interval(code.binary("divsi", left.low, divisor), code.binary("divsi", left.high, divisor))
        last = code.binary("subi", divisor, code.constant(1))
        whole = code.compare("sle", left.high, last)
        zero = code.constant(0)
        return Interval(
            code.value(f"arith.select {whole}, {left.low}, {zero} : i64"), code.binary("minsi", left.high, last)
        )

    def sum(self, left: Interval, right: Interval) -> Interval:
        """Bounds of a sum."""
        if left.exact and right.exact:
            total = self.code.binary("addi", left.low, right.low)
            return Interval(total, total)
        return Interval(self.code.binary("addi", left.low, right.low), self.code.binary("addi", left.high, right.high))

    def scaled(self, interval: Interval, factor: str) -> Interval:
        """Bounds of a product with a scalar."""
        if interval.exact:
            product = self.code.binary("muli", interval.low, factor)
            return Interval(product, product)
        one, other = (self.code.binary("muli", end, factor) for end in (interval.low, interval.high))
        return Interval(self.code.binary("minsi", one, other), self.code.binary("maxsi", one, other))

    def _scaled_by_count(self, interval: Interval, count: str) -> Interval:
        self._within(interval, 1 << 31)
        self._within(Interval(count, count), 1 << 31)
        if interval.exact:
            return self.scaled(interval, count)
        return Interval(self.code.binary("muli", interval.low, count), self.code.binary("muli", interval.high, count))

    def _product(self, left: Interval, right: Interval) -> Interval:
        return self._either(self.scaled(left, right.low), self.scaled(left, right.high))

    def _either(self, left: Interval, right: Interval) -> Interval:
        return Interval(
            self.code.binary("minsi", left.low, right.low), self.code.binary("maxsi", left.high, right.high)
        )

    def _positive(self, value: str) -> None:
        self.conditions.append(self.code.compare("sge", value, self.code.constant(0)))

    def _fitting(self, interval: Interval, kind: str) -> Interval:
        """Bounds of what was computed in a type: it must not have wrapped."""
        found = _INTEGER.fullmatch(kind)
        bits = int(found[1]) if found else 0
        if bits == 64:
            return self._within(interval, _LARGEST)
        if bits not in (8, 16, 32):
            raise Unbounded
        return self._within(interval, 1 << (bits - 1))

    def _within(self, interval: Interval, limit: int) -> Interval:
        self.conditions.append(self.code.compare("sge", interval.low, self.code.constant(-limit)))
        self.conditions.append(self.code.compare("slt", interval.high, self.code.constant(limit)))
        return interval


def kind_of(op: Op, value: Value) -> str:
    """The type of a result."""
    text = op.body
    if op.name in ("scf.for", "scf.if", "scf.while"):
        found = re.search(r"-> \((.*?)\)(?: +: i\d+)? \{$", text)
        kinds = found[1].split(", ") if found else []
        return kinds[op.results.index(value)] if len(kinds) == len(op.results) else ""
    last = text.rsplit(" to ", 1)[-1] if " to " in text else text
    last = last.rsplit(" -> ", 1)[-1] if " -> " in last else last.rsplit(" : ", 1)[-1]
    if op.name == "arith.select":
        last = last.rsplit(", ", 1)[-1]
    if op.name == "tt.load":
        found = _POINTEE.search(last)
        return found[1] if found and not last.startswith("tensor") else last
    return last.strip()
