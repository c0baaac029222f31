"""A watch leaves nothing behind: kernels still compile for a GPU, modules and numpy are as before."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice
from triton.runtime import autotuner, interpreter, jit

from kcheck.worker.backends.base import Region
from kcheck.worker.backends.interpret import InterpretBackend

_OWNERS: list[Any] = [
    tl, tl.core, tl.math, tl.core.tensor, tl.core.dtype, tl.core.block_type, tl.core.tensor_descriptor_base, libdevice,
    interpreter, interpreter.InterpreterBuilder, interpreter.TensorHandle, interpreter.interpreter_builder,
    jit.JITFunction, autotuner.Autotuner, torch.Tensor, tl.float32, tl.int32, tl.int1,
]  # fmt: skip
_RUNS_AT_LAUNCH = ("grid_idx", "grid_dim")


def _state() -> list[dict[str, Any]]:
    return [{name: value for name, value in vars(owner).items() if name not in _RUNS_AT_LAUNCH} for owner in _OWNERS]


def _assert_same(before: list[dict[str, Any]]) -> None:
    for owner, old, new in zip(_OWNERS, before, _state(), strict=True):
        changed = [name for name in old.keys() | new.keys() if old.get(name) is not new.get(name)]
        assert not changed, (owner, changed)


def _compile(kernel: Any) -> bytes:
    names = {"x": "*fp32", "out": "*fp32", "n": "i32", "by": "i32", "BLOCK": "constexpr"}
    source = ASTSource(fn=kernel, signature=names, constexprs={"BLOCK": 8})
    binary: bytes = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"]
    return binary


def test_the_same_kernel_runs_and_then_compiles(bugs: Any) -> None:
    x, out = torch.randn(8), torch.zeros(8)
    with InterpretBackend().watch([Region("x", x, False), Region("out", out, True)]) as watch:
        bugs.shift[(1,)](x, out, 8, 0, BLOCK=8)
    assert len(watch.launches) == 1
    assert torch.equal(out, x)
    assert _compile(bugs.shift)[:4] == b"\x7fELF"
    with InterpretBackend().watch([]):
        bugs.shift[(1,)](x * 2, out, 8, 0, BLOCK=8)
    assert torch.equal(out, x * 2)


def test_types_stay_copyable(features: Any) -> None:
    """The compiler copies type objects, so nothing may be kept on them."""
    x, o = torch.randn(16), torch.zeros(16)
    with InterpretBackend().watch([]):
        features.sort[(1,)](x, o, B=16)
    source = ASTSource(fn=features.sort, signature={"x": "*fp32", "o": "*fp32", "B": "constexpr"}, constexprs={"B": 16})
    assert triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"][:4] == b"\x7fELF"


def test_everything_is_restored(bugs: Any) -> None:
    x = torch.randn(8)
    with InterpretBackend().watch([]):
        bugs.shift[(1,)](x, x, 8, 0, BLOCK=8)
    before = _state()
    with InterpretBackend().watch([]):
        assert vars(tl)["load"] is not before[0]["load"]
        bugs.shift[(1,)](x, x, 8, 0, BLOCK=8)
    _assert_same(before)


def test_everything_is_restored_after_the_target_raised(bugs: Any) -> None:
    before, errors = _state(), np.geterr()
    with pytest.raises(ZeroDivisionError), InterpretBackend().watch([]):
        bugs.shift[lambda meta: (1 // 0,)](torch.zeros(8), torch.zeros(8), 8, 0, BLOCK=8)
    _assert_same(before)
    assert np.geterr() == errors
    assert "data_ptr" not in vars(torch.Tensor)
    assert _compile(bugs.shift)[:4] == b"\x7fELF"


def test_a_first_watch_leaves_triton_as_it_was() -> None:
    """In a fresh process, where the patches have not been worked out before."""
    script = (
        "import triton.language as tl, torch\n"
        "from triton.runtime import interpreter\n"
        "owners = [tl, tl.core, tl.math, tl.core.tensor, tl.core.dtype, interpreter]\n"
        "before = [dict(vars(o)) for o in owners]\n"
        "from kcheck.worker.backends.interpret import InterpretBackend\n"
        "with InterpretBackend().watch([]): pass\n"
        "for o, old in zip(owners, before):\n"
        "    assert dict(vars(o)) == old, (o, set(vars(o)) ^ set(old))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_the_backend_does_not_import_triton() -> None:
    script = (
        "import sys; from kcheck.worker.backends.interpret import InterpretBackend; InterpretBackend();"
        "assert not any(name.split('.')[0] == 'triton' for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_targets_numpy_keeps_its_error_state(bugs: Any) -> None:
    seen = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append(np.geterr())
        return (1,)

    with np.errstate(divide="raise"):
        outside = np.geterr()
        with InterpretBackend().watch([]):
            bugs.shift[grid](torch.zeros(8), torch.zeros(8), 8, 0, BLOCK=8)
            seen.append(np.geterr())
    assert seen == [outside, outside]


def test_watches_cannot_be_nested() -> None:
    backend = InterpretBackend()
    with backend.watch([]), pytest.raises(RuntimeError, match="nested"), backend.watch([]):
        pass
    with backend.watch([]):
        pass


def test_a_kernel_made_during_a_watch_is_an_ordinary_one(features: Any) -> None:
    x, o = torch.ones(16), torch.zeros(16)
    with InterpretBackend().watch([]):
        kernel = features.make_closure_over_function()
        kernel[(1,)](x, o, B=16)
    assert isinstance(kernel, jit.JITFunction)
    assert torch.equal(o, x + 1)


def test_entering_and_leaving_is_cheap() -> None:
    backend = InterpretBackend()
    with backend.watch([]):
        pass
    times = []
    for _ in range(50):
        start = time.perf_counter()
        with backend.watch([]):
            pass
        times.append(time.perf_counter() - start)
    assert min(times) < 2e-3  # 0.5 ms measured; room for a busy machine


def test_the_protocol_is_kept() -> None:
    from kcheck.worker.backends.base import Backend

    backend: Backend = InterpretBackend()
    assert (backend.name, backend.device) == ("interpret", "cpu")
    assert list(inspect.signature(Backend.watch).parameters) == list(
        inspect.signature(InterpretBackend.watch).parameters
    )


def test_kernels_imported_for_tritons_own_interpreter_are_refused() -> None:
    folder = Path(__file__).parent
    script = (
        "import sys, torch; sys.path.insert(0, sys.argv[1])\n"
        "from kcheck.worker.backends.base import Unsupported\n"
        "from kcheck.worker.backends.interpret import InterpretBackend\n"
        "import bug_kernels\n"
        "with InterpretBackend().watch([]):\n"
        "    try: bug_kernels.clear[(1,)](torch.zeros(8), 8, BLOCK=8)\n"
        "    except Unsupported as error: assert 'TRITON_INTERPRET' in str(error)\n"
        "    else: raise SystemExit('not refused')\n"
    )
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, env=environment)
