"""``libdevice`` functions and other calls of device code, by numpy and torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.base import Unsupported
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import (
    cuda,
    cuda_libdevice,
    hip_libdevice,
    interpreter,
    libdevice,
    semantic,
    tl,
)
from kcheck.worker.backends.interpret.types import Handle, like

Array = npt.NDArray[Any]
Function = Callable[..., Array]


def _torch(function: Callable[..., torch.Tensor]) -> Function:
    def call(*arrays: Array) -> Array:
        result: Array = function(*(torch.from_numpy(np.array(array)) for array in arrays)).numpy()
        return result

    return call


def _count_leading_zeros(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    return np.array([bits - (int(value) % 2**bits).bit_length() for value in x.flat], np.int32).reshape(x.shape)


def _find_first_set(x: Array) -> Array:
    return np.array([(int(value) & -int(value)).bit_length() for value in x.flat], np.int32).reshape(x.shape)


def _population_count(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    return np.array([(int(value) % 2**bits).bit_count() for value in x.flat], np.int32).reshape(x.shape)


_SAME_IN_TORCH = (
    torch.tanh, torch.erf, torch.erfc, torch.erfinv, torch.exp, torch.exp2, torch.expm1, torch.log, torch.log2,
    torch.log10, torch.log1p, torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh,
    torch.cosh, torch.asinh, torch.acosh, torch.atanh, torch.sqrt, torch.rsqrt, torch.floor, torch.ceil, torch.trunc,
    torch.lgamma, torch.atan2, torch.hypot, torch.nextafter, torch.ldexp,
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {function.__name__: _torch(function) for function in _SAME_IN_TORCH}
FUNCTIONS |= {
    "abs": np.abs, "fabs": np.abs, "rint": np.rint, "nearbyint": np.rint,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "llrint": lambda x: np.rint(x).astype(np.int64), "max": np.fmax, "min": np.fmin, "fmax": np.fmax, "fmin": np.fmin,
    "fmod": np.fmod, "pow": np.power, "fast_powf": np.power, "cbrt": np.cbrt, "copysign": np.copysign,
    "fma": lambda a, b, c: (a.astype(np.float64) * b + c).astype(a.dtype), "isnan": np.isnan, "isinf": np.isinf,
    "signbit": np.signbit, "finitef": np.isfinite, "isfinited": np.isfinite, "normcdf": _torch(torch.special.ndtr),
    "normcdfinv": _torch(torch.special.ndtri), "div_rn": np.divide, "fdividef": np.divide, "fast_dividef": np.divide,
    "rcp_rn": lambda x: 1 / x, "add_rn": np.add, "sub_rn": np.subtract, "mul_rn": np.multiply, "sqrt_rn": np.sqrt,
    "rsqrt_rn": lambda x: 1 / np.sqrt(x), "clz": _count_leading_zeros, "ffs": _find_first_set,
    "popc": _population_count,
    "saturatef": lambda x: np.fmin(np.fmax(x, 0), 1), "exp10": lambda x: np.power(x.dtype.type(10), x),
    "j0": _torch(torch.special.bessel_j0), "j1": _torch(torch.special.bessel_j1),
    "cyl_bessel_i0": _torch(torch.special.i0), "cyl_bessel_i1": _torch(torch.special.i1),
    "fdim": lambda a, b: np.fmax(a - b, 0),
    "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x), "mul24": np.multiply,
}  # fmt: skip
FUNCTIONS |= {f"fast_{name}f": FUNCTIONS[name] for name in ("exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh")}


class _Kernel:
    """The kernel that runs, for messages."""

    name = ""


current = _Kernel()


def _unsupported(what: str) -> Unsupported:
    from kcheck.worker.backends.interpret import frames

    chain, _ = frames.kernel_chain()
    reason = f"kernel {current.name} uses {what}, which the CPU interpreter cannot run"
    return Unsupported(reason, chain[-1] if chain else None)


def _by_symbol(symbol: str) -> Function:
    """The function behind a symbol such as ``__nv_tanhf``."""
    name = symbol.removeprefix("__nv_").removeprefix("__ocml_").removesuffix("_f32").removesuffix("_f64")
    for candidate in (name, name.removesuffix("f"), name.removesuffix("ll"), name.removesuffix("d")):
        if candidate in FUNCTIONS:
            return FUNCTIONS[candidate]
    raise _unsupported(f"the libdevice symbol {symbol}")


def _by_name(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **_: Any) -> Any:
        function = FUNCTIONS.get(name)
        tensors = [semantic.to_tensor(argument) for argument in arguments]
        raw = [tensor.dtype for tensor in tensors if tensor.dtype in (tl.bfloat16, tl.float16)]
        if function is None or raw:
            raise _unsupported(f"libdevice.{name}" + (f" of {raw[0]}" if raw else ""))
        arrays = np.broadcast_arrays(*(tensor.handle.data for tensor in tensors))
        result = np.asarray(function(*arrays))
        if result.dtype.kind == "f":
            result = result.astype(arrays[0].dtype, copy=False)
        element = {np.dtype(bool): tl.int1, np.dtype(np.int32): tl.int32, np.dtype(np.int64): tl.int64}.get(
            result.dtype, tensors[0].dtype
        )
        return like(result, element, *tensors)

    return call


def _extern_elementwise(
    self: Any, library: str, path: str, symbol: str, arguments: Any, result_type: Any, is_pure: bool
) -> Any:
    arrays = np.broadcast_arrays(*(argument.data for argument in arguments))
    result = np.asarray(_by_symbol(symbol)(*arrays)).astype(interpreter._get_np_dtype(result_type))
    return Handle(result, result_type.scalar)


def _inline_asm(self: Any, *_: Any) -> Any:
    raise _unsupported("inline assembly")


def install(patches: PatchSet) -> None:
    """Give every function of ``libdevice`` an implementation or a clear refusal."""
    patches.put(interpreter.InterpreterBuilder, "create_extern_elementwise", _extern_elementwise)
    patches.put(interpreter.InterpreterBuilder, "create_inline_asm", _inline_asm)
    for module in (libdevice, cuda_libdevice, hip_libdevice):
        for name, function in list(vars(module).items() if module else ()):
            if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
                patches.put(module, name, _by_name(name))
    for name in ("gdc_wait", "gdc_launch_dependents"):  # programs run one after the other: nothing to wait for
        if hasattr(cuda, name):
            patches.put(cuda, name, lambda **_: None)
