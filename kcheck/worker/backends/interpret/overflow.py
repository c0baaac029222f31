"""32-bit integer arithmetic that wraps and reaches an address.

A sum, difference or product of 32-bit integers whose true value does not fit carries that value along, as long as
nothing but sums, differences and products are made of it. What goes through ``%``, ``&`` or a shift was meant to wrap
(a hash), and is let go. Bounds of the values, kept with them, spare a look at most of the arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from kcheck.worker.backends.base import AccessKind, Frame
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK
from kcheck.worker.backends.interpret.hazards import HazardLog
from kcheck.worker.backends.interpret.memory import Memory
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import interpreter, tl

_Operation = Callable[[Any, Any], Any]

_LIMIT = 2**31
_BOUNDS: dict[_Operation, Callable[[int, int], int]] = {
    operator.add: operator.add,
    operator.sub: operator.add,
    operator.mul: operator.mul,
}
LINEAR = frozenset(_BOUNDS)


class _State:
    """What is known of the watch that is entered: whether anything wrapped, and where hazards go."""

    wrapped = False
    log: HazardLog | None = None


state = _State()


def install(patches: PatchSet) -> None:
    """Keep true values over casts of integers."""
    owner = interpreter.InterpreterBuilder
    patches.put(owner, "create_int_cast", _int_cast(patches.get(owner, "create_int_cast")))


def begin(log: HazardLog | None) -> None:
    """A watch is entered, or left (None)."""
    state.wrapped, state.log = False, log


def _bound(handle: Any) -> int:
    """No value of the handle is larger in magnitude."""
    found = getattr(handle, "bound", None)
    if found is not None:
        return int(found)
    data = handle.data
    if data.size == 1:
        return abs(int(data.item()))
    bound = max(abs(int(data.min())), abs(int(data.max()))) if data.size else 0
    handle.bound = bound
    return bound


def combine(kind: _Operation, function: _Operation, left: Any, right: Any, made: Any) -> None:
    """Note the bound of a 32-bit result, and its true values if they are others.

    Args:
        kind: Addition, subtraction or multiplication.
        function: The same, in the order in which the operands come.
        left: The handle of an operand.
        right: That of the other, or a number.
        made: The result's.
    """
    bound = _BOUNDS[kind](_bound(left), abs(int(right)) if isinstance(right, np.integer) else _bound(right))
    if bound < _LIMIT and not state.wrapped:
        made.bound = bound
        return
    true = function(_true(left), _true(right))
    if (true != made.data).any():
        made.true = true
        made.cause = _inherited(left, right) or _here()
        state.wrapped = True
    elif bound < _LIMIT:
        made.bound = bound


def carry(function: _Operation, left: Any, right: Any, made: Any) -> None:
    """The true values of a 64-bit result or of a pointer, where an operand has some; see `combine`."""
    if state.wrapped and (_has(left) or _has(right)):
        made.true = function(_true(left), _true(right))
        made.cause = _inherited(left, right)


def keep(source: Any, made: Any, change: Callable[[Any], Any]) -> None:
    """The true values of a handle with the same values in another shape or type."""
    if state.wrapped and _has(source):
        made.true = change(source.true)
        made.cause = source.cause


def _has(side: Any) -> bool:
    return getattr(side, "true", None) is not None


def _true(side: Any) -> Any:
    if isinstance(side, np.generic):
        return side.astype(np.int64)
    true = getattr(side, "true", None)
    return side.data.astype(np.int64) if true is None else true


def _inherited(left: Any, right: Any) -> Frame | None:
    return getattr(left, "cause", None) or getattr(right, "cause", None)


def _here() -> Frame | None:
    frame = frames.access_frame()
    return None if frame is None else frames.frame_at(frame.f_code, frame.f_lasti)


def _int_cast(original: Any) -> Any:
    def create_int_cast(self: Any, source: Any, target: Any, signed: Any) -> Any:
        made = original(self, source, target, signed)
        if state.wrapped and target.scalar in (tl.int32, tl.int64):
            keep(source, made, lambda true: true)
        return made

    return create_int_cast


def check_access(access: AccessKind, handle: Any, mask: Any, memory: Memory) -> None:
    """An access begins: look whether active lanes have another address than exact arithmetic gives.

    Args:
        access: What the kernel does.
        handle: Of the pointers.
        mask: Active lanes; None for all.
        memory: Knows the arguments of the launch.
    """
    true = getattr(handle, "true", None)
    if true is None or state.log is None:
        return
    pointers = np.broadcast_to(handle.data, np.broadcast_shapes(handle.data.shape, np.shape(true)))
    wrong = np.broadcast_to(true, pointers.shape) != pointers.view(np.int64)
    if mask is not None:
        wrong &= np.broadcast_to(mask, pointers.shape)
    if not wrong.any():
        return
    argument = memory.argument_of(pointers[wrong][0])
    if argument is not None:
        offsets = (pointers[wrong] & ADDRESS_MASK).view(np.int64) - argument.shown.address
        start = int(argument.backing_pointer.view(np.int64)) + argument.shown.address - argument.backing.address
        exact = int(np.broadcast_to(true, pointers.shape)[wrong][0]) - start
        state.log.overflowed(access, argument, offsets, handle.cause, exact)
