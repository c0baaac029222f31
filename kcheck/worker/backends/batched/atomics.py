"""Atomics of many programs at once, in the order of the programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from kcheck.worker.backends.batched.footprint import numbers_of
from kcheck.worker.backends.batched.memory import Memory
from kcheck.worker.backends.batched.places import Positions, lanes_of
from kcheck.worker.backends.batched.programs import Programs
from kcheck.worker.backends.batched.values import Array, Lanes, NotBatched
from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK, Argument
from kcheck.worker.backends.interpret.numerics import to_float, to_raw
from kcheck.worker.backends.interpret.triton_seams import native_memory, tl

# Of integers, in any order.
_COMMUTING = ("ADD", "AND", "OR", "XOR", "MIN", "MAX", "UMIN", "UMAX")


def rmw(
    memory: Memory, native: tuple[Any, Any], pointer: Any, value: Any, mask: Any, programs: Programs, unused: bool
) -> Any:
    """Atomics but compare-and-swap.

    Args:
        memory: Of the launch.
        native: Operation and memory order, as Triton's extension wants them.
        pointer: Where.
        value: Operand.
        mask: Active lanes.
        programs: Those that run.
        unused: Nobody looks at what was there before.
    """
    operation, order = native
    element = value.dtype.scalar
    name = str(operation).rsplit(".", 1)[-1]
    if element.primitive_bitwidth < 32 and value.data.dtype.kind != "f" and (element, name) != (tl.bfloat16, "FADD"):
        raise NotBatched(f"atomics on {element}")
    pointers, lanes = lanes_of(pointer, mask)
    shape = (len(programs), *pointers.shape[1:])
    active = np.ones(shape, bool) if lanes is None else np.array(np.broadcast_to(lanes, shape), order="C")
    addresses, argument, index = _positions(memory, pointers, active, value.data.itemsize, shape, pointer)
    if argument is None:
        return Lanes(np.zeros(shape, value.data.dtype), element)
    kind = 1 + _COMMUTING.index(name) if unused and name in _COMMUTING and value.data.dtype.kind != "f" else 0
    _note(memory, argument, value.data.itemsize, index, active, programs, kind)
    turn = memory.next_turn(not unused or name not in (*_COMMUTING, "FADD"))
    addresses, index, active, operand = (
        np.ascontiguousarray(one[turn]) for one in (addresses, index, active, np.broadcast_to(value.data, shape))
    )
    if element is tl.bfloat16:
        flat = argument.backing.flat(operand.dtype)
        result = np.zeros(shape, operand.dtype)
        result[active] = _add_bfloat16(flat, index[active], operand[active])
    else:
        result = np.array(native_memory.atomic_rmw(operation, addresses, operand, active, order)).reshape(shape)
        result[~active] = 0  # as one after the other
    return Lanes(result[turn], element)


def compare_and_swap(memory: Memory, order: Any, pointer: Any, expected: Any, value: Any, programs: Programs) -> Any:
    """``tl.atomic_cas``; see `rmw`."""
    pointers = pointer.data
    shape = (len(programs), *pointers.shape[1:])
    active = np.ones(shape, bool)
    addresses, argument, index = _positions(memory, pointers, active, value.data.itemsize, shape, pointer)
    if argument is None:
        raise NotBatched
    _note(memory, argument, value.data.itemsize, index, active, programs, 0)
    turn = memory.next_turn(ordered=True)
    operands = (np.broadcast_to(one, shape)[turn] for one in (addresses, expected.data, value.data))
    result = native_memory.atomic_cas(*map(np.ascontiguousarray, operands), order)
    return Lanes(np.asarray(result).reshape(shape)[turn], expected.dtype.scalar)


def _positions(
    memory: Memory, pointers: Array, active: Array, width: int, shape: tuple[int, ...], pointer: Any
) -> tuple[Array, Argument | None, Positions]:
    spread = np.ascontiguousarray(np.broadcast_to(pointers, shape))
    argument, index = memory.positions(spread, active, width, pointer)
    if argument is not None:
        memory.check_writable(argument)
    return spread & ADDRESS_MASK, argument, index


def _note(
    memory: Memory, argument: Argument, width: int, index: Positions, active: Array, programs: Programs, kind: int
) -> None:
    where = index[active]
    flat = argument.backing.flat(np.dtype(f"u{width}"))
    old = flat[where]
    memory.save(flat, where, old)
    if argument.shadow is None:
        return
    if argument.shadow.valueless:
        memory.check_values(argument, where, 1, old)
    footprint = memory.footprint(argument, width)
    first = memory.first_call(argument)
    footprint.atomics(numbers_of(programs.numbers, index.shape)[active], where, kind, first)


def _add_bfloat16(flat: Array, where: Positions, operand: Array) -> Array:
    """Add to elements one after the other; gives what was there before each addition."""
    before = np.empty(operand.shape, operand.dtype)
    left = np.arange(len(where))
    while left.size:
        _, first = np.unique(where[left], return_index=True)
        now = left[first]
        before[now] = flat[where[now]]
        total = to_float(before[now], tl.bfloat16) + to_float(operand[now], tl.bfloat16)
        flat[where[now]] = to_raw(total, tl.bfloat16)
        left = np.delete(left, first)
    return before
