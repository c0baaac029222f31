"""Casts between pointers and integers, and atomics on types that Triton's extension module does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK
from kcheck.worker.backends.interpret.numerics import to_float, to_raw
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import interpreter, tl
from kcheck.worker.backends.interpret.types import Handle, PointerType


def install(patches: PatchSet) -> None:
    """Replace the builder's casts and atomics."""
    owner = interpreter.InterpreterBuilder
    patches.put(owner, "create_ptr_to_int", _pointer_to_integer)
    patches.put(owner, "create_int_to_ptr", _integer_to_pointer)
    patches.put(owner, "create_bitcast", _bitcast(owner.create_bitcast))
    patches.put(owner, "create_atomic_rmw", _atomic_rmw(owner.create_atomic_rmw))
    patches.put(owner, "create_descriptor_reduce", _descriptor_reduce)


def _pointer_to_integer(self: Any, source: Any, target: Any) -> Any:
    """The plain address: a kernel that looks at its bits must see what it would see on a GPU."""
    return Handle((source.data & ADDRESS_MASK).astype(interpreter._get_np_dtype(target)), target.scalar)


def _integer_to_pointer(self: Any, source: Any, target: Any) -> Any:
    return Handle(source.data.astype(np.uint64), target.scalar)


def _bitcast(original: Any) -> Any:
    def create_bitcast(self: Any, source: Any, target: Any) -> Any:
        from_pointer = isinstance(source.dtype.scalar, PointerType)
        to_pointer = isinstance(target.scalar, PointerType)
        if from_pointer and to_pointer:
            if _width(source.dtype.scalar) < _width(target.scalar):
                interpreter._interpreter.recast = True
            return Handle(source.data, target.scalar)
        if from_pointer:
            return _pointer_to_integer(self, source, target)
        if to_pointer:
            return _integer_to_pointer(self, source, target)
        if not source.data.flags.c_contiguous:
            source = Handle(np.ascontiguousarray(source.data), source.dtype)
        return original(self, source, target)

    return create_bitcast


def _width(pointer: Any) -> int:
    """Bytes of what it points to."""
    width: int = max(1, pointer.element_ty.primitive_bitwidth // 8)
    return width


def _atomic_rmw(original: Any) -> Any:
    float_add = interpreter._ir.ATOMIC_OP.FADD

    def create_atomic_rmw(self: Any, operation: Any, pointer: Any, value: Any, mask: Any, *order: Any) -> Any:
        if operation != float_add or value.dtype.scalar is not tl.bfloat16:
            return original(self, operation, pointer, value, mask, *order)
        addends = to_float(np.broadcast_to(value.data, pointer.data.shape).reshape(-1), tl.bfloat16)

        def add(lane: int, before: Any) -> Any:
            total = to_float(np.array([before]), tl.bfloat16) + addends[lane]
            return to_raw(total, tl.bfloat16)[0]

        data = interpreter._interpreter.atomic_add_bits(
            pointer.data, mask.data, np.dtype(np.uint16), add, self.ir_sem_to_interpreter_sem[order[0]]
        )
        return Handle(data, tl.bfloat16)

    return create_atomic_rmw


def reducing(kind: Any, element: Any) -> Any:
    """The atomic that a reduction through a tensor descriptor is made of.

    Args:
        kind: Triton's ``DESCRIPTOR_REDUCE_KIND``.
        element: Type of the values.

    Raises:
        NotImplementedError: The CPU has none.
    """
    operations, kinds = interpreter._ir.ATOMIC_OP, interpreter._ir.DESCRIPTOR_REDUCE_KIND
    floating = element.is_floating()
    unsigned = not floating and element.is_int_unsigned()
    if floating and kind != kinds.ADD:
        raise NotImplementedError("atomic minimum or maximum of floats through a descriptor")
    return {
        kinds.ADD: operations.FADD if floating else operations.ADD,
        kinds.MIN: operations.UMIN if unsigned else operations.MIN,
        kinds.MAX: operations.UMAX if unsigned else operations.MAX,
        kinds.AND: operations.AND,
        kinds.OR: operations.OR,
        kinds.XOR: operations.XOR,
    }[kind]


def _descriptor_reduce(self: Any, kind: Any, descriptor: Any, value: Any, offsets: Any) -> Any:
    """An atomic through a tensor descriptor: the same atomic on every element inside the descriptor's shape."""
    operation = reducing(kind, value.dtype)
    pointers, mask = descriptor.materialize_pointers(offsets)
    lanes = mask if isinstance(mask, Handle) else Handle(np.asarray(mask), tl.int1)
    relaxed = interpreter._ir.MEM_SEMANTIC.RELAXED
    return self.create_atomic_rmw(operation, pointers, value, lanes, relaxed, interpreter._ir.MEM_SYNC_SCOPE.GPU)
