"""What the GPU backend touches of Triton's internals: the launch, the compile listener, the errors of the compiler."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kcheck.errors import UnsupportedVersion


def _modules() -> tuple[Any, Any, Any, Any]:
    import triton
    from triton import compiler, knobs
    from triton.runtime import errors, jit

    return triton, jit, knobs, (compiler, errors)


def check() -> None:
    """Check that the installed Triton has what this backend touches.

    Raises:
        UnsupportedVersion: Something moved; the sentence names it.
    """
    try:
        triton, jit, knobs, (compiler, errors) = _modules()
    except ImportError as error:
        raise UnsupportedVersion(f"triton: {error}; kcheck supports Triton 3.4 to 3.9") from None
    wanted = {
        "triton.runtime.jit.JITFunction.run": getattr(jit, "JITFunction", None) and hasattr(jit.JITFunction, "run"),
        "triton.knobs.compilation.listener": hasattr(knobs.compilation, "listener"),
        "triton.compiler.CompilationError": hasattr(compiler, "CompilationError"),
        "triton.runtime.errors.OutOfResources": hasattr(errors, "OutOfResources"),
        "triton.runtime.errors.PTXASError": hasattr(errors, "PTXASError"),
    }
    for name, exists in wanted.items():
        if not exists:
            raise UnsupportedVersion(
                f"triton {triton.__version__} has no {name}; kcheck supports Triton 3.4 to 3.9, install one of these"
            )


def check_compiling() -> None:
    """Check that the installed Triton has what the view check touches beside that.

    Raises:
        UnsupportedVersion: Something moved; the sentence names it.
    """
    import triton
    from triton._C.libtriton import ir, passes

    compiled = triton.compiler.CompiledKernel
    wanted = {
        "CUDABackend.make_ttir": hasattr(nvidia_backend(), "make_ttir"),
        "CUDABackend.hash": hasattr(nvidia_backend(), "hash"),
        "CompiledKernel.launch_metadata": hasattr(compiled, "launch_metadata"),
        "CompiledKernel._init_handles": hasattr(compiled, "_init_handles"),
        "passes.common.add_inliner": hasattr(passes.common, "add_inliner"),
        "ir.parse_mlir_module": hasattr(ir, "parse_mlir_module"),
    }
    for name, exists in wanted.items():
        if not exists:
            raise UnsupportedVersion(
                f"triton {triton.__version__} has no {name}, which the view check on a GPU needs; kcheck supports "
                "Triton 3.4 to 3.9, install one of these, or leave out --viewcheck"
            )


def jit_function() -> Any:
    """The class whose `run` launches a kernel."""
    return _modules()[1].JITFunction


def compilation() -> Any:
    """The knobs object whose `listener` is told of every compile and cache hit."""
    return _modules()[2].compilation


def compile_errors() -> tuple[type[BaseException], ...]:
    """Exceptions that say that a kernel cannot be compiled, or not be launched with what it needs."""
    compiler, errors = _modules()[3]
    return compiler.CompilationError, errors.OutOfResources, errors.PTXASError


def reread_source(kernel: Any) -> None:
    """Have a kernel or device function compiled from its source as `inspect` shows it now.

    Nothing that calls it may have been compiled in this process: a caller keeps the hash of what it calls.

    Args:
        kernel: A ``JITFunction``.
    """
    import triton

    kernel._unsafe_update_src(triton.jit(kernel.fn).src)


def nvidia_backend() -> Any:
    """The class that lowers kernels for NVIDIA GPUs."""
    from triton.backends.nvidia.compiler import CUDABackend

    return CUDABackend


def inlined(module: Any) -> str:
    """The text of a module with everything inlined, and block pointers and descriptors made plain pointers."""
    from triton._C.libtriton import ir, passes

    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    for name in ("add_rewrite_tensor_pointer", "add_rewrite_tensor_descriptor_to_pointer"):
        if hasattr(passes.ttir, name):
            getattr(passes.ttir, name)(manager)
    try:
        manager.run(module, "kcheck")
    except TypeError:  # before Triton 3.5
        manager.run(module)
    return str(module)


def parsed(text: str, context: Any) -> Any:
    """A module from its text."""
    from triton._C.libtriton import ir

    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def uncached() -> str:
    """How a ``tt.load`` is written that does not look into the caches of a multiprocessor."""
    import triton

    if tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 9):
        return "{cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>}"
    return "cacheModifier = cg"


Rewrite = Callable[[str], tuple[str, dict[str, Any]]]


@contextmanager
def rewriting(rewrite: Rewrite, key: str) -> Iterator[None]:
    """Have kernels compiled from rewritten IR.

    Args:
        rewrite: From the text of a module to its new text, and facts to be kept in the kernel's metadata.
        key: Becomes a part of the key under which kernels are kept on disk.
    """
    backend = nvidia_backend()
    make_ttir, plain_hash = backend.make_ttir, backend.hash

    def rewritten(module: Any, metadata: dict[str, Any], *rest: Any) -> Any:
        text, facts = rewrite(inlined(module))
        metadata.update(facts)
        return make_ttir(parsed(text, module.context), metadata, *rest)

    backend.make_ttir = staticmethod(rewritten)
    backend.hash = lambda self: f"{plain_hash(self)}-{key}"
    try:
        yield
    finally:
        backend.make_ttir, backend.hash = staticmethod(make_ttir), plain_hash


@contextmanager
def before_launch(callback: Callable[[Any, Sequence[int], Sequence[Any]], None]) -> Iterator[None]:
    """Call back just before a compiled kernel is launched: with it, the grid, and the values of its parameters."""
    from triton.compiler import CompiledKernel

    plain = CompiledKernel.launch_metadata

    def launch_metadata(self: Any, grid: Any, stream: Any, *values: Any) -> Any:
        callback(self, grid, values)
        return plain(self, grid, stream, *values)

    CompiledKernel.launch_metadata = launch_metadata
    try:
        yield
    finally:
        CompiledKernel.launch_metadata = plain


def registers(compiled: Any) -> tuple[int, int]:
    """Registers of a thread, and threads of a block, of a compiled kernel."""
    compiled._init_handles()
    return compiled.n_regs, 32 * compiled.metadata.num_warps


def parameters(compiled: Any, values: Sequence[Any]) -> Iterator[tuple[int, str, Any]]:
    """The values of a launch that are parameters of the kernel's IR: number there, name, value."""
    source, number = compiled.src, 0
    for name, value in zip(source.fn.arg_names, values, strict=False):
        for path, kind, part in _leaves(name, source.signature.get(name), value):
            if kind == "constexpr":
                continue
            yield number, path, part
            number += _size(kind, compiled)


def _leaves(path: str, kind: Any, value: Any) -> Iterator[tuple[str, str, Any]]:
    """A value, or the parts of a tuple."""
    if isinstance(kind, (tuple, list)):
        for position, (inner, part) in enumerate(zip(kind, value, strict=False)):
            yield from _leaves(f"{path}[{position}]", inner, part)
    else:
        yield path, str(kind), value


def _size(kind: str, compiled: Any) -> int:
    """Parameters in the IR that a value becomes: of a descriptor its address, sizes, strides and flags."""
    if not kind.startswith("tensordesc"):
        return 1
    count = len(re.findall(r"\[([\d, ]*)\]", kind)[0].split(","))
    kinds = [k for k in compiled.src.signature.values() if k != "constexpr"]
    descriptors = [k for k in kinds if str(k).startswith("tensordesc")]
    plain = len(kinds) - len(descriptors)
    dims = sum(len(re.findall(r"\[([\d, ]*)\]", str(k))[0].split(",")) for k in descriptors)
    flags: int = (compiled.metadata.kcheck_parameters - plain - len(descriptors) - 2 * dims) // len(descriptors)
    return 1 + 2 * count + flags


def tensor_of(value: Any) -> Any:
    """The tensor that a value of a launch points to: itself, what it wraps, or what a descriptor describes."""
    import torch

    for _ in range(3):
        if isinstance(value, torch.Tensor):
            return value
        value = getattr(value, "base", None)
    return None
