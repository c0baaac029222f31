"""Works out scalars of a kernel's IR for given parameters: what the checks in it would say on a GPU."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

_LINE = re.compile(r"^\s*(%[\w$.\-]+) = ([\w.]+) ?(.*?)(?: loc\(.*\))?$")
_NAME = re.compile(r"%[\w$.\-]+")


def _divided(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_BINARY: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": _divided,
    "remsi": lambda left, right: left - right * _divided(left, right),
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "minsi": min,
    "maxsi": max,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}


class Scalars:
    """The scalars of a module.

    Args:
        text: Its IR.
        given: Integer parameters in their order, and ``x`` of the program.
        words: The table, by address.
    """

    def __init__(self, text: str, given: Mapping[str, int], words: Mapping[int, int]) -> None:
        self._made = {found[1]: (found[2], found[3]) for line in text.splitlines() if (found := _LINE.match(line))}
        head = next(line for line in text.splitlines() if "tt.func public" in line)
        integers = re.findall(r"(%[\w$.\-]+): i32", head)
        values = [value for name, value in given.items() if name != "x"]
        self._known: dict[str, int] = dict(zip(integers, values, strict=True))
        self._given, self._words = given, words

    def of(self, name: str) -> int:
        """A scalar's value; integers wrap in their type."""
        if name not in self._known:
            self._known[name] = self._worked_out(*self._made[name])
        return self._known[name]

    def _worked_out(self, operation: str, rest: str) -> int:
        kind = rest.rsplit(" : ", 1)[-1].rsplit(" to ", 1)[-1]
        operands = _NAME.findall(rest)
        if operation == "arith.constant":
            text = rest.split(" ")[0]
            return {"true": 1, "false": 0}[text] if text in ("true", "false") else int(text)
        if operation == "tt.get_program_id":
            return self._given[rest.split(" ")[0]]
        if operation in ("tt.int_to_ptr", "arith.extsi", "arith.trunci"):
            return _wrapped(self.of(operands[0]), kind)
        if operation == "tt.load":
            return self._words[self.of(operands[0])]
        values = [self.of(operand) for operand in operands]
        if operation == "arith.cmpi":
            return int(_COMPARE[rest.split(",")[0]](*values))
        if operation == "arith.select":
            return values[1] if values[0] else values[2]
        return _wrapped(_BINARY[operation.removeprefix("arith.")](*values), kind)


def _wrapped(value: int, kind: str) -> int:
    if kind == "i1" or not re.fullmatch(r"i\d+", kind):
        return value
    bits = int(kind[1:])
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
