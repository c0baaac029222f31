"""The exact check, as IR: whether each lane of an access may be made, and the record of those that may not."""

from __future__ import annotations

from dataclasses import dataclass

from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.code import TABLE_POINTER, Code, Lanes

_BYTE_POINTER = "!tt.ptr<i8>"


@dataclass(frozen=True, slots=True)
class Access:
    """An access that is to be checked.

    Attributes:
        site: Its number.
        lanes: Its shape.
        width: Bytes of a lane.
        writes: Whether it writes.
        slots: Numbers of the parameters that its pointer may come from; empty: from elsewhere.
    """

    site: int
    lanes: Lanes
    width: int
    writes: bool
    slots: tuple[int, ...]


def check(code: Code, table: int, access: Access, addresses: str, mask: str) -> str:
    """Write the check of all lanes, and the record of bad ones.

    Args:
        code: Where to.
        table: Address of the table.
        access: What is checked.
        addresses: int64 of each lane.
        mask: Lanes that make the access.

    Returns:
        Lanes that may go on: those in a view; of a read also those that are safe.
    """
    bits = access.lanes.of("i1")
    held = _held(code, table, access, addresses)
    bad = code.both(mask, code.negated(held.allowed, access.lanes), bits)
    record(code, table, access, layout.STRAY, held.offset, bad)
    inside = held.inside
    if held.safe and not access.writes:
        inside = code.binary("ori", inside, held.safe, bits)
    return code.both(mask, inside, bits)


def no_lane_bad(code: Code, table: int, access: Access, addresses: str, mask: str) -> str:
    """Write a check that says only whether no lane is bad, as int1."""
    lanes = access.lanes
    held = _held(code, table, access, addresses)
    bad = code.both(mask, code.negated(held.allowed, lanes), lanes.of("i1"))
    if not lanes.shape:
        return code.negated(bad, lanes)
    ones = code.value(f"arith.extui {bad} : {lanes.of('i1')} to {lanes.of('i32')}")
    return code.compare("eq", code.reduced(ones, lanes, "i32", "ori"), code.constant(0, "i32"), "i32")


def suspect(code: Code, table: int, good: str) -> None:
    """Write that lanes may be bad, unless `good`, an int1."""
    place = code.pointer(code.constant(table), layout.SUSPECTED)
    code.put(f"tt.store {place}, {code.constant(1)}, {code.negated(good, Lanes(()))} : {TABLE_POINTER}")


@dataclass(frozen=True, slots=True)
class _Held:
    """What is known of the lanes of an access, as int1 each.

    Attributes:
        inside: In a view.
        allowed: In a view that allows the access.
        safe: In the arena; ``""`` if that was not asked for.
        offset: int64: bytes from where the views begin.
    """

    inside: str
    allowed: str
    safe: str
    offset: str


def _held(code: Code, table: int, access: Access, addresses: str) -> _Held:
    lanes, bits = access.lanes, access.lanes.of("i1")
    members = [_member(code, table, slot, access, addresses) for slot in access.slots or (layout.ELSEWHERE,)]
    inside, allowed, offset = members[0]
    for more_inside, more_allowed, _ in members[1:]:
        inside, allowed = code.binary("ori", inside, more_inside, bits), code.binary("ori", allowed, more_allowed, bits)
    safe = "" if access.slots and access.writes else _safe(code, table, access, addresses)
    if not access.slots:  # what lies outside of the arena may be a tensor that is not known
        unknown = code.negated(safe, lanes)
        inside, allowed = code.binary("ori", inside, unknown, bits), code.binary("ori", allowed, unknown, bits)
    return _Held(inside, allowed if access.writes else inside, safe, offset)


def slot_word(code: Code, table: int, slot: int, word: int) -> str:
    """A word of a slot."""
    return code.word(table + 8 * (layout.SLOTS + slot * layout.SLOT + word))


def _member(code: Code, table: int, slot: int, access: Access, addresses: str) -> tuple[str, str, str]:
    """Lanes that a slot's views hold, those that it lets be written (if asked), and offsets in bytes."""
    lanes, words, bits = access.lanes, access.lanes.of("i64"), access.lanes.of("i1")
    offset = code.binary("subi", addresses, lanes.splat(code, slot_word(code, table, slot, layout.ADDRESS)), words)
    last = code.binary("subi", slot_word(code, table, slot, layout.EXTENT), code.constant(access.width))
    some = code.compare("sge", last, code.constant(0))
    inside = code.compare("ule", offset, lanes.splat(code, last), words)
    inside = code.both(inside, lanes.splat(code, some, "i1"), bits)
    shadow = slot_word(code, table, slot, layout.SHADOW)
    kinds = [bits, bits] if access.writes else [bits]
    result = code.branch(code.compare("ne", shadow, code.constant(0)), kinds)
    base = lanes.splat(code, code.value(f"tt.int_to_ptr {shadow} : i64 -> {_BYTE_POINTER}"), _BYTE_POINTER)
    place = code.value(f"tt.addptr {base}, {offset} : {lanes.of(_BYTE_POINTER)}, {words}")
    nothing = lanes.constant(code, 0, "i8")
    byte = code.value(f"tt.load {place}, {inside}, {nothing} : {lanes.of(_BYTE_POINTER)}")
    bit = layout.WIDTHS.index(access.width)

    def holds(number: int) -> str:
        one = code.binary("andi", byte, lanes.constant(code, 1 << number, "i8"), lanes.of("i8"))
        return code.compare("ne", one, nothing, lanes.of("i8"))

    code.give([holds(bit), *([holds(bit + len(layout.WIDTHS))] if access.writes else [])], kinds)
    code.put("} else {")
    dense = [inside]
    if access.writes:
        writable = code.compare("ne", slot_word(code, table, slot, layout.WRITABLE), code.constant(0))
        dense.append(code.both(inside, lanes.splat(code, writable, "i1"), bits))
    code.give(dense, kinds)
    code.put("}")
    return (f"{result}#0", f"{result}#1", offset) if access.writes else (result, result, offset)


def _safe(code: Code, table: int, access: Access, addresses: str) -> str:
    """Lanes in the arena."""
    lanes, words = access.lanes, access.lanes.of("i64")
    first, size = (lanes.splat(code, code.word(table + 8 * word)) for word in (layout.SAFE_FIRST, layout.SAFE_SIZE))
    return code.compare("ult", code.binary("subi", addresses, first, words), size, words)


def record(code: Code, table: int, access: Access, kind: int, offset: str, bad: str, mark: str | None = None) -> None:
    """Write down lanes that are bad, if there are any.

    Args:
        code: Where to.
        table: Address of the table.
        access: What was checked.
        kind: Which of the access's records.
        offset: int64 of each lane: bytes from where the views begin.
        bad: int1 of each lane.
        mark: int64 of each lane: who else was there.
    """
    lanes = access.lanes
    if lanes.shape:
        ones = code.value(f"arith.extui {bad} : {lanes.of('i1')} to {lanes.of('i32')}")
        count = code.reduced(ones, lanes, "i32", "addi")
        code.branch(code.compare("ne", count, code.constant(0, "i32"), "i32"), ())
        total = code.value(f"arith.extui {count} : i32 to i64")
        most = lanes.constant(code, 2**63 - 1)
        lowest = code.reduced(code.select(bad, offset, most, lanes, "i64"), lanes, "i64", "minsi")
        other = code.constant(0)
        if mark is not None:
            first = code.compare("eq", offset, lanes.splat(code, lowest), lanes.of("i64"))
            first = code.both(first, bad, lanes.of("i1"))
            other = code.reduced(code.select(first, mark, lanes.constant(code, 0), lanes, "i64"), lanes, "i64", "maxsi")
    else:
        code.branch(bad, ())
        total, lowest, other = code.constant(1), offset, mark or code.constant(0)
    _write_record(code, table, access.site * layout.PER_SITE + kind, total, lowest, other)
    code.put("}")


def _write_record(code: Code, table: int, number: int, total: str, lowest: str, other: str) -> None:
    place = code.binary("addi", code.word(table + 8 * layout.RECORDS), code.constant(8 * number * layout.RECORD))
    number_of_program = program(code)
    _atomic(code, "add", code.pointer(place, layout.LANES), total)
    high = code.binary("shli", number_of_program, code.constant(layout.KEY_BITS))
    key = code.binary("ori", _biased(code, lowest), high)
    _atomic(code, "umax", code.pointer(place, layout.LOWEST), code.binary("xori", key, code.constant(-1)))
    noted = _atomic(code, "add", code.pointer(place, layout.NOTED), code.constant(1))
    room = code.compare("ult", noted, code.constant(layout.MAX_NOTES))
    note = code.binary("addi", place, code.binary("muli", noted, code.constant(8 * layout.NOTE)))
    for position, value in enumerate((lowest, number_of_program, other)):
        code.put(f"tt.store {code.pointer(note, layout.NOTES + position)}, {value}, {room} : {TABLE_POINTER}")
    word = code.binary("shrui", number_of_program, code.constant(6))
    word = code.binary("andi", word, code.constant(layout.PROGRAM_WORDS - 1))
    bits = code.binary("addi", place, code.binary("muli", word, code.constant(8)))
    bit = code.binary("shli", code.constant(1), code.binary("andi", number_of_program, code.constant(63)))
    _atomic(code, "or", code.pointer(bits, layout.PROGRAMS), bit)


def _biased(code: Code, offset: str) -> str:
    """An offset as it stands in a key."""
    biased = code.binary("addi", offset, code.constant(layout.KEY_BIAS))
    biased = code.binary("maxsi", biased, code.constant(0))
    return code.binary("minsi", biased, code.constant(2 * layout.KEY_BIAS - 1))


def program(code: Code) -> str:
    """The number of this program: the first axis runs fastest."""
    x, y, z = (
        code.value(f"arith.extui {code.value(f'tt.get_program_id {axis} : i32')} : i32 to i64") for axis in "xyz"
    )
    across, down = (
        code.value(f"arith.extui {code.value(f'tt.get_num_programs {axis} : i32')} : i32 to i64") for axis in "xy"
    )
    rows = code.binary("addi", y, code.binary("muli", down, z))
    return code.binary("addi", x, code.binary("muli", across, rows))


def _atomic(code: Code, operation: str, pointer: str, value: str) -> str:
    true = code.constant(1, "i1")
    return code.value(
        f"tt.atomic_rmw {operation}, relaxed, gpu, {pointer}, {value}, {true} : ({TABLE_POINTER}, i64, i1) -> i64"
    )
