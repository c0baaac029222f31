"""Compiles kernels with checks for a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kcheck.worker.backends.cuda import triton_seams
from kcheck.worker.backends.cuda.viewcheck.instrument import Instrumented, Manner, instrument

TABLE = 0x2F00_0000_0000


class Compiled:
    """A kernel compiled as far as asked, with the checks put into it.

    Args:
        kernel: A ``JITFunction``.
        signature: Types by parameter, ``constexpr`` excepted.
        constants: Values of constexprs.
        arch: ``80`` or ``90``.
        exact: Whether the checks are.
        state: Also look for races and reads of what nobody wrote.
        aligned: Parameters that are multiples of 16.
        to: Last stage: ``ttir``, ``ptx`` or ``cubin``; ``""``: none.
    """

    def __init__(
        self,
        kernel: Any,
        signature: Mapping[str, str],
        constants: Mapping[str, Any],
        *,
        arch: int = 90,
        exact: bool = False,
        state: bool = False,
        aligned: tuple[str, ...] = (),
        to: str = "ptx",
    ) -> None:
        target = GPUTarget("cuda", arch, 32)
        backend = triton.compiler.make_backend(target)
        options = backend.parse_options({})
        names = {name: index for index, name in enumerate(kernel.arg_names)}
        source = ASTSource(
            fn=kernel,
            signature={n: signature.get(n, "constexpr") for n in kernel.arg_names},
            constexprs={(names[name],): value for name, value in constants.items()},
            attrs={(names[name],): [["tt.divisibility", 16]] for name in aligned},
        )
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        arguments = (options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
        try:
            module = source.make_ir(target, *arguments)
        except TypeError:  # before Triton 3.5
            module = source.make_ir(*arguments)
        self.plain = triton_seams.inlined(module)
        self.checked: Instrumented = instrument(self.plain, TABLE, Manner(exact, state))
        module = triton_seams.parsed(self.checked.text, context)
        stages: dict[str, Any] = {}
        try:
            backend.add_stages(stages, options, source.language)
        except (AttributeError, TypeError):  # before Triton 3.5
            backend.add_stages(stages, options)
        self.stages: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        for name, stage in stages.items():
            if not to:
                break
            module = self.stages[name] = stage(module, metadata)
            if name == to:
                break
