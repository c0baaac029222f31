"""Every private internal of Triton that this backend touches, in one table that is checked before the first use.

The other modules take Triton's modules and objects from here. Triton has no type hints, hence ``Any``.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import reduce
from typing import Any

from kcheck.errors import UnsupportedVersion

OLDEST = (3, 4)
NEWEST = (3, 9)


@dataclass(frozen=True, slots=True)
class Seam:
    """One attribute that must exist.

    Attributes:
        module: Where its path starts.
        path: Dotted path of attributes.
        since: First ``(major, minor)`` that has it.
        until: Last one that has it.
    """

    module: str
    path: str
    since: tuple[int, int] = OLDEST
    until: tuple[int, int] = NEWEST

    @property
    def name(self) -> str:
        """Its full dotted name."""
        return f"{self.module}.{self.path}"


_INTERPRETER = "triton.runtime.interpreter"
_BUILDER_METHODS = (
    "binary_op", "unary_op", "cast_impl", "create_fp_to_fp", "create_dot", "create_fma", "create_assert",
    "create_assume", "create_extern_elementwise", "create_inline_asm", "create_bitcast", "create_ptr_to_int",
    "create_int_to_ptr", "create_atomic_rmw", "create_minnumf", "create_maxnumf", "create_clampf", "create_fp_to_si", "create_fp_to_ui",
    "create_fabs", "create_histogram", "create_umulhi", "get_all_ones_value", "set_grid_dim",
)  # fmt: skip
_CORE_NAMES = (
    "tensor", "tensor_descriptor_base", "dtype", "block_type", "pointer_type", "constexpr", "tuple",
    "is_builtin", "_unwrap_if_constexpr", "load", "store", "arange", "program_id", "num_programs", "dot_scaled",
    "device_assert", "static_assert", "inline_asm_elementwise", "extern_elementwise",
)  # fmt: skip

SEAMS: tuple[Seam, ...] = (
    *(Seam(_INTERPRETER, name) for name in (
        "_interpreter", "_ir", "_patch_lang", "_get_np_dtype", "TensorHandle", "InterpreterBuilder",
        "interpreter_builder", "interpreter_builder.options", "interpreter_semantic", "InterpreterOptions",
        "InterpretedFunction", "GridExecutor", "ReduceOps.apply_impl", "ReduceOps.generic_reduce",
        "ReduceScanOpInterface.to_tensor", "ScanOps.apply_impl", "TensorDescHandle",
        "_interpreter.load", "_interpreter.store", "_interpreter.atomic_rmw", "_interpreter.atomic_cas",
    )),
    *(Seam(_INTERPRETER, f"InterpreterBuilder.{name}") for name in _BUILDER_METHODS),
    Seam(_INTERPRETER, "TensorHandle.__post_init__", since=(3, 6)),
    *(Seam("triton.language.core", name) for name in _CORE_NAMES),
    Seam("triton.language.core", "condition", since=(3, 5)),
    Seam("triton.language.semantic", "TritonSemantic.broadcast_impl_value"),
    Seam("triton.language.semantic", "TritonSemantic.binary_op_type_checking_impl"),
    *(Seam("triton.language.standard", name) for name in (
        "_argmin_combine_tie_break_left", "_argmax_combine_tie_break_left", "_elementwise_max", "_elementwise_min",
    )),
    Seam("triton.language.math", "exp"),
    Seam("triton.language.extra.libdevice", "tanh"),
    Seam("triton.language.extra.cuda.libdevice", "tanh"),
    *(Seam("triton.runtime.jit", f"JITFunction.{name}") for name in ("run", "__call__", "warmup")),
    Seam("triton.runtime.jit", "KernelParam.annotation_type"),
    Seam("triton.runtime.jit", "KernelParam.is_constexpr"),
    Seam("triton.runtime.jit", "TensorWrapper"),
    Seam("triton.runtime.autotuner", "Autotuner.run"),
    Seam("triton.runtime.autotuner", "Config.all_kwargs"),
    Seam("triton.tools.tensor_descriptor", "TensorDescriptor"),
)  # fmt: skip


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _follow(start: Any, path: str) -> Any:
    return reduce(lambda owner, name: getattr(owner, name, None), path.split("."), start)


triton: Any = _import("triton")
tl: Any = _import("triton.language")
core: Any = _import("triton.language.core")
tl_math: Any = _import("triton.language.math")
standard: Any = _import("triton.language.standard")
semantic_module: Any = _import("triton.language.semantic")
libdevice: Any = _import("triton.language.extra.libdevice")
cuda: Any = _import("triton.language.extra.cuda")
cuda_libdevice: Any = _import("triton.language.extra.cuda.libdevice")
hip_libdevice: Any = _import("triton.language.extra.hip.libdevice")
interpreter: Any = _import(_INTERPRETER)
jit: Any = _import("triton.runtime.jit")
autotuner: Any = _import("triton.runtime.autotuner")
TensorDescriptor: Any = _follow(_import("triton.tools.tensor_descriptor"), "TensorDescriptor")
builder: Any = _follow(interpreter, "interpreter_builder")
semantic: Any = _follow(interpreter, "interpreter_semantic")
# The extension module that really reads and writes memory; its name is taken over while a watch is entered.
native_memory: Any = _follow(interpreter, "_interpreter")


def installed_version() -> tuple[int, int]:
    """``(major, minor)`` of the installed Triton; ``(0, 0)`` if there is none."""
    found = re.match(r"(\d+)\.(\d+)", getattr(triton, "__version__", ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def check() -> None:
    """Check that the installed Triton is one that this backend knows.

    Raises:
        UnsupportedVersion: It is too old, too new, absent, or an internal has moved.
    """
    supported = f"supported are Triton {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    if triton is None:
        raise UnsupportedVersion(f"the interpret backend needs Triton, which is not installed; {supported}.")
    version = installed_version()
    if not OLDEST <= version <= NEWEST:
        raise UnsupportedVersion(f"the interpret backend does not know Triton {triton.__version__}; {supported}.")
    for seam in SEAMS:
        if seam.since <= version <= seam.until and _follow(_import(seam.module), seam.path) is None:
            raise UnsupportedVersion(
                f"the interpret backend relies on {seam.name}, which Triton {triton.__version__} does not have; "
                f"{supported}."
            )
