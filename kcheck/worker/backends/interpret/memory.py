"""Every load, store and atomic of a kernel ends here: the check, then the access.

A `Memory` stands in for Triton's ``_interpreter`` extension module, whose four entry points get arrays of pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.base import AccessKind
from kcheck.worker.backends.interpret.arguments import (
    ADDRESS_MASK,
    TAG_SHIFT,
    TAG_SHIFT_U64,
    Argument,
    Backing,
    Cells,
)
from kcheck.worker.backends.interpret.decoys import decoy_values
from kcheck.worker.backends.interpret.faults import FaultLog
from kcheck.worker.backends.interpret.hidden import Hidden
from kcheck.worker.backends.interpret.history import AccessHistory
from kcheck.worker.backends.interpret.lanes import active, all_lanes, element_index, gather, partial
from kcheck.worker.backends.interpret.membership import Addresses, Bools, Intervals
from kcheck.worker.backends.interpret.spinning import SpinGuard
from kcheck.worker.backends.interpret.trace import Trace
from kcheck.worker.backends.interpret.triton_seams import ACQUIRING, RELEASING, native_memory

Array = npt.NDArray[Any]


class Memory:
    """Checked memory of one watch.

    Args:
        regions: The target's tensor arguments.
        spans: ``(address, bytes)`` that are safe to read beside the regions.
        decoy_seed: Seed of what bad reads elsewhere yield.
        faults: Where invalid accesses are recorded.
        history: Told of every good access to memory that kernels may write.
        spin: Told of every access, so that it sees a program that waits for another one.
        hidden: What lanes hold that are masked off without ``other``.
        trace: Takes down the path of accesses.
    """

    def __init__(
        self, regions: Sequence[Cells], spans: Sequence[tuple[int, int]], decoy_seed: int, faults: FaultLog,
        history: AccessHistory, spin: SpinGuard, hidden: Hidden, trace: Trace | None,
    ) -> None:  # fmt: skip
        self._regions = regions
        self._spans = Intervals(spans)
        self._backings = Intervals((cells.backing.address, cells.backing.size) for cells in regions)
        self._seed = decoy_seed
        self._faults = faults
        self._history = history
        self._spin = spin
        self._hidden = hidden
        self._trace = trace
        self._arguments: dict[int, Argument] = {}
        self._noted: dict[tuple[int, int], Backing] = {}
        self._noted_intervals = Intervals(())
        # Set by a cast to a wider pointer type: from then on a pointer need not be aligned to what it points to.
        self.recast = False

    def __getattr__(self, name: str) -> Any:
        return getattr(native_memory, name)

    def begin_launch(self, arguments: Sequence[Argument]) -> None:
        """Forget the arguments of the launch before."""
        self._arguments = {argument.tag: argument for argument in arguments}
        self.recast = False

    def argument_of(self, pointer: np.uint64) -> Argument | None:
        """The argument that a pointer came from, if it carries a tag."""
        return self._arguments.get(int(pointer) >> TAG_SHIFT)

    def note(self, tensor: torch.Tensor) -> None:
        """Allow pointers from memory to reach a tensor whose address the target asked for."""
        backing = Backing.of(tensor)
        if any(backing.address == cells.backing.address for cells in self._regions):
            return  # its cells are known more exactly
        key = (backing.address, backing.size)
        if key not in self._noted:
            self._noted[key] = backing  # held, so that the memory is not given to another tensor meanwhile
            self._noted_intervals = Intervals(self._noted)

    # -- the four entry points, with the signatures of Triton's own -------------------------------------------------

    def load(
        self, pointers: Addresses, mask: Array | None, other: Array | None, dtype: np.dtype[Any],
        volatile: bool = False,
    ) -> Array:  # fmt: skip
        """Read lanes; those that are masked off yield `other`."""
        mask = partial(mask)
        if self._spin.suspicious:
            self._spin.repeated(pointers)
        if self._trace is not None:
            self._trace.note(pointers, mask, self._arguments)
        argument = self._cleared(pointers, mask, dtype.itemsize)
        if other is None and mask is not None:
            known = argument or self.argument_of(pointers.flat[0])
            other = self._hidden.value(dtype, None if known is None else known.dtype)
        if argument is None:
            return self._load_exactly(pointers, mask, other, dtype)
        index = element_index(argument, pointers, dtype.itemsize)
        values = gather(argument, index, mask, other, dtype)
        if argument.shadow is not None:
            if volatile:
                self._history.volatile(argument)
            else:
                seen = self._history.read(argument, *active(mask, index, values))
                if mask is None:
                    return seen.reshape(values.shape)
                values[np.broadcast_to(mask, values.shape)] = seen
        return values

    def store(self, pointers: Addresses, values: Array, mask: Array | None) -> None:
        """Write lanes."""
        mask = partial(mask)
        self._spin.changed()
        if self._trace is not None:
            self._trace.note(pointers, mask, self._arguments)
        argument = self._cleared(pointers, mask, values.itemsize)
        if argument is not None and argument.writable:
            index = element_index(argument, pointers, values.itemsize)
            self._scatter(argument, *active(mask, index, np.broadcast_to(values, index.shape)))
            return
        allowed = self._judge("write", pointers, all_lanes(pointers, mask), values.itemsize)
        values = np.broadcast_to(values, pointers.shape)
        for argument, index, lanes in self._by_argument(pointers, allowed, values.itemsize):
            self._history.write(argument, index, values[lanes])
        native_memory.store(pointers & ADDRESS_MASK, values, allowed)

    def atomic_rmw(self, operation: Any, pointers: Addresses, values: Array, mask: Array, order: Any) -> Array:
        """Read, modify and write each lane; yields what was there, zero for lanes that are masked off."""
        allowed = self._judge_atomic(pointers, mask, values.itemsize)
        before = self._peek(pointers, allowed, values.dtype)
        addresses = pointers & ADDRESS_MASK
        result = np.array(native_memory.atomic_rmw(operation, addresses, values, allowed, order))
        result = result.reshape(pointers.shape)
        result[~allowed] = 0  # the extension leaves there what its memory held before
        self._note_atomic(pointers, allowed, result, order)
        self._after_atomic(pointers, allowed, before)
        return result

    def atomic_cas(self, pointers: Addresses, expected: Array, values: Array, order: Any) -> Array:
        """Compare and swap each lane; yields what was there."""
        allowed = self._judge_atomic(pointers, None, values.itemsize)
        before = self._peek(pointers, allowed, values.dtype)
        expected, values = np.broadcast_to(expected, pointers.shape), np.broadcast_to(values, pointers.shape)
        result = np.zeros(pointers.shape, expected.dtype)
        if allowed.any():
            addresses = np.ascontiguousarray(pointers[allowed] & ADDRESS_MASK)
            result[allowed] = native_memory.atomic_cas(addresses, expected[allowed], values[allowed], order)
        self._note_atomic(pointers, allowed, result, order)
        self._after_atomic(pointers, allowed, before)
        return result

    def atomic_add_bits(self, pointers: Addresses, mask: Array, dtype: np.dtype[Any], add: Any, order: Any) -> Array:
        """Atomic addition for a type that the extension does not know.

        Args:
            pointers: Tagged.
            mask: Active lanes.
            dtype: Of the raw bits.
            add: From the flat lane number and the old bits to the new bits.
            order: Memory order, as Triton passes it to the extension.
        """
        allowed = self._judge_atomic(pointers, mask, dtype.itemsize)
        addresses = np.ascontiguousarray(pointers & ADDRESS_MASK).reshape(-1)
        result = np.zeros(addresses.shape, dtype)
        one = np.ones(1, bool)
        for lane in np.flatnonzero(allowed):
            where = addresses[lane : lane + 1]
            result[lane : lane + 1] = native_memory.load(where, one, np.zeros(1, dtype), dtype)
            native_memory.store(where, np.array([add(lane, result[lane])], dtype), one)
        self._spin.changed()
        self._note_atomic(pointers, allowed, result.reshape(pointers.shape), order)
        return result.reshape(pointers.shape)

    def _cleared(self, pointers: Addresses, mask: Array | None, width: int) -> Argument | None:
        """The argument behind an access all of whose active lanes are known to be good and aligned."""
        argument = self._arguments.get(pointers.item(0) >> TAG_SHIFT) if pointers.size else None
        if argument is None:
            return None
        bad = argument.outside(pointers, width)
        if self.recast:
            bad |= (pointers - argument.backing_pointer) & np.uint64(width - 1) != 0
        if mask is not None:
            bad &= mask
        return None if bad.any() else argument

    def _scatter(self, argument: Argument, index: Array, values: Array) -> None:
        followed = argument.shadow is not None
        if followed:
            self._history.write(argument, index, values)
        argument.backing.flat(values.dtype)[index] = values
        if followed:
            self._history.stored(argument, index, values)

    def _note_atomic(self, pointers: Addresses, allowed: Bools, before: Array, order: Any) -> None:
        acquires, releases = order in ACQUIRING, order in RELEASING
        before = before.reshape(pointers.shape)
        for argument, index, lanes in self._by_argument(pointers, allowed, before.itemsize):
            self._history.atomic(argument, index, before[lanes], acquires=acquires, releases=releases)

    def _by_argument(self, pointers: Addresses, lanes: Bools, width: int) -> Iterator[tuple[Argument, Array, Bools]]:
        """Good lanes by the argument that they are of, where its memory is followed; with their positions in it."""
        if not lanes.any():
            return
        tags = pointers >> TAG_SHIFT_U64
        for tag in np.unique(tags[lanes]):
            argument = self._arguments.get(int(tag))
            if argument is None or argument.shadow is None:
                continue
            mine = lanes & (tags == tag)
            offsets = pointers[mine] - argument.backing_pointer
            if not (offsets & np.uint64(width - 1)).any():
                yield argument, (offsets // np.uint64(width)).view(np.int64), mine

    # -- the exact path ---------------------------------------------------------------------------------------------

    def _load_exactly(
        self, pointers: Addresses, mask: Array | None, other: Array | None, dtype: np.dtype[Any]
    ) -> Array:
        lanes = all_lanes(pointers, mask)
        allowed = self._judge("read", pointers, lanes, dtype.itemsize)
        addresses = pointers & ADDRESS_MASK
        stray = lanes & ~allowed
        known = np.isin(pointers >> TAG_SHIFT_U64, [0, *self._arguments])
        readable = allowed | (stray & known & self._spans.contains(addresses, dtype.itemsize))
        fallback = np.zeros(pointers.shape, dtype) if other is None else np.broadcast_to(other, pointers.shape)
        result: Array = native_memory.load(addresses, readable, fallback.astype(dtype, copy=False), dtype)
        result = np.array(result).reshape(pointers.shape)
        for argument, index, mine in self._by_argument(pointers, allowed, dtype.itemsize):
            result[mine] = self._history.read(argument, index, result[mine])
        unknown = stray & ~readable
        if unknown.any():
            origin = self.argument_of(pointers[unknown].flat[0])
            result = np.array(result)
            kind = None if origin is None else origin.dtype
            result[unknown] = decoy_values(addresses[unknown], self._seed, dtype, kind)
        return result

    def _judge(self, access: AccessKind, pointers: Addresses, lanes: Bools, width: int) -> Bools:
        """Which of the active `lanes` may go ahead; the others are recorded."""
        allowed = np.zeros(pointers.shape, bool)
        tags = pointers >> TAG_SHIFT_U64
        for tag in np.unique(tags[lanes]):
            mine = lanes & (tags == tag)
            argument = self._arguments.get(int(tag))
            if argument is None:
                allowed |= self._judge_untagged(access, pointers, mine, width)
                continue
            bad = mine & argument.outside(pointers, width)
            if bad.any():
                self._faults.stray(access, pointers, bad, argument, width)
            good = mine & ~bad
            if access != "read" and not argument.writable:
                refused = good & argument.writes_refused(pointers, width)
                if refused.any():
                    self._faults.read_only(access, pointers, refused, argument)
            allowed |= good
        return allowed

    def _judge_atomic(self, pointers: Addresses, mask: Array | None, width: int) -> Bools:
        lanes = all_lanes(pointers, mask)
        argument = self._cleared(pointers, mask, width)
        if argument is not None and argument.writable:
            return lanes
        return self._judge("atomic", pointers, lanes, width)

    def _judge_untagged(self, access: AccessKind, pointers: Addresses, lanes: Bools, width: int) -> Bools:
        """The same for pointers that came from memory: they may reach every tensor whose address the target took."""
        addresses = pointers & ADDRESS_MASK
        canonical = pointers == addresses
        known = self._noted_intervals.contains(addresses, width)
        for argument in self._arguments.values():
            known |= ~argument.outside(addresses | np.uint64(argument.tag << TAG_SHIFT), width)
        writable, any_region = known.copy(), known
        for cells in self._regions:
            inside = ~cells.view.outside(addresses - np.uint64(cells.view.address), width)
            any_region = any_region | inside
            if cells.region.writable:
                writable |= inside
        good: Bools = lanes & canonical & any_region
        self._report_untagged(access, pointers, lanes & ~good, canonical, width)
        refused = good & ~writable
        if access != "read" and refused.any():
            self._faults.read_only(access, pointers, refused, None)
        return good

    def _report_untagged(
        self, access: AccessKind, pointers: Addresses, bad: Bools, canonical: Bools, width: int
    ) -> None:
        addresses = pointers & ADDRESS_MASK
        near = self._backings.contains(addresses, width) | self._spans.contains(addresses, width)
        proven = bad & (near | ~canonical)  # an address beyond 2**48 is no address at all
        if proven.any():
            self._faults.stray(access, pointers, proven, None, width)
        if (bad & ~proven).any():
            self._faults.unknown_pointer(access)

    def _peek(self, pointers: Addresses, allowed: Bools, dtype: np.dtype[Any]) -> Array | None:
        if not self._spin.suspicious:
            return None
        return np.array(native_memory.load(pointers & ADDRESS_MASK, allowed, np.zeros(pointers.shape, dtype), dtype))

    def _after_atomic(self, pointers: Addresses, allowed: Bools, before: Array | None) -> None:
        """An atomic that leaves memory as it was is, for a program that waits, a read."""
        if before is None:
            return
        after = self._peek(pointers, allowed, before.dtype)
        if after is not None and before.tobytes() == after.tobytes():
            self._spin.repeated(pointers)
        else:
            self._spin.changed()
