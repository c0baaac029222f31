"""Writes operations of Triton's IR as text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "minsi": min,
    "maxsi": max,
}
TABLE_POINTER = "!tt.ptr<i64>"


@dataclass(slots=True)
class Code:
    """Lines of IR that are being written.

    Attributes:
        prefix: Of the names of values, so that none is used twice.
        lines: What was written.
    """

    prefix: str
    lines: list[str] = field(default_factory=list)
    _count: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)

    def name(self) -> str:
        """A name that is not used yet."""
        self._count += 1
        return f"%{self.prefix}_{self._count}"

    def put(self, text: str) -> None:
        """Write a line that defines nothing."""
        self.lines.append(text)

    def value(self, text: str) -> str:
        """Write an operation; gives its result."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, number: int, kind: str = "i64") -> str:
        """An integer; in a type of a tensor, one for every lane."""
        literal = ("false", "true")[number] if kind.endswith(("i1", "i1>")) else str(number)
        if kind == "i1":
            return self.value(f"arith.constant {literal}")
        if kind.startswith("tensor"):
            return self.value(f"arith.constant dense<{literal}> : {kind}")
        name = self.value(f"arith.constant {literal} : {kind}")
        self._numbers[name] = number
        return name

    def known(self, name: str) -> int | None:
        """The number that a name stands for, if it is a constant written here."""
        return self._numbers.get(name)

    def binary(self, operation: str, left: str, right: str, kind: str = "i64") -> str:
        """``arith.<operation>``; of two numbers that are known, their result."""
        one, other = self._numbers.get(left), self._numbers.get(right)
        if one is not None and other is not None and kind == "i64" and operation in _FOLDED:
            return self.constant(_FOLDED[operation](one, other))
        if operation in ("addi", "subi") and other == 0:
            return left
        if operation == "addi" and one == 0:
            return right
        if operation == "muli" and 1 in (one, other):
            return left if other == 1 else right
        return self.value(f"arith.{operation} {left}, {right} : {kind}")

    def compare(self, how: str, left: str, right: str, kind: str = "i64") -> str:
        """``arith.cmpi``."""
        return self.value(f"arith.cmpi {how}, {left}, {right} : {kind}")

    def select(self, condition: str, yes: str, no: str, lanes: Lanes, kind: str) -> str:
        """``arith.select``, lane by lane."""
        condition_kind = f"{lanes.of('i1')}, " if lanes.shape else ""
        return self.value(f"arith.select {condition}, {yes}, {no} : {condition_kind}{lanes.of(kind)}")

    def negated(self, value: str, lanes: Lanes) -> str:
        """Where it is false."""
        return self.binary("xori", value, lanes.constant(self, 1, "i1"), lanes.of("i1"))

    def both(self, left: str, right: str, kind: str = "i1") -> str:
        """Where both are true."""
        return self.binary("andi", left, right, kind)

    def word(self, address: int) -> str:
        """The int64 at an address that is known now."""
        pointer = self.value(f"tt.int_to_ptr {self.constant(address)} : i64 -> {TABLE_POINTER}")
        return self.value(f"tt.load {pointer} : {TABLE_POINTER}")

    def pointer(self, address: str, word: int) -> str:
        """Points at the int64 that stands `word` words behind an address."""
        moved = self.binary("addi", address, self.constant(8 * word)) if word else address
        return self.value(f"tt.int_to_ptr {moved} : i64 -> {TABLE_POINTER}")

    def reduced(self, value: str, lanes: Lanes, kind: str, operation: str) -> str:
        """One value of all lanes of a tensor, by an operation of ``arith``."""
        if len(lanes.shape) > 1:
            value = self.value(f"tt.reshape {value} allow_reorder : {lanes.of(kind)} -> {lanes.flat.of(kind)}")
        result, left, right, both = (self.name() for _ in range(4))
        self.put(f'{result} = "tt.reduce"({value}) <{{axis = 0 : i32}}> ({{')
        self.put(f"^bb0({left}: {kind}, {right}: {kind}):")
        self.put(f"{both} = arith.{operation} {left}, {right} : {kind}")
        self.put(f"tt.reduce.return {both} : {kind}")
        self.put(f"}}) : ({lanes.flat.of(kind)}) -> {kind}")
        return result

    def branch(self, condition: str, results: Sequence[str]) -> str:
        """Begin ``scf.if``; the lines that follow are its first region."""
        name = self.name()
        many = f":{len(results)}" if len(results) > 1 else ""
        kinds = f" -> ({', '.join(results)})" if results else ""
        self.put(f"{name}{many} = scf.if {condition}{kinds} {{" if results else f"scf.if {condition} {{")
        return name

    def give(self, values: Sequence[str], kinds: Sequence[str]) -> None:
        """End a region with its values."""
        self.put(f"scf.yield {', '.join(values)} : {', '.join(kinds)}")


@dataclass(frozen=True, slots=True)
class Lanes:
    """The shape of an access.

    Attributes:
        shape: Elements along each dimension; ``()`` for a scalar.
    """

    shape: tuple[int, ...]

    def of(self, kind: str) -> str:
        """The type of a value for each lane."""
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{kind}>" if self.shape else kind

    @property
    def flat(self) -> Lanes:
        """The same in one dimension."""
        count = 1
        for size in self.shape:
            count *= size
        return Lanes((count,))

    def splat(self, code: Code, value: str, kind: str = "i64") -> str:
        """The same value for each lane."""
        return code.value(f"tt.splat {value} : {kind} -> {self.of(kind)}") if self.shape else value

    def constant(self, code: Code, number: int, kind: str = "i64") -> str:
        """The same number for each lane."""
        return code.constant(number, self.of(kind))
