"""What a target's results are held against in one case, and how far they may be off: for a test outside of kcheck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from kcheck.case import Case
from kcheck.errors import CouldNotCheck, SpecError
from kcheck.protocol import Held
from kcheck.target import Target
from kcheck.worker import oracle
from kcheck.worker.arena import Arena, dense_values
from kcheck.worker.backends.base import Backend
from kcheck.worker.call import named_tensors
from kcheck.worker.compare import ORACLE_ERROR_FACTOR, SUMMATION_FACTOR, Tolerance
from kcheck.worker.configs import beside
from kcheck.worker.sharing import prepared
from kcheck.worker.trial import FIRST, Trial

Contents = Mapping[str, torch.Tensor]


def yardstick(target: Target, case: Case, backend: Backend, arena: Arena) -> tuple[Held, ...]:
    """Run a target on contiguous copies, and its oracle, and say which result is held against which.

    Args:
        target: What is tested.
        case: Its arguments.
        backend: Where kernels run.
        arena: Where tensors live.

    Returns:
        One entry a result: the outputs, in the order in which the oracle gives them, then what the target returns.

    Raises:
        CouldNotCheck: The oracle fails; or there is none, and the target raises on contiguous copies too.
    """
    case, target = prepared(target, case), beside(target, backend)
    contents = dense_values(case, backend.device)
    run = Trial(target, case, frozenset(case.views), contents, backend, arena).run(FIRST)
    if target.oracle is None:
        if run.error is not None:
            raise CouldNotCheck(f"{target.name} raises on contiguous copies too: {run.error}")
        tolerance = Tolerance(target.exact, target.rtol, target.atol)
        return tuple(Held(name, name, *_given(tolerance, v), _name(v.dtype), True) for name, v in run.outputs.items())
    returned = None if run.error is not None else [name for name in run.outputs if name not in case.views]
    return _against_oracle(target, case, contents, returned, run.outputs)


def _against_oracle(
    target: Target, case: Case, contents: Contents, returned: Sequence[str] | None, actual: Contents
) -> tuple[Held, ...]:
    named, right = _expected(target, case, contents, returned)
    precise = oracle.expected_precise(target, case, contents, [name for name in right if name not in case.views]) or {}
    moves = oracle.sensitivity(target, case, contents, precise) if precise else {}
    tolerance = Tolerance(target.exact, target.rtol, target.atol)
    found = []
    for name, value in right.items():
        result = actual.get(name, value)
        rtol, atol = _given(tolerance, result, value)
        if tolerance.adaptive and name in moves and result.dtype.is_floating_point:
            atol = _widened(atol, value, precise[name], moves[name])
        found.append(Held(name, named[name], rtol, atol, _name(result.dtype), result.dtype == value.dtype))
    return tuple(found)


def _expected(
    target: Target, case: Case, contents: Contents, returned: Sequence[str] | None
) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """Call the oracle.

    Args:
        target: With an oracle.
        case: Its arguments.
        contents: Values of every view.
        returned: Names of the returned tensors; None: the target raises, so they are read off the oracle's.

    Returns:
        By result: its name in what the oracle returns, and its value.
    """
    given: list[str] = []

    def recorded(**arguments: Any) -> Any:
        assert target.oracle is not None
        result = target.oracle(**arguments)
        given[:] = [name for name, _ in named_tensors(result)]
        return result

    recording = replace(target, oracle=recorded)
    outputs = oracle.output_names(target, case)
    if returned is None:
        try:
            right = oracle.expected(recording, case, contents, ())
        except SpecError:
            extra = len(given) - len(outputs)
            returned = ["return"] if extra == 1 else [f"return[{i}]" for i in range(extra)]
            right = oracle.expected(recording, case, contents, returned)
    else:
        right = oracle.expected(recording, case, contents, returned)
    return dict(zip(right, given or right, strict=True)), right


def _given(tolerance: Tolerance, result: torch.Tensor, *expected: torch.Tensor) -> tuple[float, float]:
    return (0.0, 0.0) if result.dtype == torch.bool else tolerance.of(*(one.dtype for one in (result, *expected)))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _widened(atol: float, expected: torch.Tensor, precise: torch.Tensor, move: torch.Tensor) -> float:
    """The absolute tolerance that covers what `compare.wrong_elements` allows anywhere in a result."""
    error = _largest(expected.double() - precise.double()) if expected.shape == precise.shape else 0.0
    # Within the tolerance of the precise result is right too: that one is `error` away.
    return max(atol, ORACLE_ERROR_FACTOR * error, SUMMATION_FACTOR * _largest(move)) + error


def _largest(values: torch.Tensor) -> float:
    finite = values[values.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0
