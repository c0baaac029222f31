"""Private internals of Triton that the batched engine touches beyond those of the sequential one."""

from __future__ import annotations

from functools import cache

from kcheck.worker.backends.interpret.triton_seams import Seam, installed_version

_BUILDER = (
    "options ir_rmw_op_to_interpreter_rmw_op ir_sem_to_interpreter_sem binary_op unary_op ternary_op cast_impl "
    "create_get_program_id create_get_num_programs create_add create_sub create_mul create_and create_or create_ashr "
    "create_idiv create_int_cast create_addptr create_bitcast create_int_to_ptr create_ptr_to_int create_make_range "
    "create_splat create_broadcast create_expand_dims create_reshape create_trans create_cat "
    "create_join create_split create_gather create_histogram create_load create_masked_load create_store "
    "create_masked_store create_atomic_rmw create_atomic_cas create_dot create_print create_icmpSLT create_icmpULT "
    "create_icmpEQ create_make_tensor_descriptor create_descriptor_load create_descriptor_store "
    "create_descriptor_gather create_descriptor_scatter"
)

SEAMS: tuple[Seam, ...] = (
    *(
        Seam("triton.runtime.interpreter", f"interpreter_builder.{name}")
        for name in _BUILDER.split()
    ),
    *(
        Seam("triton.runtime.interpreter", f"InterpreterBuilder.{name}", until=(3, 7))
        for name in (
            "create_make_block_ptr", "create_advance", "create_tensor_pointer_load", "create_tensor_pointer_store",
        )
    ),
    *(
        Seam("triton.runtime.interpreter", name)
        for name in ("InterpreterOptions", "_get_np_dtype", "_ir.PADDING_OPTION.PAD_ZERO", "_ir.PADDING_OPTION.PAD_NAN")
    ),
    *(
        Seam("triton.language.semantic", f"TritonSemantic.{name}")
        for name in (
            "broadcast_impl_value", "splat", "to_tensor", "cast", "scalar_constant", "logical_and", "logical_or",
        )
    ),
    *(Seam("triton.language.core", name) for name in ("is_builtin", "dot_scaled", "tensor_descriptor_base")),
)  # fmt: skip


@cache
def missing() -> str:
    """The first of them that the installed Triton does not have; ``""`` if all are there."""
    version = installed_version()
    lacking = (seam for seam in SEAMS if seam.since <= version <= seam.until and not seam.exists())
    return next((seam.name for seam in lacking), "")
