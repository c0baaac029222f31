"""The hull of the lanes that make an access, as IR of small tensors: exact where what may be touched has no gaps.

A pointer to a tile is a sum of terms that vary along some axes each, and its mask a product of such. So the lowest and
the highest address of the lanes that the mask lets through are found axis by axis, without a look at every lane.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kcheck.worker.backends.cuda.viewcheck.bounds import Bounds, Interval, Unbounded, kind_of
from kcheck.worker.backends.cuda.viewcheck.code import Code, Lanes
from kcheck.worker.backends.cuda.viewcheck.ttir import Value

_TENSOR = re.compile(r"tensor<((?:\d+x)+)(.+)>$")
_FAR = 1 << 60  # beyond all offsets


@dataclass(frozen=True, slots=True)
class _Term:
    """One term of a sum, or factor of a mask.

    Attributes:
        name: int64 or int1 values.
        shape: Their shape, of the tile's rank: 1 along axes that the term does not vary along.
    """

    name: str
    shape: tuple[int, ...]

    @property
    def axes(self) -> frozenset[int]:
        """Along which it varies."""
        return frozenset(axis for axis, size in enumerate(self.shape) if size > 1)


@dataclass(slots=True)
class _Sum:
    """A sum of terms.

    Attributes:
        terms: Those that vary along an axis.
        constant: The others, an int64.
    """

    terms: list[_Term]
    constant: str


@dataclass(slots=True)
class Hull:
    """The hull of one access.

    Attributes:
        code: Where it is written.
        bounds: Knows scalars, and by how much a loop moves a pointer.
        shape: Of the access: a tensor's.
        mask: Its mask, None if it has none.
    """

    code: Code
    bounds: Bounds
    shape: tuple[int, ...]
    mask: Value | None
    _factors: list[_Term] = field(default_factory=list)

    def of_pointer(self, pointer: Value) -> Interval | None:
        """First and last offset in bytes from the parameter that a pointer comes from; None: it is no such sum.

        If no lane makes the access, the first is behind the last.
        """
        try:
            if self.mask is not None:
                self._factors = self._product(self.mask)
            return self._total(self._pointer(pointer))
        except Unbounded:
            return None

    def _pointer(self, value: Value) -> _Sum:
        if value in self.bounds.function.parameters:
            return _Sum([], self.code.constant(0))
        op = value.maker
        if op is None:
            start, moved = self.bounds.carried(value)
            if not moved.exact:
                raise Unbounded
            begun = self._pointer(start)
            return _Sum(begun.terms, self.code.binary("addi", begun.constant, moved.low))
        if op.name in ("tt.splat", "tt.broadcast"):
            return self._pointer(op.operands[0])
        if op.name == "tt.expand_dims":
            inner = self._pointer(op.operands[0])
            if inner.terms:
                raise Unbounded
            return inner
        if op.name == "tt.addptr":
            size = self.code.constant(self.bounds.size_of(op))
            return self._added(self._pointer(op.operands[0]), self._scaled(self._integer(op.operands[1]), size))
        raise Unbounded

    def _integer(self, value: Value) -> _Sum:
        op = value.maker
        kind = kind_of(op, value) if op is not None else ""
        found = _TENSOR.match(kind)
        if op is None or found is None:
            exact = self.bounds.integer(value)
            if not exact.exact:
                raise Unbounded
            return _Sum([], exact.low)
        shape = tuple(int(size) for size in found[1].split("x") if size)
        whole = len(shape) == len(self.shape) and shape == self.shape and len(self.shape) > 1
        if op.name in ("tt.splat", "tt.broadcast"):
            return self._integer(op.operands[0])
        if whole and op.name == "arith.extsi":
            return self._integer(op.operands[0])
        if whole and op.name == "arith.addi":
            left, right = (self._integer(operand) for operand in op.operands[:2])
            return self._fitting(self._added(left, right), found[2])
        return _Sum([_Term(self._wide(value.text, shape, found[2]), self._ranked(shape))], self.code.constant(0))

    def _ranked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that must be of the tile's rank, or a tensor without a rank of its own."""
        if len(shape) != len(self.shape):
            raise Unbounded
        return shape

    def _wide(self, name: str, shape: tuple[int, ...], kind: str) -> str:
        if kind == "i64":
            return name
        if kind not in ("i32", "i16", "i8"):
            raise Unbounded
        lanes = Lanes(shape)
        return self.code.value(f"arith.extsi {name} : {lanes.of(kind)} to {lanes.of('i64')}")

    def _added(self, left: _Sum, right: _Sum) -> _Sum:
        return _Sum(left.terms + right.terms, self.code.binary("addi", left.constant, right.constant))

    def _scaled(self, given: _Sum, factor: str) -> _Sum:
        terms = []
        for term in given.terms:
            lanes = Lanes(term.shape)
            scaled = self.code.binary("muli", term.name, lanes.splat(self.code, factor), lanes.of("i64"))
            terms.append(_Term(scaled, term.shape))
        return _Sum(terms, self.code.binary("muli", given.constant, factor))

    def _fitting(self, given: _Sum, kind: str) -> _Sum:
        """A sum that was computed in a type: it must not have wrapped in a lane that counts."""
        if kind == "i32":
            total = self._total(given)
            some = self.code.compare("sgt", total.low, total.high)
            good = self.code.compare("sge", total.low, self.code.constant(-(1 << 31)))
            good = self.code.both(good, self.code.compare("slt", total.high, self.code.constant(1 << 31)))
            self.bounds.conditions.append(self.code.binary("ori", some, good, "i1"))
        elif kind != "i64":
            raise Unbounded
        return given

    def _product(self, mask: Value) -> list[_Term]:
        """The factors of a mask."""
        op = mask.maker
        found = _TENSOR.match(kind_of(op, mask)) if op is not None else None
        if op is None or found is None:
            raise Unbounded
        if op.name == "arith.constant" and "true" in op.body:
            return []
        if op.name == "tt.broadcast":
            return self._product(op.operands[0])
        if op.name == "arith.andi":
            return self._product(op.operands[0]) + self._product(op.operands[1])
        shape = tuple(int(size) for size in found[1].split("x") if size)
        return [_Term(mask.text, self._ranked(shape))]

    def _total(self, given: _Sum) -> Interval:
        """The bounds of a sum, over the lanes that its mask lets through."""
        total = Interval(given.constant, given.constant)
        for axes in _groups([term.axes for term in given.terms + self._factors]):
            terms = [term for term in given.terms if term.axes <= axes]
            factors = [factor for factor in self._factors if factor.axes <= axes]
            part = self._extremes(axes, terms, factors)
            total = Interval(
                self.code.binary("addi", total.low, part.low), self.code.binary("addi", total.high, part.high)
            )
        return total

    def _extremes(self, axes: frozenset[int], terms: list[_Term], factors: list[_Term]) -> Interval:
        """The least and the greatest value of a sum of terms along some axes."""
        lanes = Lanes(tuple(size if axis in axes else 1 for axis, size in enumerate(self.shape)))
        words, bits = lanes.of("i64"), lanes.of("i1")
        values = lanes.constant(self.code, 0)
        for term in terms:
            values = self.code.binary("addi", values, self._spread(term, lanes, "i64"), words)
        mask = lanes.constant(self.code, 1, "i1")
        for factor in factors:
            mask = self.code.both(mask, self._spread(factor, lanes, "i1"), bits)
        ends = []
        for operation, neutral in (("minsi", _FAR), ("maxsi", -_FAR)):
            chosen = self.code.select(mask, values, lanes.constant(self.code, neutral), lanes, "i64")
            ends.append(self.code.reduced(chosen, lanes, "i64", operation))
        return Interval(ends[0], ends[1])

    def _spread(self, term: _Term, lanes: Lanes, kind: str) -> str:
        if term.shape == lanes.shape:
            return term.name
        return self.code.value(f"tt.broadcast {term.name} : {Lanes(term.shape).of(kind)} -> {lanes.of(kind)}")


def _groups(parts: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Axes that some part ties together, joined."""
    groups: list[frozenset[int]] = []
    for axes in parts:
        touching = [group for group in groups if group & axes]
        joined = axes.union(*touching)
        groups = [group for group in groups if group not in touching]
        if joined:
            groups.append(joined)
    return groups
