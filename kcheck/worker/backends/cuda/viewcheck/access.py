"""One access of a kernel, written anew with its check."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kcheck.worker.backends.cuda.viewcheck import exact, layout, state
from kcheck.worker.backends.cuda.viewcheck.bounds import Bounds, Interval, Loops
from kcheck.worker.backends.cuda.viewcheck.code import Code, Lanes
from kcheck.worker.backends.cuda.viewcheck.exact import Access
from kcheck.worker.backends.cuda.viewcheck.hull import Hull
from kcheck.worker.backends.cuda.viewcheck.linear import Linear
from kcheck.worker.backends.cuda.viewcheck.meeting import Meeting
from kcheck.worker.backends.cuda.viewcheck.ttir import Function, Op, UnknownText, Value

_POINTERS = re.compile(r"(?:tensor<((?:\d+x)+))?!tt\.ptr<((?:!tt\.ptr<.*?>|[^<>,]+))(?:, \d+)?>>?")
_OPERANDS = re.compile(r"^(tt\.\w+ (?:\w+, )*)(%[\w$.#\-]+(?:, %[\w$.#\-]+)*)(.*)$")
_MASK = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}  # which operand it is; tt.atomic_cas has none
# Bytes of an element.
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
SIZES |= dict.fromkeys(("f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ"), 1)


class Limits:
    """Where the dense views of parameters begin and end: read once, at the kernel's first line.

    Args:
        table: Address of the table.

    Attributes:
        code: What reads them.
    """

    def __init__(self, table: int) -> None:
        self.table = table
        self.code = Code("kcl")
        self._known: dict[tuple[int, int], str] = {}

    def word(self, slot: int, word: int) -> str:
        """A word of a slot."""
        if (slot, word) not in self._known:
            self._known[slot, word] = exact.slot_word(self.code, self.table, slot, word)
        return self._known[slot, word]

    def hold(self, access: Access, code: Code, bounds: Interval) -> str:
        """Whether bounds lie in the view of the one parameter that a pointer comes from, as int1."""
        first, end = (layout.WRITE_FIRST, layout.WRITE_END) if access.writes else (layout.READ_FIRST, layout.READ_END)
        (slot,) = access.slots
        good = code.compare("sge", bounds.low, self.word(slot, first))
        reach = code.binary("addi", bounds.high, code.constant(access.width))
        return code.both(good, code.compare("sle", reach, self.word(slot, end)))


def lanes_of(op: Op) -> tuple[Lanes, str]:
    """Shape of an access, and the type of an element.

    Raises:
        UnknownText: It is written in a form that is not known here.
    """
    kinds = _POINTERS.search(op.body)
    if kinds is None:
        raise UnknownText(op.body)
    return Lanes(tuple(int(size) for size in (kinds[1] or "").split("x") if size)), kinds[2]


def width_of(element: str) -> int:
    """Bytes of an element.

    Raises:
        UnknownText: It is of a type that is not known here.
    """
    if element.startswith("!tt.ptr"):
        return 8
    if element not in SIZES:
        raise UnknownText(f"an element of type {element}")
    return SIZES[element]


def within(access: Access, op: Op, bounds: Bounds, limits: Limits) -> str | None:
    """Whether all lanes lie in their view, masked or not, as int1; None: that cannot be said beforehand."""
    if len(access.slots) != 1:
        return None
    found = bounds.of_pointer(op.operands[0])
    if found is None:
        return None
    good = limits.hold(access, bounds.code, found)
    for condition in dict.fromkeys(bounds.conditions):
        good = bounds.code.both(good, condition)
    return good


@dataclass(slots=True)
class Checked:
    """Writes one access.

    Attributes:
        function: Where it stands.
        loops: Of the function, from `bounds.owners`.
        op: The access.
        access: What is known of it.
        element: Type of an element.
        line: Its text.
        limits: Of the kernel.
        quick: Its bounds may be looked at before its lanes.
        granule: Bytes of memory that are one to the check of races; 0: they are not looked for.
        also_read: Some access reads what the kernel writes.
        state: Look for reads of what nobody wrote.
    """

    function: Function
    loops: Loops
    op: Op
    access: Access
    element: str
    line: str
    limits: Limits
    quick: bool
    granule: int = 0
    also_read: bool = False
    state: bool = False

    def lines(self, *, every_lane: bool) -> list[str]:
        """Its lines.

        Args:
            every_lane: Look at every lane and record those that are bad. If not, only that some may be.
        """
        parts = _OPERANDS.match(self.op.body)
        if parts is None:
            raise UnknownText(self.op.body)
        code, lanes = Code(f"kc{self.access.site}"), self.access.lanes
        operands = parts[2].split(", ")
        masked = _MASK.get(self.op.name, len(operands))
        given = self.op.operands[_MASK[self.op.name]] if len(operands) > masked else None
        mask = given.text if given else lanes.constant(code, 1, "i1")
        if every_lane:
            good = exact.check(code, self.limits.table, self.access, self._addresses(code, operands[0]), mask)
        else:
            good = self._no_lane_bad(code, operands[0], mask, given)
            exact.suspect(code, self.limits.table, good)
            good = code.both(mask, lanes.splat(code, good, "i1"), lanes.of("i1"))
        if self.granule and every_lane:
            addresses = self._addresses(code, operands[0])
            atomic = self.op.name.startswith("tt.atomic")
            state.check_race(code, self.limits.table, self.access, addresses, good, self.granule, atomic=atomic)
        elif self.granule:
            meeting = Meeting(code, self.limits.table, self.function, self.access, self.granule, self.also_read)
            meeting.check(self.op.operands[0], good)
        pointer = operands[0]
        self._write(code, parts[1], operands, parts[3], masked, good)
        if self.state and every_lane and self.op.name == "tt.load" and self.element != "i1":
            value, addresses = self.op.results[0].text, self._addresses(code, pointer)
            state.check_written(code, self.limits.table, self.access, addresses, good, value, self.element)
        if self.granule and every_lane and lanes.shape and self.op.name == "tt.store" and self.element != "i1":
            value = self.op.operands[1].text
            state.check_kept(code, self.limits.table, self.access, pointer, good, value, self.element)
        return code.lines

    def _no_lane_bad(self, code: Code, pointer: str, mask: str, given: Value | None) -> str:
        """Whether no lane is bad, as int1."""
        lanes = self.access.lanes
        if self.quick:
            good = self._linear(code, mask, given)
            if good is not None:
                return good
            bounds = Bounds(code, self.function, self.loops, SIZES)
            if lanes.shape:
                hull_of_lanes = Hull(code, bounds, lanes.shape, given).of_pointer(self.op.operands[0])
                if hull_of_lanes is not None:
                    good = self._held(code, hull_of_lanes, bounds.conditions)
                    nothing = code.compare("sgt", hull_of_lanes.low, hull_of_lanes.high)
                    return code.binary("ori", good, nothing, "i1")
        return exact.no_lane_bad(code, self.limits.table, self.access, self._addresses(code, pointer), mask)

    def _linear(self, code: Code, mask: str, given: Value | None) -> str | None:
        """The same by the pointer's linear form; None if it has none."""
        lanes, pointer = self.access.lanes, self.op.operands[0]
        linear = Linear(code, Bounds(code, self.function, self.loops, SIZES), lanes.shape)
        found = linear.hull(pointer, given)
        if found is None:
            return None
        hull, nothing = found
        good = self._held(code, hull, linear.conditions)
        if not lanes.shape and given is not None:
            nothing = code.negated(mask, lanes)
        return code.binary("ori", good, nothing, "i1")

    def _held(self, code: Code, hull: Interval, conditions: list[str]) -> str:
        good = self.limits.hold(self.access, code, hull)
        for condition in dict.fromkeys(conditions):
            good = code.both(good, condition)
        return good

    def _addresses(self, code: Code, pointer: str) -> str:
        lanes = self.access.lanes
        return code.value(f"tt.ptr_to_int {pointer} : {lanes.of(f'!tt.ptr<{self.element}>')} -> {lanes.of('i64')}")

    def _write(self, code: Code, head: str, operands: list[str], kind: str, masked: int, good: str) -> None:
        """The access itself, made by the lanes that may go on."""
        lanes, name = self.access.lanes, self.op.name
        if name == "tt.atomic_cas":
            pointer = f"!tt.ptr<{self.element}>"
            sink = code.value(f"tt.int_to_ptr {code.constant(self.limits.table + 8 * layout.SINK)} : i64 -> {pointer}")
            operands[0] = code.select(good, operands[0], lanes.splat(code, sink, pointer), lanes, pointer)
        else:
            if name == "tt.atomic_rmw" and len(operands) == masked:
                kind = kind.replace(") ->", f", {lanes.of('i1')}) ->")
            operands[masked : masked + 1] = [good]
            if name == "tt.load" and len(operands) == 2:
                operands += self._zero(code)
        before = self.line[: self.line.index(name)]
        code.put(f"{before}{head}{', '.join(operands)}{kind} loc({self.op.location or 'unknown'})")

    def _zero(self, code: Code) -> list[str]:
        """What lanes hold that are masked off, for a load that did not say."""
        if self.element in ("f16", "bf16", "f32", "f64"):
            number = "0.000000e+00"
        elif re.fullmatch(r"i\d+", self.element):
            number = "false" if self.element == "i1" else "0"
        else:
            return []
        kind = self.access.lanes.of(self.element)
        literal = f"dense<{number}>" if self.access.lanes.shape else number
        return [code.value(f"arith.constant {literal}{'' if kind == 'i1' else f' : {kind}'}")]
