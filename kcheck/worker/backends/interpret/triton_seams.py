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
        stored: It is an instance attribute, which ``__init__`` of its class or of a base sets.
    """

    module: str
    path: str
    since: tuple[int, int] = OLDEST
    until: tuple[int, int] = NEWEST
    stored: bool = False

    @property
    def name(self) -> str:
        """Its full dotted name."""
        return f"{self.module}.{self.path}"

    def exists(self) -> bool:
        """Whether the installed Triton has it."""
        module = _import(self.module)
        if not self.stored:
            return _follow(module, self.path) is not None
        owner, _, attribute = self.path.rpartition(".")
        bases = getattr(_follow(module, owner), "__mro__", ())
        codes = [getattr(base.__init__, "__code__", None) for base in bases]
        return any(code is not None and attribute in code.co_names for code in codes)


def _seams(module: str, paths: str, **options: Any) -> tuple[Seam, ...]:
    return tuple(Seam(module, path, **options) for path in paths.split())


_INTERPRETER = "triton.runtime.interpreter"
_CORE = "triton.language.core"
_JIT = "triton.runtime.jit"
_AUTOTUNER = "triton.runtime.autotuner"

SEAMS: tuple[Seam, ...] = (
    *_seams(
        _INTERPRETER,
        "_interpreter _interpreter.load _interpreter.store _interpreter.atomic_rmw _interpreter.atomic_cas "
        "_interpreter.MEM_SEMANTIC.ACQUIRE _interpreter.MEM_SEMANTIC.RELEASE "
        "_interpreter.MEM_SEMANTIC.ACQUIRE_RELEASE "
        "_ir.ATOMIC_OP _ir.DESCRIPTOR_REDUCE_KIND _ir.MEM_SEMANTIC _ir.MEM_SYNC_SCOPE _ir.PROPAGATE_NAN "
        "_ir.ROUNDING_MODE _ir.ScaleDotElemTypeTY _patch_lang _get_np_dtype TensorHandle TensorDescHandle GridExecutor "
        "interpreter_builder interpreter_builder.options interpreter_builder.set_grid_dim interpreter_semantic",
    ),
    *_seams(
        _INTERPRETER,
        "TensorDescHandle.materialize_pointers InterpreterBuilder InterpreterBuilder.binary_op "
        "InterpreterBuilder.unary_op InterpreterBuilder.cast_impl InterpreterBuilder.create_fp_to_fp "
        "InterpreterBuilder.create_dot InterpreterBuilder.create_fma InterpreterBuilder.create_erf "
        "InterpreterBuilder.create_minnumf InterpreterBuilder.create_maxnumf InterpreterBuilder.create_clampf "
        "InterpreterBuilder.create_umulhi InterpreterBuilder.create_histogram InterpreterBuilder.get_all_ones_value "
        "InterpreterBuilder.create_assert InterpreterBuilder.create_assume InterpreterBuilder.create_inline_asm "
        "InterpreterBuilder.create_extern_elementwise InterpreterBuilder.create_bitcast "
        "InterpreterBuilder.create_ptr_to_int InterpreterBuilder.create_int_to_ptr "
        "InterpreterBuilder.create_atomic_rmw InterpreterBuilder.ir_sem_to_interpreter_sem "
        "InterpreterBuilder.create_int_cast",
    ),
    Seam(_INTERPRETER, "TensorHandle.__post_init__", since=(3, 6)),
    *_seams(
        "triton.language.semantic",
        "TritonSemantic.broadcast_impl_value TritonSemantic.binary_op_type_checking_impl TritonSemantic.cast "
        "TritonSemantic.logical_and TritonSemantic.logical_or TritonSemantic.make_tensor_descriptor "
        "TritonSemantic.scalar_constant TritonSemantic.to_tensor",
    ),
    *_seams(
        _CORE,
        "_unwrap_if_constexpr tensor tensor.__init__ tensor_descriptor_base dtype block_type "
        "block_type.with_element_ty pointer_type constexpr tuple load store arange program_id reduce associative_scan "
        "dot_scaled static_assert",
    ),
    Seam(_CORE, "condition", since=(3, 5)),
    *_seams(
        "triton.language.standard",
        "_sum_combine.fn _prod_combine.fn _elementwise_max.fn _elementwise_min.fn _argmax_combine_tie_break_left.fn "
        "_argmin_combine_tie_break_left.fn",
    ),
    *_seams("triton.language.extra.libdevice", "tanh"),
    *_seams("triton.language.extra.cuda.libdevice", "tanh"),
    *_seams(_JIT, "JITFunction.run JITFunction.__call__ JITFunction.warmup TensorWrapper"),
    *_seams(
        _JIT,
        "JITFunction.fn JITFunction.params JITFunction.pre_run_hooks TensorWrapper.base KernelParam.do_not_specialize",
        stored=True,
    ),
    *_seams(_JIT, "KernelParam.name KernelParam.annotation_type KernelParam.is_constexpr"),
    *_seams(_AUTOTUNER, "Autotuner.run Config.all_kwargs"),
    *_seams(
        _AUTOTUNER,
        "Autotuner.arg_names Autotuner.configs Autotuner.early_config_prune Autotuner.pre_hook Autotuner.fn "
        "Autotuner.base_fn Config.pre_hook",
        stored=True,
    ),
    Seam("triton.tools.tensor_descriptor", "TensorDescriptor"),
    Seam("triton.runtime.driver", "driver.set_active"),
    Seam("triton.backends.compiler", "GPUTarget"),
)


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
triton_driver: Any = _follow(_import("triton.runtime.driver"), "driver")
GPUTarget: Any = _follow(_import("triton.backends.compiler"), "GPUTarget")
TensorDescriptor: Any = _follow(_import("triton.tools.tensor_descriptor"), "TensorDescriptor")
builder: Any = _follow(interpreter, "interpreter_builder")
semantic: Any = _follow(interpreter, "interpreter_semantic")
# The extension module that really reads and writes memory; its name is taken over while a watch is entered.
native_memory: Any = _follow(interpreter, "_interpreter")
_orders: Any = _follow(native_memory, "MEM_SEMANTIC")
ACQUIRING: Any = {_follow(_orders, name) for name in ("ACQUIRE", "ACQUIRE_RELEASE")}
RELEASING: Any = {_follow(_orders, name) for name in ("RELEASE", "ACQUIRE_RELEASE")}


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
        if seam.since <= version <= seam.until and not seam.exists():
            raise UnsupportedVersion(
                f"the interpret backend relies on {seam.name}, which Triton {triton.__version__} does not have; "
                f"{supported}."
            )
