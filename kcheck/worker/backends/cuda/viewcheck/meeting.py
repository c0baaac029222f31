"""The quick check of races, as IR: whether a program may have met another one, without atomics.

A mark of 16 bits stands for each element that a kernel writes. A program looks at the marks before it sets its own: as
wide as it loads and stores the elements themselves, since the pointers to marks are made as those to elements are. Two
programs that look at the same moment do not see each other; that they do so at all elements they share is unlikely, and
a mark never says more than that exact checks should look.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kcheck.worker.backends.cuda import triton_seams
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.bounds import Unbounded
from kcheck.worker.backends.cuda.viewcheck.code import Code, Lanes
from kcheck.worker.backends.cuda.viewcheck.exact import Access, program, slot_word, suspect
from kcheck.worker.backends.cuda.viewcheck.ttir import Function, Value

MARK = "i16"
MARK_BYTES = 2
_POINTER = re.compile(r"!tt\.ptr<[^<>]+>")
_ALIGNED = re.compile(r"tt\.divisibility = 16")


@dataclass(slots=True)
class Meeting:
    """The check of one access.

    Attributes:
        code: Where it is written; it stands before the access.
        table: Address of the table.
        function: The kernel.
        access: What is checked; its pointer comes from one parameter.
        granule: Bytes of an element.
        also_read: Some access reads what the kernel writes.
    """

    code: Code
    table: int
    function: Function
    access: Access
    granule: int
    also_read: bool

    def check(self, pointer: Value, mask: str) -> None:
        """Write it.

        Args:
            pointer: Of the access.
            mask: Lanes that make it.
        """
        code = self.code
        (slot,) = self.access.slots
        try:
            if self.access.width != self.granule:
                raise Unbounded
            own = code.binary("muli", program(code), code.constant(2))
            own = code.value(f"arith.trunci {code.binary('addi', own, code.constant(1))} : i64 to {MARK}")
            writers = self._mirrored(pointer, self._base(slot, layout.WRITERS))
            readers = self._mirrored(pointer, self._base(slot, layout.READERS)) if self.also_read else ""
        except Unbounded:
            suspect(code, self.table, code.constant(0, "i1"))
            return
        met = self._others(writers, mask, own)
        if self.access.writes:
            self._set(writers, mask, own)
            if readers:
                met = code.binary("ori", met, self._others(readers, mask, own), self.access.lanes.of("i1"))
        elif readers:
            self._set(readers, mask, own)
        suspect(code, self.table, self._nowhere(met))

    def _base(self, slot: int, marks: int) -> str:
        """Points at the mark of what a parameter points to."""
        code, parameter = self.code, self.function.parameters[slot]
        kind = self.function.types[slot]
        address = code.value(f"tt.ptr_to_int {parameter.text} : {kind} -> i64")
        distance = code.binary("subi", address, slot_word(code, self.table, slot, layout.MEMORY))
        element = code.binary("divsi", distance, code.constant(self.granule))
        place = code.binary("muli", element, code.constant(MARK_BYTES))
        place = code.binary("addi", slot_word(code, self.table, slot, marks), place)
        known = ""  # a hint is heard of a bitcast, not of an int_to_ptr; that of an addptr is lost when two become one
        if _ALIGNED.search(self.function.hints[slot]):
            known = f" {{tt.divisibility = dense<{min(16 // self.granule * MARK_BYTES, 16)}> : tensor<1xi32>}}"
        first = code.value(f"tt.int_to_ptr {place} : i64 -> !tt.ptr<i8>")
        return code.value(f"tt.bitcast {first}{known} : !tt.ptr<i8> -> !tt.ptr<{MARK}>")

    def _mirrored(self, pointer: Value, base: str) -> str:
        """The pointer made anew, from the marks' base.

        Raises:
            Unbounded: It is made in a way that is not known here.
        """
        if pointer in self.function.parameters:
            return base
        op = pointer.maker
        if op is None or op.name not in ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims"):
            raise Unbounded
        inner = self._mirrored(op.operands[0], base)
        body = op.body.replace(op.operands[0].text, inner, 1)
        return self.code.value(_POINTER.sub(f"!tt.ptr<{MARK}>", body))

    def _others(self, marks: str, mask: str, own: str) -> str:
        """Lanes where another program's mark is."""
        code, lanes = self.code, self.access.lanes
        kind, bits = lanes.of(MARK), lanes.of("i1")
        nothing = lanes.constant(code, 0, MARK)
        pointers = lanes.of(f"!tt.ptr<{MARK}>")
        before = code.value(f"tt.load {marks}, {mask}, {nothing} {triton_seams.uncached()} : {pointers}")
        some = code.compare("ne", before, nothing, kind)
        return code.both(some, code.compare("ne", before, lanes.splat(code, own, MARK), kind), bits)

    def _set(self, marks: str, mask: str, own: str) -> None:
        lanes = self.access.lanes
        pointers = lanes.of(f"!tt.ptr<{MARK}>")
        self.code.put(f"tt.store {marks}, {lanes.splat(self.code, own, MARK)}, {mask} : {pointers}")

    def _nowhere(self, met: str) -> str:
        code, lanes = self.code, self.access.lanes
        if not lanes.shape:
            return code.negated(met, Lanes(()))
        ones = code.value(f"arith.extui {met} : {lanes.of('i1')} to {lanes.of('i32')}")
        some = code.reduced(ones, lanes, "i32", "ori")
        return code.compare("eq", some, code.constant(0, "i32"), "i32")
