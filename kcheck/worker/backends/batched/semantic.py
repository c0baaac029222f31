"""Triton's typing rules over values of many programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcheck.worker.backends.batched.values import new_tensor
from kcheck.worker.backends.interpret.triton_seams import semantic_module
from kcheck.worker.backends.interpret.types import BlockType, block_type


class BatchedSemantic(semantic_module.TritonSemantic):  # type: ignore[misc]
    """Triton's typing rules over a `BatchedBuilder`."""

    def broadcast_impl_value(self, left: Any, right: Any) -> Any:
        """Both operands in the same shape."""
        kinds = left.type, right.type
        blocks = [kind.__class__ is BlockType for kind in kinds]
        if kinds[0] is kinds[1] or not any(blocks) or (all(blocks) and kinds[0].shape == kinds[1].shape):
            return left, right
        if not blocks[0]:
            return self.splat(left, kinds[1].shape), right
        if not blocks[1]:
            return left, self.splat(right, kinds[0].shape)
        return _plain_broadcast(self, left, right)

    def splat(self, value: Any, shape: Sequence[int]) -> Any:
        """A scalar in every lane of a block."""
        if value.type.__class__ is BlockType or not shape:
            return super().splat(value, shape)
        kind = block_type(value.dtype, tuple(shape))
        return new_tensor(self.builder.create_splat(kind, value.handle), kind)


_plain_broadcast = semantic_module.TritonSemantic.broadcast_impl_value
