"""The batched engine: a launch whose programs run together, or not at all.

A launch is run here only if nothing in it is a finding and no program sees what another one does. Where that does not
hold, or is not known, everything written is undone and the sequential engine runs the launch.

In one order of programs, ``reverse``, atomics are let go of that rule: there programs take turns at them as they do on
a GPU, so that a result that hangs on their order differs from that of the other run of a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from kcheck.worker.backends.base import Conditions, KernelStopped, ProgramOrder, Watch
from kcheck.worker.backends.batched.allocation import keep_freed_memory
from kcheck.worker.backends.batched.evaluate import Evaluator
from kcheck.worker.backends.batched.footprint import OrderMatters, Turns
from kcheck.worker.backends.batched.language import Language
from kcheck.worker.backends.batched.memory import Memory
from kcheck.worker.backends.batched.programs import Program, Programs
from kcheck.worker.backends.batched.triton_seams import missing
from kcheck.worker.backends.batched.values import Array, NotBatched, TooWide
from kcheck.worker.backends.interpret.arguments import Argument
from kcheck.worker.backends.interpret.history import AccessHistory

MIN_PROGRAMS = 12  # fewer are faster one after the other
RESIDENT = 64  # programs that surely run side by side on a GPU, so that they may take turns at atomics
_FEWEST = 32  # programs of a chunk
_LANES = 1 << 20  # of the widest block of a chunk


@dataclass(slots=True)
class _Tries:
    """Launches of a kernel that went wrong, one after the other.

    Attributes:
        reason: Of the last one.
        failed: How many.
        skipped: Launches since then.
    """

    reason: str
    failed: int
    skipped: int = 0


Written = tuple[Argument, Array, Array]  # positions and values

# By kernel and its constants: the lanes of its widest block, once they are known.
_widths: WeakKeyDictionary[FunctionType, dict[tuple[tuple[str, Any], ...], int]] = WeakKeyDictionary()
_MOST_WIDTHS = 256

_PATIENCE = 3  # failed launches before a pause
_PAUSE = 32  # launches
# By whether programs take turns.
_tries: dict[bool, WeakKeyDictionary[FunctionType, _Tries]] = {
    False: WeakKeyDictionary(),
    True: WeakKeyDictionary(),
}
_turning: WeakSet[FunctionType] = WeakSet()  # kernels whose programs do take turns


class BatchedEngine:
    """Runs launches of one watch.

    Args:
        watch: Gets the reasons why kernels ran one program after the other.
        conditions: Of the watch.
        history: Told what was written.
        engine: ``batched`` also takes launches of few programs.
        order: Of the programs.
    """

    def __init__(
        self, watch: Watch, conditions: Conditions, history: AccessHistory, engine: str, order: ProgramOrder
    ) -> None:  # fmt: skip
        self._reasons = watch.sequential
        self._conditions = conditions
        self._history = history
        self._least = MIN_PROGRAMS if engine == "auto" else 1
        self._turns = order == "reverse"
        self._tries = _tries[self._turns]
        self._off = conditions.undefined != "zero" or conditions.stale or bool(conditions.traced)

    def run(
        self, kernel: Any, arguments: dict[str, Any], tensors: Sequence[Argument], programs: Sequence[int],
        grid: Program,
    ) -> bool:  # fmt: skip
        """Run a launch; false if it was left as it is, for the sequential engine.

        Args:
            kernel: The ``JITFunction``.
            arguments: What its parameters are inside of it.
            tensors: Tensor arguments, shadows set.
            programs: What runs, in order: positions in the grid, of which the first axis runs fastest.
            grid: Programs along each axis.
        """
        language = prepare()
        if self._off or language is None or len(programs) < self._least or self._is_hopeless(kernel):
            return False
        language.builder.set_grid_dim(*grid)
        try:
            while (written := self._together(language, kernel, arguments, tensors, programs, grid)) is None:
                pass
        except Exception as error:  # whatever it is: the sequential engine says what it means
            self._note(kernel, error)
            return False
        self._tries.pop(kernel.fn, None)
        for argument, cells, values in written:
            self._history.write(argument, cells, values)
        return True

    def _together(
        self, language: Language, kernel: Any, arguments: dict[str, Any], tensors: Sequence[Argument],
        programs: Sequence[int], grid: Program,
    ) -> list[Written] | None:  # fmt: skip
        """Run all programs; gives what they wrote where no value was. If that fails everything is as it was.

        None: fewer are to run at a time, and another try is worth it.
        """
        most = RESIDENT if self._turns and kernel.fn in _turning else len(programs)
        turns: Turns = "never" if not self._turns else "taken" if most <= RESIDENT else "wanted"
        memory = Memory(tensors, len(programs), self._conditions.poison, turns)
        language.builder.memory = memory
        try:
            with language.spoken():
                _run_chunks(language, kernel, arguments, programs, grid, most)
            memory.check()
            return _written(memory, tensors)
        except TooWide:
            memory.undo()
        except OrderMatters:
            memory.undo()
            if turns != "wanted":
                raise
            _turning.add(kernel.fn)
        except BaseException:
            memory.undo()
            raise
        finally:
            language.builder.memory = None
        return None

    def _is_hopeless(self, kernel: Any) -> bool:
        """Whether a kernel's launches before went so wrong that this one is not worth a try."""
        tries = self._tries.get(kernel.fn)
        if kernel.fn.__name__ in self._reasons:
            return True
        if tries is None or tries.failed < _PATIENCE or tries.skipped == _PAUSE:
            return False
        tries.skipped += 1
        self._reasons[kernel.fn.__name__] = tries.reason
        return True

    def _note(self, kernel: Any, error: Exception) -> None:
        """A launch went wrong: remember why, unless it is for a finding."""
        reason = error.reason if isinstance(error, NotBatched) else f"{type(error).__name__}: {error}"
        if reason and not isinstance(error, KernelStopped):
            self._reasons[kernel.fn.__name__] = reason
            failed = self._tries[kernel.fn].failed if kernel.fn in self._tries else 0
            self._tries[kernel.fn] = _Tries(reason, failed + 1)


def _written(memory: Memory, tensors: Sequence[Argument]) -> list[Written]:
    """Which memory had no value and has one now: positions and values, by argument."""
    homes: dict[int, Argument] = {}
    for argument in tensors:
        if argument.shadow is not None and argument.shadow.valueless:
            homes.setdefault(argument.backing.address, argument)
    found = [(argument, memory.written(argument)) for argument in homes.values()]
    return [(argument, *written) for argument, written in found if written is not None and written[0].size]


def _run_chunks(
    language: Language, kernel: Any, arguments: dict[str, Any], programs: Sequence[int], grid: Program, most: int
) -> None:
    """Run programs in chunks: of `most` if they take turns, else of a size that is fast."""
    builder, memory = language.builder, language.builder.memory
    assert memory is not None
    evaluator = Evaluator(builder, language)
    language.call = lambda function, args, kwargs: evaluator.run(function.fn, args, kwargs, builder.programs)
    constants = tuple((name, value) for name, value in arguments.items() if isinstance(value, (int, float, str)))
    widths = _widths.setdefault(kernel.fn, {})
    builder.widest = widths.get(constants, 1)
    first, size = 0, most if memory.turns == "taken" else max(_FEWEST, _LANES // builder.widest)
    builder.most_lanes = _LANES if size > max(_FEWEST, RESIDENT) else None
    try:
        while first < len(programs):
            chosen = Programs(programs[first : first + size], grid, first + 1)
            memory.begin_chunk()
            evaluator.run(kernel.fn, (), arguments, chosen)
            first += len(chosen)
    finally:
        if len(widths) >= _MOST_WIDTHS:
            widths.clear()
        widths[constants] = builder.widest


@cache
def prepare() -> Language | None:
    """The language of kernels; to be made while Triton's own functions are in place. None: Triton lacks something."""
    if missing():
        return None
    keep_freed_memory()
    return Language()
