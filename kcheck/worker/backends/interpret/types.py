"""Fast construction of the interpreter's tensors: types are made once per element type and shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.interpret.triton_seams import core, interpreter, tl

Tensor = core.tensor
Handle = interpreter.TensorHandle
BlockType = core.block_type
PointerType = core.pointer_type

_block_types: dict[tuple[int, tuple[int, ...]], Any] = {}
_pointer_types: dict[int, Any] = {}

ELEMENT_TYPES: dict[torch.dtype, Any] = {
    torch.bool: tl.int1,
    torch.int8: tl.int8,
    torch.int16: tl.int16,
    torch.int32: tl.int32,
    torch.int64: tl.int64,
    torch.uint8: tl.uint8,
    torch.uint16: tl.uint16,
    torch.uint32: tl.uint32,
    torch.uint64: tl.uint64,
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
    torch.float8_e4m3fn: tl.float8e4nv,
    torch.float8_e5m2: tl.float8e5,
    torch.float8_e4m3fnuz: tl.float8e4b8,
    torch.float8_e5m2fnuz: tl.float8e5b16,
}

BY_NAME: dict[str, Any] = {
    "u1": tl.int1, "i1": tl.int1, "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64,
    "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64,
    "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64,
}  # fmt: skip


def block_type(element: Any, shape: tuple[int, ...]) -> Any:
    """The block type of an element type and a shape, one object each."""
    key = (id(element), shape)
    found = _block_types.get(key)
    if found is None or found.element_ty is not element:
        found = _block_types[key] = BlockType(element, list(shape))
    return found


def pointer_type(element: Any) -> Any:
    """The type of pointers to an element type, one object each: types made of it are kept."""
    found = _pointer_types.get(id(element))
    if found is None or found.element_ty is not element:
        found = _pointer_types[id(element)] = PointerType(element)
    return found


def new(data: npt.NDArray[Any], kind: Any, element: Any) -> Any:
    """A tensor around `data`.

    Args:
        data: Values; of shape ``(1,)`` for a scalar.
        kind: Type of the tensor: a block type, or `element` for a scalar.
        element: Element type.
    """
    handle = Handle.__new__(Handle)
    handle.data = data
    handle.dtype = element
    handle.attr = {}
    tensor = Tensor.__new__(Tensor)
    Tensor.__init__(tensor, handle, kind)
    return tensor


def like(data: npt.NDArray[Any], element: Any, *operands: Any) -> Any:
    """The tensor of an elementwise result: a block if any operand is one."""
    for operand in operands:
        if operand.type.__class__ is BlockType:
            return new(data, block_type(element, data.shape), element)
    return new(data, element, element)


def scalar(value: Any, element: Any, dtype: np.dtype[Any]) -> Any:
    """A scalar tensor."""
    return new(np.array([value], dtype=dtype), element, element)
