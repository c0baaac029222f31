"""What a backend lets vary beside a case: the surroundings of an oracle, the configurations of autotuned kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kcheck.events import CaseVerdict
from kcheck.protocol import Judgement
from kcheck.target import Target
from kcheck.worker.backends.base import Backend
from kcheck.worker.trial import Trial


def beside(target: Target, backend: Backend) -> Target:
    """The target with an oracle, and masks of dead elements, that see the device that the target sees."""

    def there(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(**given: Any) -> Any:
            with backend.surroundings():
                return function(**given)

        return called

    oracle = there(target.oracle) if target.oracle is not None else None
    return replace(target, oracle=oracle, dead={name: there(mask) for name, mask in target.dead.items()})


def each_config(trial: Trial, judge: Callable[[Trial], Judgement]) -> Judgement:
    """Judge a case, once for each configuration of its autotuned kernels if the backend was asked for all.

    Args:
        trial: The case on trial.
        judge: Judges it with the configuration that the backend has.

    Returns:
        The first judgement with findings; without any, the first that is no match.
    """
    backend = trial.backend
    judgement = judge(trial)
    if not backend.all_configs:
        return judgement
    number = 1
    try:
        while not judgement.findings and number < max((count for count, _ in trial.tuned.values()), default=1):
            backend.config = number
            again = judge(trial)
            judgement = again if again.findings or judgement.verdict is CaseVerdict.MATCH else judgement
            number += 1
    finally:
        backend.config = 0
    ran = [f"{kernel} ran with the configuration {config}" for kernel, (_, config) in trial.tuned.items()]
    found = tuple(replace(finding, notes=(*finding.notes, *ran)) for finding in judgement.findings)
    return replace(judgement, findings=found)
