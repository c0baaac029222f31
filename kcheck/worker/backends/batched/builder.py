"""Triton's builder over values of many programs: memory, and blocks of it."""

from __future__ import annotations

from typing import Any, NoReturn

from kcheck.worker.backends.batched import atomics, blocks
from kcheck.worker.backends.batched.blocks import Blocks
from kcheck.worker.backends.batched.memory import Memory
from kcheck.worker.backends.batched.operations import Operations
from kcheck.worker.backends.batched.values import NotBatched
from kcheck.worker.backends.interpret.pointers import reducing
from kcheck.worker.backends.interpret.triton_seams import interpreter


class BatchedBuilder(Operations):
    """Operations of kernels.

    Attributes:
        memory: Of the launch.
        discard: The result of the statement's outermost call is not used.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory: Memory | None = None
        self.discard = False

    # -- memory -----------------------------------------------------------------------------------------------------

    def create_load(self, pointer: Any, *_: Any) -> Any:
        """``tl.load`` of all lanes."""
        assert self.memory is not None
        return self.memory.load(pointer, None, None, self.programs)

    def create_masked_load(self, pointer: Any, mask: Any, other: Any, *_: Any) -> Any:
        """``tl.load``."""
        assert self.memory is not None
        return self.memory.load(pointer, mask, other, self.programs)

    def create_store(self, pointer: Any, value: Any, *_: Any) -> Any:
        """``tl.store`` of all lanes."""
        assert self.memory is not None
        self.memory.store(pointer, value, None, self.programs)

    def create_masked_store(self, pointer: Any, value: Any, mask: Any, *_: Any) -> Any:
        """``tl.store``."""
        assert self.memory is not None
        self.memory.store(pointer, value, mask, self.programs)

    def create_atomic_rmw(self, operation: Any, pointer: Any, value: Any, mask: Any, order: Any, scope: Any) -> Any:
        """Atomics but compare-and-swap."""
        assert self.memory is not None
        native = self.ir_rmw_op_to_interpreter_rmw_op[operation], self.ir_sem_to_interpreter_sem[order]
        return atomics.rmw(self.memory, native, pointer, value, mask, self.programs, self.discard)

    def create_atomic_cas(self, pointer: Any, expected: Any, value: Any, order: Any, scope: Any) -> Any:
        """``tl.atomic_cas``."""
        assert self.memory is not None
        native = self.ir_sem_to_interpreter_sem[order]
        return atomics.compare_and_swap(self.memory, native, pointer, expected, value, self.programs)

    # -- blocks -----------------------------------------------------------------------------------------------------

    def create_make_block_ptr(
        self, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
    ) -> Any:
        """``tl.make_block_ptr``."""
        return Blocks(base, shape, strides, block_shape, offsets)

    def create_advance(self, pointer: Blocks, offsets: Any) -> Any:
        """``tl.advance``."""
        return pointer.advanced(self, offsets)

    def create_tensor_pointer_load(self, pointer: Blocks, checked: Any, padding: Any, *_: Any) -> Any:
        """``tl.load`` of a block pointer."""
        lanes, mask = blocks.pointers(self, pointer, pointer.offsets, checked)
        return self.create_masked_load(lanes, mask, blocks.padding(padding, lanes))

    def create_tensor_pointer_store(self, pointer: Blocks, value: Any, checked: Any, *_: Any) -> Any:
        """``tl.store`` to a block pointer."""
        lanes, mask = blocks.pointers(self, pointer, pointer.offsets, checked)
        return self.create_masked_store(lanes, value, mask)

    def create_make_tensor_descriptor(
        self, base: Any, shape: Any, strides: Any, block_shape: Any, signed: Any, padding: Any = None
    ) -> Any:
        """``tl.make_tensor_descriptor``."""
        made = Blocks(base, shape, strides, block_shape, (), padding)
        blocks.check_descriptor(made)
        return made

    def create_descriptor_load(self, descriptor: Any, offsets: Any, *_: Any, **__: Any) -> Any:
        """A load through a tensor descriptor."""
        lanes, mask = self._described(descriptor, offsets)
        return self.create_masked_load(lanes, mask, blocks.padding(getattr(descriptor, "padding", None), lanes))

    def create_descriptor_store(self, descriptor: Any, value: Any, offsets: Any) -> Any:
        """A store through a tensor descriptor."""
        lanes, mask = self._described(descriptor, offsets)
        return self.create_masked_store(lanes, value, mask)

    def _described(self, descriptor: Any, offsets: Any) -> tuple[Any, Any]:
        blocks.check_offsets(descriptor, offsets)
        return blocks.pointers(self, descriptor, offsets, range(len(offsets)))

    def create_descriptor_gather(self, descriptor: Any, rows: Any, column: Any, kind: Any) -> Any:
        """Rows picked through a tensor descriptor."""
        lanes, mask = self._rows(descriptor, rows, column)
        return self.create_masked_load(lanes, mask, blocks.padding(getattr(descriptor, "padding", None), lanes))

    def create_descriptor_scatter(self, descriptor: Any, value: Any, rows: Any, column: Any) -> None:
        """Rows stored through a tensor descriptor."""
        lanes, mask = self._rows(descriptor, rows, column)
        self.create_masked_store(lanes, value, mask)

    def _rows(self, descriptor: Any, rows: Any, column: Any) -> tuple[Any, Any]:
        blocks.check_offsets(descriptor, (rows, column))
        return blocks.row_pointers(self, descriptor, rows, column)

    def create_descriptor_reduce(self, kind: Any, descriptor: Any, value: Any, offsets: Any) -> Any:
        """Atomics through a tensor descriptor."""
        lanes, mask = self._described(descriptor, offsets)
        relaxed, scope = interpreter._ir.MEM_SEMANTIC.RELAXED, interpreter._ir.MEM_SYNC_SCOPE.GPU
        return self.create_atomic_rmw(reducing(kind, value.dtype), lanes, value, mask, relaxed, scope)

    # -- not here ---------------------------------------------------------------------------------------------------

    def create_print(self, *_: Any) -> NoReturn:
        """``tl.device_print``: the order of what is printed is the programs'."""
        raise NotBatched("tl.device_print")
