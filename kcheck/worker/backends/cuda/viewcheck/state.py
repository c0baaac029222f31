"""What needs memory of what happened before, as IR: races between programs, and reads of what nobody wrote.

Each granule of a tensor's memory has a word for the program that wrote it last, and one for a program that read it,
both of this launch. Who finds another program there has found a race, unless both accesses are atomic. Kernels with
atomics that order programs are not looked at: no such word says what happened before.

A granule is as wide as the narrowest access of the kernel, so that two accesses of one granule overlap.
"""

from __future__ import annotations

from kcheck.worker.backends.cuda import triton_seams
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.code import TABLE_POINTER, Code, Lanes
from kcheck.worker.backends.cuda.viewcheck.exact import Access, program, record, slot_word

_PLAIN_INTEGERS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


def check_race(
    code: Code, table: int, access: Access, addresses: str, mask: str, granule: int, *, atomic: bool
) -> None:
    """Write the exact check of an access against those of other programs; it stands before the access.

    Args:
        code: Where to.
        table: Address of the table.
        access: What is checked; its pointer comes from one parameter.
        addresses: int64 of each lane.
        mask: Lanes that make the access.
        granule: Bytes of a granule.
        atomic: It is an atomic.
    """
    lanes, words, bits = access.lanes, access.lanes.of("i64"), access.lanes.of("i1")
    (slot,) = access.slots
    writers = slot_word(code, table, slot, layout.WRITERS)
    code.branch(code.compare("ne", writers, code.constant(0)), ())
    memory = lanes.splat(code, slot_word(code, table, slot, layout.MEMORY))
    shift = lanes.constant(code, granule.bit_length() - 1)
    place = code.binary("shrui", code.binary("subi", addresses, memory, words), shift, words)
    own = code.binary("shli", code.binary("addi", program(code), code.constant(1)), code.constant(layout.MARK_PROGRAM))
    mark = code.binary("ori", own, code.constant(access.site << layout.MARK_SITE | atomic))
    wrote = lanes.splat(code, code.value(f"tt.int_to_ptr {writers} : i64 -> {TABLE_POINTER}"), TABLE_POINTER)
    readers = slot_word(code, table, slot, layout.READERS)
    read = lanes.splat(code, code.value(f"tt.int_to_ptr {readers} : i64 -> {TABLE_POINTER}"), TABLE_POINTER)
    pointers, nothing = lanes.of(TABLE_POINTER), lanes.constant(code, 0)
    wrote, read = (code.value(f"tt.addptr {one}, {place} : {pointers}, {words}") for one in (wrote, read))

    def exchanged(operation: str, pointer: str, value: str) -> str:
        kinds = f"({pointers}, {words}, {bits}) -> {words}"
        return code.value(f"tt.atomic_rmw {operation}, relaxed, gpu, {pointer}, {value}, {mask} : {kinds}")

    if access.writes:
        before = exchanged("exch", wrote, lanes.splat(code, mark))
        others = [exchanged("umax", read, nothing), before]  # of both, another write is told
    else:
        exchanged("umax", read, lanes.splat(code, mark))
        others = [exchanged("umax", wrote, nothing)]
    bad, seen = lanes.constant(code, 0, "i1"), nothing
    for other in others:
        strange = _is_other(code, lanes, other, own, atomic)
        bad = code.binary("ori", bad, strange, bits)
        seen = code.select(strange, other, seen, lanes, "i64")
    bad = code.both(bad, mask, bits)
    first = lanes.splat(code, slot_word(code, table, slot, layout.ADDRESS))
    record(code, table, access, layout.RACE, code.binary("subi", addresses, first, words), bad, seen)
    code.put("}")


def check_kept(code: Code, table: int, access: Access, pointer: str, mask: str, value: str, element: str) -> None:
    """Write the check that a store's values are there afterwards; it stands behind the store.

    Another program may have overwritten them: that is a race, and told as such. It left its mark.
    """
    lanes, words, bits = access.lanes, access.lanes.of("i64"), access.lanes.of("i1")
    (slot,) = access.slots
    pointers = lanes.of(f"!tt.ptr<{element}>")
    writers = slot_word(code, table, slot, layout.WRITERS)
    ones = code.value(f"arith.extui {mask} : {bits} to {lanes.of('i32')}")
    some = code.reduced(ones, lanes, "i32", "ori")  # all threads have stored before one goes on
    stored = code.compare("ne", some, code.constant(0, "i32"), "i32")
    code.branch(code.both(stored, code.compare("ne", writers, code.constant(0))), ())
    there = code.value(f"tt.load {pointer}, {mask}, {value} {triton_seams.uncached()} : {pointers}")
    kind = lanes.of(_PLAIN_INTEGERS[access.width])
    if element != _PLAIN_INTEGERS[access.width]:
        there, value = (code.value(f"tt.bitcast {one} : {lanes.of(element)} -> {kind}") for one in (there, value))
    bad = code.both(mask, code.compare("ne", there, value, kind), bits)
    addresses = code.value(f"tt.ptr_to_int {pointer} : {pointers} -> {words}")
    first = lanes.splat(code, slot_word(code, table, slot, layout.ADDRESS))
    record(code, table, access, layout.CONFLICT, code.binary("subi", addresses, first, words), bad)
    code.put("}")


def check_written(code: Code, table: int, access: Access, addresses: str, mask: str, value: str, element: str) -> None:
    """Write the check that a read does not yield the poison of memory that nobody wrote; it stands behind the read."""
    lanes, words, bits = access.lanes, access.lanes.of("i64"), access.lanes.of("i1")
    (slot,) = access.slots
    poison = slot_word(code, table, slot, layout.POISON)
    code.branch(code.compare("ne", poison, code.constant(0)), ())
    kind = _PLAIN_INTEGERS[access.width]
    plain = value
    if element != kind:
        plain = code.value(f"tt.bitcast {value} : {lanes.of(element)} -> {lanes.of(kind)}")
    byte = code.binary("subi", poison, code.constant(1))
    pattern = code.binary("muli", byte, code.constant(int.from_bytes(bytes([1]) * 8, "little")))
    wide = plain if kind == "i64" else code.value(f"arith.extui {plain} : {lanes.of(kind)} to {words}")
    kept = code.constant(-1 if access.width == 8 else (1 << 8 * access.width) - 1)
    wanted = lanes.splat(code, code.binary("andi", pattern, kept))
    bad = code.both(mask, code.compare("eq", wide, wanted, words), bits)
    first = lanes.splat(code, slot_word(code, table, slot, layout.ADDRESS))
    record(code, table, access, layout.UNWRITTEN, code.binary("subi", addresses, first, words), bad)
    code.put("}")


def _is_other(code: Code, lanes: Lanes, mark: str, own: str, atomic: bool) -> str:
    """Whether a mark is that of another program, and of an access that this one must not meet."""
    words, bits = lanes.of("i64"), lanes.of("i1")
    shift = lanes.constant(code, layout.MARK_PROGRAM)
    there = code.binary("shrui", mark, shift, words)
    here = lanes.splat(code, code.binary("shrui", own, code.constant(layout.MARK_PROGRAM)))
    some = code.compare("ne", mark, lanes.constant(code, 0), words)
    strange = code.both(some, code.compare("ne", there, here, words), bits)
    if not atomic:
        return strange
    plain = code.binary("andi", mark, lanes.constant(code, 1), words)
    return code.both(strange, code.compare("eq", plain, lanes.constant(code, 0), words), bits)
