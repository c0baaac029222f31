"""Binds the arguments of a launch and turns them into the values that a kernel sees, typed as on a GPU."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np
import torch

from kcheck.worker.backends.base import Unsupported
from kcheck.worker.backends.interpret.arguments import Argument
from kcheck.worker.backends.interpret.triton_seams import TensorDescriptor, core, interpreter, jit, semantic, tl
from kcheck.worker.backends.interpret.types import BY_NAME, ELEMENT_TYPES, new, pointer_type, scalar

Attach = Callable[[torch.Tensor, str], Argument]

# Launch options of the CUDA and ROCm back ends. They tune code generation; none changes what a kernel computes.
_OPTIONS = (
    "num_warps num_ctas num_stages warp_size maxnreg minRegAutoWS maxRegAutoWS cluster_dims ptx_version ptx_options "
    "ir_override enable_fp_fusion enable_reflect_ftz launch_cooperative_grid launch_cluster launch_pdl "
    "supported_fp8_dtypes deprecated_fp8_dot_operand_dtypes default_dot_input_precision allowed_dot_input_precisions "
    "max_num_imprecise_acc_default extern_libs debug backend_name sanitize_overflow arch instrumentation_mode "
    "waves_per_eu matrix_instr_nonkdim kpack allow_flush_denorm schedule_hint num_buffers_warp_spec "
    "num_consumer_groups reg_dec_producer reg_inc_consumer"
)
_OPTION_NAMES = frozenset(re.findall(r"\w+", _OPTIONS))


def bind(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The value of each parameter, as the caller passed it.

    Raises:
        TypeError: An argument is missing, given twice or unknown.
    """
    signature = _signature(kernel.fn)
    unknown = [name for name in kwargs if name not in signature.parameters and name not in _OPTION_NAMES]
    if unknown:
        raise TypeError(f"kernel {kernel.fn.__name__} got an unexpected keyword argument {unknown[0]!r}")
    bound = signature.bind(*args, **{name: value for name, value in kwargs.items() if name in signature.parameters})
    bound.apply_defaults()
    return dict(bound.arguments)


@lru_cache(maxsize=256)
def _signature(function: FunctionType) -> inspect.Signature:
    return inspect.signature(function)


def device_arguments(kernel: Any, values: dict[str, Any], attach: Attach) -> dict[str, Any]:
    """What the kernel's parameters are inside the kernel.

    Args:
        kernel: The ``JITFunction``.
        values: From `bind`.
        attach: Makes the tagged pointer of a tensor.
    """
    result = {}
    for parameter in kernel.params:
        value = values[parameter.name]
        if parameter.is_constexpr:
            result[parameter.name] = value.value if isinstance(value, core.constexpr) else value
        elif is_constant_one(parameter, value):
            result[parameter.name] = 1
        else:
            result[parameter.name] = _device_value(value, parameter.name, parameter.annotation_type, attach)
    return result


def is_constant_one(parameter: Any, value: Any) -> bool:
    """Whether Triton makes an integer argument a constant because it is 1: a launch with 1 is a kernel of its own."""
    plain = not parameter.is_constexpr and not parameter.annotation_type and not parameter.do_not_specialize
    return plain and type(value) is int and value == 1


def _device_value(value: Any, name: str, annotation: str, attach: Attach) -> Any:
    if value is None or isinstance(value, (core.dtype, jit.JITFunction)):
        return value
    if isinstance(value, core.constexpr):
        return value.value
    if isinstance(value, (bool, int, float)):
        return _number(value, annotation)
    if isinstance(value, TensorDescriptor):
        return _descriptor(value, name, attach)
    if isinstance(value, jit.TensorWrapper):
        return _pointer(value.base, value.dtype, name, attach)
    if isinstance(value, torch.Tensor):
        return _pointer(value, value.dtype, name, attach)
    if isinstance(value, tuple):
        items: list[Any] = [
            1 if type(item) is int and item == 1 else _device_value(item, f"{name}[{position}]", "", attach)
            for position, item in enumerate(value)
        ]
        return type(value)(*items) if hasattr(value, "_fields") else core.tuple(items)
    raise TypeError(f"kernel argument {name} has a type that Triton does not take: {type(value).__name__}")


def _number(value: bool | int | float, annotation: str) -> Any:
    if annotation in BY_NAME:
        return semantic.cast(_number(value, ""), BY_NAME[annotation])
    if isinstance(value, bool):
        return scalar(value, tl.int1, np.dtype(bool))
    if isinstance(value, float):
        return scalar(value, tl.float32, np.dtype(np.float32))
    if -(2**31) <= value < 2**31:
        return scalar(value, tl.int32, np.dtype(np.int32))
    if 2**63 <= value < 2**64:
        return scalar(value, tl.uint64, np.dtype(np.uint64))
    return scalar(value, tl.int64, np.dtype(np.int64))


def _pointer(tensor: torch.Tensor, dtype: Any, name: str, attach: Attach) -> Any:
    if tensor.untyped_storage().device.type != "cpu":
        raise Unsupported(f"argument {name} is on a GPU, which the CPU interpreter cannot reach")
    element = dtype if isinstance(dtype, core.dtype) else ELEMENT_TYPES.get(dtype)
    if element is None:
        raise TypeError(f"kernel argument {name} has a dtype that Triton does not take: {dtype}")
    kind = pointer_type(element)
    return new(np.array([attach(tensor, name).pointer], dtype=np.uint64), kind, kind)


def _descriptor(descriptor: Any, name: str, attach: Attach) -> Any:
    """A tensor descriptor that was made on the host."""
    base = descriptor.base
    options = {}
    if "padding_option" in inspect.signature(semantic.make_tensor_descriptor).parameters:
        options["padding_option"] = descriptor.padding
    made = semantic.make_tensor_descriptor(
        base=_device_value(base, name, "", attach),
        shape=[_number(int(size), "") for size in descriptor.shape],
        strides=[*(_number(int(stride), "") for stride in descriptor.strides[:-1]), core.constexpr(1)],
        block_shape=[core.constexpr(size) for size in descriptor.block_shape],
        **options,
    )
    if isinstance(made.handle, interpreter.TensorDescHandle) and hasattr(made.handle, "round_f32_to_tf32"):
        made.handle.round_f32_to_tf32 = descriptor.round_f32_to_tf32
    return made
