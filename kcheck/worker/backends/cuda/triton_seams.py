"""What the GPU backend touches of Triton's internals: the launch, the compile listener, the errors of the compiler."""

from __future__ import annotations

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
