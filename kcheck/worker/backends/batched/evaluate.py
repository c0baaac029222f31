"""Runs the steps of a kernel for many programs, which part at branches and meet again behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.batched.builder import BatchedBuilder
from kcheck.worker.backends.batched.language import Language
from kcheck.worker.backends.batched.programs import Programs
from kcheck.worker.backends.batched.ranges import Range
from kcheck.worker.backends.batched.scopes import ABSENT, Missing, Part, Scope, merged
from kcheck.worker.backends.batched.syntax import ITEM, For, If, Plain, Return, Step, While, source_of
from kcheck.worker.backends.batched.values import NotBatched, shape_of
from kcheck.worker.backends.interpret.types import Tensor

Bools = npt.NDArray[np.bool_]

# Turns of a while loop that no program leaves: the programs may wait for each other.
MAX_TURNS = 4_000
MAX_TURNS_OF_WAITING = 100  # where memory decides when it ends


class _Call:
    """One call of a function.

    Args:
        variables: Global ones.
    """

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables
        self.returned: list[Part] = []
        self.loops = 0


class Evaluator:
    """Runs functions.

    Args:
        builder: Told which programs run.
        language: Helpers, and what stands for names.
    """

    def __init__(self, builder: BatchedBuilder, language: Language) -> None:
        self._builder = builder
        self._language = language

    def run(self, function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any], programs: Programs) -> Any:
        """Call a function for some programs.

        Returns:
            What it returns.

        Raises:
            NotBatched: It cannot be run here.
        """
        source = source_of(function)
        bound = source.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        scope = Scope(programs, self._language.names_of(function))
        scope.update((name, _plain(value)) for name, value in bound.arguments.items())
        call = _Call(function.__globals__)
        before = self._builder.programs, self._builder.discard
        try:
            self._block(source.steps, scope, call)
        finally:
            self._builder.programs, self._builder.discard = before
        return _result(call.returned, len(programs))

    # -- steps: each gives None if all programs go on, else which do --------------------------------------------------

    def _block(self, steps: Sequence[Step], scope: Scope, call: _Call) -> Bools | None:
        for position, step in enumerate(steps):
            going = self._step(step, scope, call)
            if going is None or going.all():
                continue
            rest = steps[position + 1 :]
            if rest and going.any():
                going = self._rest(rest, scope, call, going)
            return going
        return None

    def _rest(self, steps: Sequence[Step], scope: Scope, call: _Call, going: Bools) -> Bools:
        """Run the steps behind one from which some programs returned."""
        rows = np.flatnonzero(going)
        inner = scope.narrowed(rows)
        still = self._block(steps, inner, call)
        if scope.outer is not None:  # else nobody looks at the variables any more
            left: dict[str, list[Part]] = {}
            inner.leave(left)
            scope.meet(left)
        if still is not None:
            going = going.copy()
            going[rows] = still
        return going

    def _step(self, step: Step, scope: Scope, call: _Call) -> Bools | None:
        if isinstance(step, Plain):
            self._enter(scope, step.discard)
            exec(step.code, call.variables, scope)
            return None
        if isinstance(step, If):
            return self._if(step, scope, call)
        if isinstance(step, For):
            self._for(step, scope, call)
            return None
        if isinstance(step, While):
            self._while(step, scope, call)
            return None
        return self._return(step, scope, call)

    def _enter(self, scope: Scope, discard: bool = False) -> None:
        self._builder.programs, self._builder.discard = scope.programs, discard

    def _value(self, code: CodeType, scope: Scope, call: _Call) -> Any:
        self._enter(scope)
        return eval(code, call.variables, scope)

    def _return(self, step: Return, scope: Scope, call: _Call) -> Bools:
        value = None if step.value is None else self._value(step.value, scope, call)
        if call.loops:
            raise NotBatched("return in a loop")
        count = len(scope.programs)
        call.returned.append((np.arange(count) if scope.frame_rows is None else scope.frame_rows, value))
        return np.zeros(count, bool)

    def _if(self, step: If, scope: Scope, call: _Call) -> Bools | None:
        chosen = _truth(self._value(step.test, scope, call), len(scope.programs))
        if isinstance(chosen, bool):
            return self._block(step.body if chosen else step.orelse, scope, call)
        going = np.ones(len(chosen), bool)
        left: dict[str, list[Part]] = {}
        for rows, steps in ((np.flatnonzero(chosen), step.body), (np.flatnonzero(~chosen), step.orelse)):
            if not steps:
                continue
            inner = scope.narrowed(rows)
            still = self._block(steps, inner, call)
            if still is not None:
                going[rows] = still
            if still is None or still.any():
                inner.leave(left)
        scope.meet(left)
        return None if going.all() else going

    def _while(self, step: While, scope: Scope, call: _Call) -> None:
        most = MAX_TURNS_OF_WAITING if step.waits else MAX_TURNS
        turns = 0

        def test(inner: Scope) -> bool | Bools:
            nonlocal turns
            turns += 1
            if turns > most:
                raise NotBatched("a while loop of many turns" + " that may wait for another program" * step.waits)
            going = _truth(self._value(step.test, inner, call), len(inner.programs))
            if not isinstance(going, bool):
                turns = 0
            return going

        self._loop(step.body, scope, call, test)

    def _for(self, step: For, scope: Scope, call: _Call) -> None:
        values = self._value(step.values, scope, call)
        if isinstance(values, Range) and not values.is_uniform:
            self._ragged(step, scope, call, values)
            return
        items: Iterable[Any] = values
        if isinstance(values, Tensor):
            raise NotBatched("a loop over a tensor")
        call.loops += 1
        for item in items:
            self._assign(step.target, item, scope, call)
            self._block(step.body, scope, call)
        call.loops -= 1

    def _ragged(self, step: For, scope: Scope, call: _Call, values: Range) -> None:
        """A loop that programs leave after different numbers of turns."""
        starts, counts, step_size = (np.broadcast_to(one, len(scope.programs)) for one in values.arrays())
        everyone = np.arange(len(scope.programs))
        turn = -1
        item: Any = None

        def test(inner: Scope) -> bool | Bools:
            nonlocal turn, item
            turn += 1
            at = everyone if inner is scope or inner.rows is None else inner.rows
            going = counts[at] > turn
            chosen: bool | Bools = bool(going[0]) if going.all() or not going.any() else going
            if chosen is not False:
                at = at if isinstance(chosen, bool) else at[chosen]
                item = values.item((starts[at] + step_size[at] * turn).astype(starts.dtype))
            return chosen

        self._loop(step.body, scope, call, test, lambda inner: self._assign(step.target, item, inner, call))

    def _loop(
        self, steps: Sequence[Step], scope: Scope, call: _Call, test: Callable[[Scope], bool | Bools],
        begin: Callable[[Scope], None] | None = None,
    ) -> None:  # fmt: skip
        """Run steps while the test holds, for each program.

        Args:
            steps: The body.
            scope: Of the programs that reach the loop.
            call: The function that runs.
            test: From a scope to which of its programs go on.
            begin: Called at the start of each turn.
        """
        left: dict[str, list[Part]] = {}
        inner = scope
        call.loops += 1
        while (going := test(inner)) is not False:
            if not isinstance(going, bool):
                inner = scope.narrowed(np.flatnonzero(going)) if inner is scope else inner.without(~going, left)
            if begin is not None:
                begin(inner)
            self._block(steps, inner, call)
        call.loops -= 1
        if inner is not scope:
            inner.leave(left)
            scope.meet(left)

    def _assign(self, target: CodeType, item: Any, scope: Scope, call: _Call) -> None:
        scope[ITEM] = item
        self._enter(scope)
        exec(target, call.variables, scope)
        del scope[ITEM]


def _plain(value: Any) -> Any:
    return getattr(value, "value", value) if type(value).__name__ == "constexpr" else value


def _truth(value: Any, count: int) -> bool | Bools:
    """A condition: a bool where all programs agree, else one for each."""
    if isinstance(value, Missing):
        raise NotBatched("a variable that some programs have not assigned")
    if not isinstance(value, Tensor):
        return bool(value)
    if shape_of(value):
        raise NotBatched("a condition on a block")
    data: Bools = value.handle.data != 0
    if data.all() or not data.any():
        return bool(data[0])
    return data


def _result(returned: Sequence[Part], count: int) -> Any:
    if not returned:
        return None
    if len(returned) == 1 and len(returned[0][0]) == count:
        return returned[0][1]
    covered = sum(len(rows) for rows, _ in returned)
    if all(value is None for _, value in returned):
        return None
    return merged(ABSENT if covered == count else None, returned, count)
