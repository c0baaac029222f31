"""Loads, stores and atomics of many programs at once: the check, then the access.

Whatever the sequential engine would report stops the launch (`NotBatched`); it is undone and run there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kcheck.worker.backends.batched.footprint import Runs, Turns, numbers_of
from kcheck.worker.backends.batched.places import Bools, Positions, distinct, heads, lanes_of, place, windows
from kcheck.worker.backends.batched.programs import Programs
from kcheck.worker.backends.batched.record import Record
from kcheck.worker.backends.batched.rows import Rows, are_apart, read, rows_of
from kcheck.worker.backends.batched.values import (
    Array,
    Constant,
    Lanes,
    NotBatched,
    Sum,
    is_uniform,
    split,
)
from kcheck.worker.backends.interpret.arguments import TAG_SHIFT, Argument
from kcheck.worker.backends.interpret.triton_seams import interpreter


class Memory(Record):
    """The memory of one launch.

    Args:
        arguments: Its tensor arguments.
        programs: How many programs run in all.
        poison: Byte that memory without a value is filled with, if known.
        turns: Whether programs take turns at atomics.
    """

    def __init__(
        self, arguments: Sequence[Argument], programs: int, poison: int | None, turns: Turns = "never"
    ) -> None:  # fmt: skip
        super().__init__(programs, poison, turns)
        self._arguments = {argument.tag: argument for argument in arguments}

    # -- loads ------------------------------------------------------------------------------------------------------

    def load(self, pointer: Any, mask: Any, other: Any, programs: Programs) -> Any:
        """``tl.load``; lanes that are masked off without `other` are zero, as on today's GPUs."""
        element = pointer.get_element_ty()
        dtype = interpreter._get_np_dtype(element)
        if isinstance(mask, Constant):
            if not mask.value:
                return self._nothing(pointer, other, dtype, element)
            mask = None
        parts = split(pointer)
        if parts is None or (mask is not None and not is_uniform(mask)):
            made = self._load_rows(rows_of(parts, mask, dtype.itemsize, programs), other, dtype)
            return Lanes(self._load_lanes(pointer, mask, other, dtype, programs) if made is None else made, element)
        lanes = None if mask is None else np.flatnonzero(mask.data)
        if lanes is not None and not lanes.size:
            return self._nothing(pointer, other, dtype, element)
        values = self._load_runs(parts, lanes, dtype, programs)
        shape = parts.within.shape[1:]
        if lanes is None:
            return Lanes(values.reshape(len(values), *shape), element)
        if other is None:
            made = np.zeros((len(values), parts.within.size), dtype)
        else:
            count = max(len(values), len(other.data))
            made = np.array(np.broadcast_to(other.data, (count, *shape)).reshape(count, -1), order="C")
        made[:, lanes] = values
        return Lanes(made.reshape(len(made), *shape), element)

    def _nothing(self, pointer: Any, other: Any, dtype: np.dtype[Any], element: Any) -> Any:
        """What a load gives all of whose lanes are masked off."""
        shape = (pointer.within if isinstance(pointer, Sum) else pointer.data).shape[1:]
        data = np.zeros((1, *shape), dtype) if other is None else other.data
        return Lanes(np.array(np.broadcast_to(data, (len(data), *shape)), order="C"), element)

    def _load_runs(self, parts: Sum, lanes: Any, dtype: np.dtype[Any], programs: Programs) -> Array:
        """The lanes of pointers that are a sum; shape (programs or 1, lanes)."""
        argument, starts, length = self._runs(parts, lanes, dtype.itemsize)
        flat = argument.backing.flat(dtype)
        memory, where = place(flat, starts, length)
        values = (memory.copy() if where is ... else memory[where]).view(dtype).reshape(len(starts), -1)
        if argument.shadow is not None:
            self.check_values(argument, starts, length, values)
            numbers = programs.numbers if len(starts) == len(programs) else None
            self.footprint(argument, dtype.itemsize).note(Runs("read", numbers, starts, length))
        return values

    def _load_rows(self, rows: Rows | None, other: Any, dtype: np.dtype[Any]) -> Array | None:
        """The lanes of rows of neighbours; None if they have to be looked at one by one."""
        found = self._found(rows, dtype.itemsize)
        if rows is None or found is None:
            return None
        argument, starts = found
        values, made = read(argument.backing.flat(dtype), starts, rows, dtype.type(0) if other is None else other.data)
        if argument.shadow is not None:
            self.check_values(argument, starts, rows.length, values)
            self.footprint(argument, dtype.itemsize).note(Runs("read", rows.numbers, starts[:, None], rows.length))
        return made

    def _load_lanes(self, pointer: Any, mask: Any, other: Any, dtype: np.dtype[Any], programs: Programs) -> Array:
        pointers, lanes = lanes_of(pointer, mask)
        if lanes is not None:
            pointers, lanes = np.broadcast_arrays(pointers, lanes)
        argument, index = self.positions(pointers, lanes, dtype.itemsize, pointer)
        flat = argument.backing.flat(dtype) if argument is not None else np.empty(0, dtype)
        fallback = np.zeros(1, dtype) if other is None else other.data
        if argument is None or not flat.size:
            shape = np.broadcast_shapes(index.shape, fallback.shape)
            return np.array(np.broadcast_to(fallback, shape), dtype=dtype, order="C")
        values: Array = flat.take(index, mode="clip")  # lanes that are masked off may point anywhere
        if argument.shadow is not None:
            where = index if lanes is None else index[lanes]
            self.check_values(argument, where, 1, values if lanes is None else values[lanes])
            self.note_lanes("read", argument, dtype.itemsize, index, lanes, programs)
        return values if lanes is None else np.where(lanes, values, fallback)

    # -- stores -----------------------------------------------------------------------------------------------------

    def store(self, pointer: Any, value: Any, mask: Any, programs: Programs) -> None:
        """``tl.store``."""
        if isinstance(mask, Constant):
            if not mask.value:
                return
            mask = None
        data = value.data
        parts = split(pointer)
        if parts is None or (mask is not None and not is_uniform(mask)):
            if not self._store_rows(rows_of(parts, mask, data.itemsize, programs), data):
                self._store_lanes(pointer, data, mask, programs)
            return
        lanes = None if mask is None else np.flatnonzero(mask.data)
        if lanes is not None and not lanes.size:
            return
        argument, starts, length = self._runs(parts, lanes, data.itemsize)
        self.check_writable(argument)
        if len(starts) == 1 and len(programs) > 1:
            raise NotBatched  # every program writes to the same place
        if not distinct(starts, length):
            self._store_lanes(pointer, data, mask, programs)
            return
        count = len(starts)
        shape = (len(data), *parts.within.shape[1:])
        rows = np.broadcast_to(data, shape).reshape(len(data), -1)
        rows = np.broadcast_to(rows if lanes is None else rows[:, lanes], (count, starts.shape[1] * length))
        flat = argument.backing.flat(data.dtype)
        target, where = place(flat, starts, length)
        new = rows.reshape(*starts.shape, length) if where is ... else np.ascontiguousarray(rows).view(target.dtype)
        self.save(target, where, target.copy() if where is ... else target[where])
        target[where] = new
        if argument.shadow is not None:
            self.footprint(argument, data.itemsize).note(Runs("write", programs.numbers, starts, length))

    def _store_rows(self, rows: Rows | None, data: Array) -> bool:
        """Store rows of neighbours; false if their lanes have to be looked at one by one."""
        found = self._found(rows, data.itemsize)
        if rows is None or found is None or not found[0].writable or not are_apart(found[1], rows.length):
            return False
        argument, starts = found
        new = np.broadcast_to(data, (*rows.active.shape, rows.length))[rows.active]
        target = windows(argument.backing.flat(data.dtype), rows.length)
        self.save(target, starts, target[starts])
        target[starts] = np.ascontiguousarray(new).view(target.dtype)[:, 0]
        if argument.shadow is not None:
            self.footprint(argument, data.itemsize).note(Runs("write", rows.numbers, starts[:, None], rows.length))
        return True

    def _store_lanes(self, pointer: Any, data: Array, mask: Any, programs: Programs) -> None:
        pointers, lanes = lanes_of(pointer, mask)
        shape = (len(programs), *pointers.shape[1:])
        numbers = numbers_of(programs.numbers, shape)
        spread = (np.broadcast_to(one, shape) for one in (pointers, numbers, data))
        active = slice(None) if lanes is None else np.broadcast_to(lanes, shape)
        pointers, numbers, new = (one[active].reshape(-1) for one in spread)
        argument, where = self.positions(pointers, None, data.itemsize, pointer)
        if argument is None:
            return
        self.check_writable(argument)
        if argument.shadow is not None:
            self.footprint(argument, data.itemsize).lanes("write", numbers, where)
        flat = argument.backing.flat(data.dtype)
        self.save(flat, where, flat[where])
        flat[where] = new
        kept = flat[where]
        lost = kept != new
        if lost.any() and (lost & ((kept == kept) | (new == new))).any():
            raise NotBatched

    # -- where pointers lead ----------------------------------------------------------------------------------------

    def argument_of(self, pointer: Any) -> Argument:
        """The argument that a pointer came from."""
        found = self._arguments.get(int(pointer) >> TAG_SHIFT)
        if found is None:
            raise NotBatched("a pointer that was read from memory")
        return found

    def _outside(self, argument: Argument, pointers: Array, width: int) -> Bools:
        return argument.outside(pointers, width)

    def _runs(self, parts: Sum, lanes: Any, width: int) -> tuple[Argument, Positions, int]:
        """Where pointers that are a sum lead, all of whose lanes are good.

        Returns:
            The argument, the first element of each run of neighbours of shape (programs or 1, runs), and the elements
            of a run.
        """
        if parts.wrapped:
            raise NotBatched
        across = parts.across.reshape(-1)
        within = parts.within.reshape(-1) if lanes is None else parts.within.reshape(-1)[lanes]
        argument = self.argument_of(across[0])
        firsts, length = heads(within, width)
        starts = across[:, None] + firsts
        if self._outside(argument, starts, length * width).any():
            raise NotBatched
        offsets = starts - argument.backing_pointer
        if width > 1:
            if (offsets & np.uint64(width - 1)).any():
                raise NotBatched
            offsets >>= np.uint64(width.bit_length() - 1)
        return argument, offsets.view(np.int64), length

    def _found(self, rows: Rows | None, width: int) -> tuple[Argument, Positions] | None:
        """Where rows lead, if all of them are good."""
        if rows is None:
            return None
        argument = self.argument_of(rows.pointers[0])
        offsets = rows.pointers - argument.backing_pointer
        if self._outside(argument, rows.pointers, rows.length * width).any() or (offsets & np.uint64(width - 1)).any():
            return None
        return argument, (offsets >> np.uint64(width.bit_length() - 1)).view(np.int64)

    def positions(self, pointers: Array, lanes: Any, width: int, pointer: Any) -> tuple[Argument | None, Positions]:
        """Where pointers lead, all of whose active lanes are good; no argument if none is active.

        Args:
            pointers: Tagged.
            lanes: Which are active, in the same shape; None for all.
            width: Bytes of each element.
            pointer: The handle that they come from.
        """
        if getattr(pointer, "wrapped", False):
            raise NotBatched
        if not pointers.size or (lanes is not None and not lanes.any()):
            return None, np.zeros(pointers.shape, np.int64)
        argument = self.argument_of(pointers.flat[0] if lanes is None else pointers[lanes][0])
        bad = self._outside(argument, pointers, width)
        offsets = pointers - argument.backing_pointer
        if width > 1:
            bad |= (offsets & np.uint64(width - 1)) != 0
            offsets >>= np.uint64(width.bit_length() - 1)
        if lanes is not None:
            bad &= lanes
        if bad.any():
            raise NotBatched
        return argument, offsets.view(np.int64)

    def check_writable(self, argument: Argument) -> None:
        """Look whether an argument may be written."""
        if not argument.writable:
            raise NotBatched
