"""Entering and leaving: for the time of a watch, launching a kernel interprets it, and nothing is left behind.

What has to be patched is worked out once per process. Entering then sets some hundred attributes and leaving puts the
originals back, so that the same kernel objects still compile for a GPU afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from kcheck.worker.backends.base import (
    PLAIN,
    CompileFailed,
    Conditions,
    ProgramOrder,
    Region,
    Unsupported,
    Watch,
)
from kcheck.worker.backends.batched.engine import BatchedEngine, prepare
from kcheck.worker.backends.interpret import (
    accesses,
    autotune,
    caching,
    frames,
    hints,
    libdevice,
    numerics,
    operators,
    overflow,
    pointers,
    products,
    reductions,
    runtime,
)
from kcheck.worker.backends.interpret.arguments import Cells, data_ptr
from kcheck.worker.backends.interpret.faults import FaultLog
from kcheck.worker.backends.interpret.hazards import HazardLog
from kcheck.worker.backends.interpret.hidden import Hidden
from kcheck.worker.backends.interpret.history import AccessHistory
from kcheck.worker.backends.interpret.launch import Launcher
from kcheck.worker.backends.interpret.memory import Memory
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.rewrite import Rewriter
from kcheck.worker.backends.interpret.spinning import MAX_TURNS, SpinGuard
from kcheck.worker.backends.interpret.trace import Trace
from kcheck.worker.backends.interpret.triton_seams import core, interpreter, jit, native_memory, semantic, tl, tl_math
from kcheck.worker.backends.interpret.types import Tensor

_MISSING = object()


class _Entered:
    """The launcher and memory of the watch that is entered, if any."""

    launcher: Launcher | None = None
    memory: Memory | None = None


_entered = _Entered()


@contextmanager
def entered(
    regions: Sequence[Region], spans: Sequence[tuple[int, int]], decoy_seed: int, order: ProgramOrder,
    max_programs: int | None, conditions: Conditions = PLAIN,
    engine: str = "sequential",
) -> Iterator[Watch]:  # fmt: skip
    """Interpret and check every launch until the context ends."""
    if _entered.launcher is not None:
        raise RuntimeError("the interpret backend is already watching: watches cannot be nested")
    patches, rewriter = _prepared()
    watch = Watch()
    cells = [Cells.of(region) for region in regions]
    faults = FaultLog(watch, cells)
    hazards = HazardLog(watch, faults)
    history = AccessHistory(cells, hazards, conditions)
    spin = SpinGuard()
    trace = Trace(watch, conditions) if conditions.traced else None
    memory = Memory(cells, spans, decoy_seed, faults, history, spin, Hidden(watch, conditions), trace)
    plain = engine == "sequential" or conditions.hinted is not None
    batched = None if plain else BatchedEngine(watch, conditions, history, engine, order)
    _entered.memory = memory
    _entered.launcher = Launcher(watch, cells, memory, faults, history, spin, rewriter, order, max_programs, batched)
    runtime.current.spin = spin
    overflow.begin(hazards)
    hints.begin(hints.HintLog(watch, faults, memory, conditions.hinted))
    if conditions.hinted is not None:
        spin.turns_left = MAX_TURNS
    patches.apply()
    try:
        interpreter._interpreter = memory
        yield watch
    finally:
        interpreter._interpreter = native_memory
        patches.withdraw()
        overflow.begin(None)
        hints.begin(None)
        _entered.launcher = _entered.memory = None


@cache
def _prepared() -> tuple[PatchSet, Rewriter]:
    """All patches, and the rewriter whose kernels use them."""
    prepare()
    patches = PatchSet()
    _collect_triton_patches(patches)
    caching.install(patches)
    numerics.install(patches)
    pointers.install(patches)
    products.install(patches)
    reductions.install(patches)
    libdevice.install(patches)
    accesses.install(patches)
    operators.install(patches)
    overflow.install(patches)
    hints.install(patches)
    autotune.install(patches)
    for owner in (tl, core):
        patches.put(owner, "static_assert", _static_assert)
    patches.put(jit.JITFunction, "run", _run)
    patches.put(jit.JITFunction, "__call__", _call)
    patches.put(jit.JITFunction, "warmup", _warmup)
    patches.put(interpreter.GridExecutor, "__init__", _refuse_interpreted)
    patches.put(torch.Tensor, "data_ptr", _noted_data_ptr)
    return patches, Rewriter(patches.replacements())


def _collect_triton_patches(patches: PatchSet) -> None:
    """Let Triton's interpreter patch its language, and take the result over instead of leaving it in place."""
    owners = [tl, core, tl_math, Tensor, core.tensor_descriptor_base, core.dtype]
    if hasattr(core, "condition"):
        owners.append(core.condition)
    before = [dict(vars(owner)) for owner in owners]

    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": core}))
    for owner, names in zip(owners, before, strict=True):
        for name, value in list(vars(owner).items()):
            original = names.get(name, _MISSING)
            if value is original or name in ("__dict__", "__weakref__"):
                continue
            patches.put(owner, name, _lean(original, value))
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
    # int(array) of a one-element array that is not 0-dimensional: an error from numpy 2.4 on.
    patches.put(Tensor, "__index__", lambda self: int(self.handle.data.reshape(-1)[0]))


def _lean(original: Any, patched: Any) -> Any:
    """A builtin bound to the interpreter without the two wrappers that Triton puts around it."""
    function = getattr(original, "__wrapped__", None)
    code = getattr(function, "__code__", None)
    wraps_original = (getattr(patched, "__kwdefaults__", None) or {}).get("member") is original
    if not wraps_original or function is None or code is None:
        return patched
    if "_semantic" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return patched

    def bound(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic
        return function(*args, **kwargs)

    return bound


class _NotCompiled:
    """What a launch returns on a GPU is the compiled kernel; here, looking at it cannot be answered."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(
            f"the wrapper reads {name} of the compiled kernel {self._kernel}; the CPU interpreter compiles nothing"
        )


def _run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> _NotCompiled:
    if not warmup and _entered.launcher is not None:
        _entered.launcher.run(self, args, kwargs, grid)
    return _NotCompiled(self.fn.__name__)


def _warmup(self: Any, *args: Any, **kwargs: Any) -> _NotCompiled:
    return _NotCompiled(self.fn.__name__)


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    assert _entered.launcher is not None
    return _entered.launcher.call(self, args, kwargs)


def _refuse_interpreted(self: Any, fn: Any, *_: Any, **__: Any) -> None:
    raise Unsupported(
        f"kernel {fn.__name__} was imported under TRITON_INTERPRET=1 and runs in Triton's own interpreter only"
    )


def _static_assert(condition: Any, message: Any = "", **_: Any) -> None:
    if not condition:
        chain, _frames = frames.kernel_chain()
        text = core._unwrap_if_constexpr(message)
        reason = f"static_assert failed: {text}" if text else "static_assert failed"
        raise CompileFailed(reason, chain[-1] if chain else None)


def _noted_data_ptr(self: torch.Tensor) -> int:
    """``torch.Tensor.data_ptr``: pointers that the target stores in memory come from here."""
    address = data_ptr(self)
    if _entered.memory is not None:
        _entered.memory.note(self)
    return address
