"""Proof that a result depends on dead elements."""

from __future__ import annotations

from dataclasses import replace

import torch

from kcheck.errors import SpecError
from kcheck.findings import Finding, Kind
from kcheck.worker import checks, oracle
from kcheck.worker.dead import NAN, with_dead
from kcheck.worker.decoys import Style
from kcheck.worker.reference import changed_elements, identical
from kcheck.worker.run import Observation
from kcheck.worker.trial import FIRST, Trial


def dead_findings(trial: Trial, first: Observation, agree: bool) -> list[Finding]:
    """Results that depend on dead elements: runs that differ in nothing else disagree.

    Args:
        trial: A case with dead elements.
        first: Its first run.
        agree: The first run and the second, which differ in dead elements too, give the same bits.

    Raises:
        SpecError: The oracle's result depends on them as well.
    """
    for which in (NAN,) if agree else (1, NAN):
        style = replace(FIRST, dead=which)
        moved = _moved(trial, first, style)
        # It counts only if repeats agree: the same values, the same result.
        if not moved or _moved(trial, first, FIRST) or not _moved(trial, first, style):
            continue
        _check_oracle(trial, which, first)
        alone = (name for name in trial.dead if _moved(trial, first, replace(style, dead_only=name)))
        argument = next(alone, next(iter(trial.dead)))
        name, mask = next(iter(moved.items()))
        held = "NaN" if which == NAN else "other values"
        finding = Finding(
            kind=Kind.DEAD_READ,
            message=f"{name} depends on dead elements of {argument}: with {held} there it changes",
            argument=argument,
            count=int(mask.sum()),
        )
        return [checks.at_launch(finding, trial.target, first.watch.launches)]
    return []


def _moved(trial: Trial, first: Observation, style: Style) -> dict[str, torch.Tensor]:
    """Results that another run changes. One that raises says nothing: a wrapper may look for NaN itself."""
    run = trial.run(style)
    return changed_elements(trial, first, run) if run.error is None else {}


def _check_oracle(trial: Trial, which: int, first: Observation) -> None:
    """An oracle that looks at dead elements says that they are not dead."""
    target = trial.target
    if target.oracle is None:
        return
    returned = [name for name in first.outputs if name.startswith("return")]
    one = oracle.expected(target, trial.case, trial.contents, returned)
    other = oracle.expected(target, trial.case, with_dead(trial.case, trial.contents, trial.dead, which), returned)
    for name, value in one.items():
        if not identical(value, other[name]):
            raise SpecError(
                f"{target.file}:{target.line}: the oracle's {name} depends on elements that dead says do not matter; "
                f"correct the mask of {', '.join(target.dead)}"
            )
