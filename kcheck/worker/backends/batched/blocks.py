"""Block pointers and tensor descriptors: base, shape, strides and offsets, made into pointers where they are used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kcheck.worker.backends.batched.values import Lanes, NotBatched, is_uniform, taken
from kcheck.worker.backends.interpret.triton_seams import interpreter, tl
from kcheck.worker.backends.interpret.types import block_type

if TYPE_CHECKING:
    from kcheck.worker.backends.batched.builder import BatchedBuilder


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A block pointer, or a tensor descriptor, which has no offsets.

    Attributes:
        base: Handle of the pointer.
        shape: Handles of the sizes.
        strides: Handles of the strides, in elements.
        block_shape: Sizes of the block.
        offsets: Handles of the block's position.
        padding: What a descriptor yields outside of its shape.
    """

    base: Any
    shape: Sequence[Any]
    strides: Sequence[Any]
    block_shape: Sequence[int]
    offsets: Sequence[Any] = ()
    padding: Any = None

    @property
    def dtype(self) -> Any:
        """The pointer's type."""
        return self.base.dtype

    def _handles(self) -> Iterator[Any]:
        yield from (self.base, *self.shape, *self.strides, *self.offsets)

    @property
    def is_uniform(self) -> bool:
        """Whether all programs have the same."""
        return all(map(is_uniform, self._handles()))

    def taken(self, rows: Any) -> Blocks:
        """The same for the programs at some positions."""
        return Blocks(
            taken(self.base, rows),
            [taken(one, rows) for one in self.shape],
            [taken(one, rows) for one in self.strides],
            self.block_shape,
            [taken(one, rows) for one in self.offsets],
            self.padding,
        )

    def advanced(self, builder: BatchedBuilder, offsets: Sequence[Any]) -> Blocks:
        """Moved by some elements along each dimension."""
        if len(self.offsets) != len(offsets):
            raise NotBatched("tl.advance by another number of offsets")
        moved = [builder.create_add(old, new) for old, new in zip(self.offsets, offsets, strict=True)]
        return replace(self, offsets=moved)


def pointers(builder: BatchedBuilder, blocks: Any, offsets: Sequence[Any], checked: Collection[int]) -> tuple[Any, Any]:
    """The lanes of a block.

    Args:
        builder: Makes the values.
        blocks: A `Blocks`, or Triton's handle of a descriptor made on the host.
        offsets: Handles of the block's position.
        checked: Dimensions along which lanes may lie outside of the shape.

    Returns:
        Handles of the pointers and of the mask, None for all lanes.
    """
    shape = tuple(int(size) for size in blocks.block_shape)
    along = (_along(builder, shape, dimension, _wide(offset)) for dimension, offset in enumerate(offsets))
    return _located(builder, blocks, shape, list(along), checked)


def row_pointers(builder: BatchedBuilder, blocks: Any, rows: Any, column: Any) -> tuple[Any, Any]:
    """The lanes of some rows, from a column on; see `pointers`.

    Args:
        builder: Makes the values.
        blocks: A descriptor of two dimensions.
        rows: Handle of a block of one dimension.
        column: Handle of a scalar.
    """
    shape = rows.data.shape[1], int(blocks.block_shape[-1])
    spread = builder.create_broadcast(builder.create_expand_dims(_wide(rows), 1), shape)
    return _located(builder, blocks, shape, [spread, _along(builder, shape, 1, _wide(column))], (0, 1))


def _along(builder: BatchedBuilder, shape: tuple[int, ...], dimension: int, start: Any) -> Any:
    """Positions along one dimension of a block."""
    size = [1] * len(shape)
    size[dimension] = shape[dimension]
    steps = builder.create_broadcast(Lanes(np.arange(shape[dimension]).reshape(1, *size), tl.int64), shape)
    return builder.create_add(builder.create_splat(block_type(tl.int64, shape), start), steps)


def _located(
    builder: BatchedBuilder, blocks: Any, shape: tuple[int, ...], positions: Sequence[Any], checked: Collection[int]
) -> tuple[Any, Any]:
    """Pointers to elements at positions along each dimension, and which lie inside of the shape; see `pointers`."""
    kind = block_type(tl.int64, shape)
    zero = builder.create_splat(kind, Lanes(np.zeros(1, np.int64), tl.int64))
    mask = None
    made = builder.create_splat(block_type(blocks.base.dtype, shape), blocks.base)
    for dimension, position in enumerate(positions):
        stride = builder.create_splat(kind, _wide(blocks.strides[dimension]))
        made = builder.create_addptr(made, builder.create_mul(position, stride))
        if dimension in checked:
            end = builder.create_splat(kind, _wide(blocks.shape[dimension]))
            inside = builder.create_and(builder.create_icmpSGE(position, zero), builder.create_icmpSLT(position, end))
            mask = inside if mask is None else builder.create_and(mask, inside)
    return made, mask


def _wide(handle: Any) -> Lanes:
    """Integers as int64."""
    return Lanes(handle.data.astype(np.int64), tl.int64)


def padding(option: Any, pointer: Any) -> Any:
    """What lanes outside of the shape yield; None for zero."""
    options = interpreter._ir.PADDING_OPTION
    if option is None or option == options.PAD_ZERO:
        return None
    if option != options.PAD_NAN:
        raise NotBatched(f"padding {option}")
    element = pointer.get_element_ty()
    one = np.full((1,), float("nan"), interpreter._get_np_dtype(element))
    shape = (pointer.within if hasattr(pointer, "within") else pointer.data).shape
    return Lanes(np.broadcast_to(one.reshape((1,) * len(shape)), (1, *shape[1:])), element)


def check_descriptor(blocks: Blocks) -> None:
    """Look whether the hardware could use a descriptor; the sequential engine says why not."""
    size = blocks.base.dtype.element_ty.primitive_bitwidth // 8
    aligned = not (blocks.base.data % np.uint64(16)).any()
    strides = [one.data * size for one in blocks.strides[:-1]]
    if not aligned or any((one % 16).any() for one in strides) or (blocks.strides[-1].data != 1).any():
        raise NotBatched
    if len(blocks.strides) != len(blocks.shape) or not blocks.shape:
        raise NotBatched


def check_offsets(blocks: Any, offsets: Sequence[Any]) -> None:
    """Look whether a block begins where the hardware wants it; see `check_descriptor`."""
    size = blocks.base.dtype.element_ty.primitive_bitwidth // 8
    if len(offsets) != len(blocks.shape) or (offsets[-1].data.astype(np.int64) * size % 16).any():
        raise NotBatched
    if getattr(blocks, "round_f32_to_tf32", False):
        raise NotBatched("a descriptor that rounds to tf32")
