"""The batched engine: a launch whose programs run together, or not at all.

A launch is run here only if nothing in it is a finding and no program sees what another one does. Where that does not
hold, or is not known, everything written is undone and the sequential engine runs the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from kcheck.worker.backends.base import Conditions, Engine, KernelStopped, Watch
from kcheck.worker.backends.batched.evaluate import Evaluator
from kcheck.worker.backends.batched.language import Language
from kcheck.worker.backends.batched.memory import Memory
from kcheck.worker.backends.batched.programs import Program, Programs
from kcheck.worker.backends.batched.values import NotBatched
from kcheck.worker.backends.interpret.arguments import Argument
from kcheck.worker.backends.interpret.history import AccessHistory

MIN_PROGRAMS = 8  # fewer are faster one after the other
_FIRST = 32  # programs of the first chunk, which shows how wide a program is
_LANES = 1 << 18  # of the widest access of a chunk


class BatchedEngine:
    """Runs launches of one watch.

    Args:
        watch: Gets the reasons why kernels ran one program after the other.
        conditions: Of the watch.
        history: Told what was written.
        engine: ``batched`` also takes launches of few programs.
    """

    def __init__(self, watch: Watch, conditions: Conditions, history: AccessHistory, engine: Engine) -> None:
        self._reasons = watch.sequential
        self._conditions = conditions
        self._history = history
        self._least = MIN_PROGRAMS if engine == "auto" else 1
        self._off = conditions.undefined != "zero" or conditions.stale or bool(conditions.traced)

    def run(
        self, kernel: Any, arguments: dict[str, Any], tensors: Sequence[Argument], programs: Sequence[Program],
        grid: Program,
    ) -> bool:  # fmt: skip
        """Run a launch; false if it was left as it is, for the sequential engine.

        Args:
            kernel: The ``JITFunction``.
            arguments: What its parameters are inside of it.
            tensors: Tensor arguments, shadows set.
            programs: What runs, in order.
            grid: Programs along each axis.
        """
        language = prepare()
        if self._off or len(programs) < self._least or kernel.fn.__name__ in self._reasons:
            return False
        memory = Memory(tensors, len(programs), self._conditions.poison)
        language.builder.set_grid_dim(*grid)
        language.builder.memory = memory
        language.patches.apply()
        try:
            _run_chunks(language, kernel, arguments, programs, memory)
            memory.check()
        except (NotBatched, KernelStopped) as stopped:
            memory.undo()
            reason = stopped.reason if isinstance(stopped, NotBatched) else ""
            if reason:
                self._reasons[kernel.fn.__name__] = reason
            return False
        except Exception as error:  # whatever it is: the sequential engine says what it means
            memory.undo()
            self._reasons[kernel.fn.__name__] = f"{type(error).__name__}: {error}"
            return False
        finally:
            language.patches.withdraw()
            language.builder.memory = None
        self._remember(memory, tensors)
        return True

    def _remember(self, memory: Memory, tensors: Sequence[Argument]) -> None:
        """Tell which memory has a value now."""
        told: set[int] = set()
        for argument in tensors:
            home = argument.backing.address
            if argument.shadow is None or not argument.shadow.valueless or home in told:
                continue
            told.add(home)
            written = memory.written(argument)
            if written is not None and written[0].size:
                self._history.write(argument, *written)


def _run_chunks(
    language: Language, kernel: Any, arguments: dict[str, Any], programs: Sequence[Program], memory: Memory
) -> None:
    evaluator = Evaluator(language.builder, language)
    language.call = lambda function, args, kwargs: evaluator.run(function.fn, args, kwargs, language.builder.programs)
    first, size = 0, min(_FIRST, len(programs))
    while first < len(programs):
        chosen = Programs([programs[at] for at in range(first, min(first + size, len(programs)))], first + 1)
        memory.begin_chunk()
        memory.widest = 0
        evaluator.run(kernel.fn, (), arguments, chosen)
        first += len(chosen)
        size = max(_FIRST, _LANES * len(chosen) // max(memory.widest, len(chosen)))


@cache
def prepare() -> Language:
    """The language of kernels; to be made while Triton's own functions are in place."""
    return Language()
