"""False hints to the compiler as findings.

A compiled kernel uses a hint or does not, and nothing on the CPU says which. What counts is whether it could matter: a
run in which the values are moved so that the hint is true must give another result. Kernels give hints that are false
for lanes whose results are thrown away, as in ``tl.max_contiguous(rows % M, BLOCK)``; these are no fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from kcheck.findings import Finding, Kind
from kcheck.worker.backends.hazard import FalseHint
from kcheck.worker.checks import source_frame
from kcheck.worker.reference import changed_elements
from kcheck.worker.run import Observation
from kcheck.worker.trial import FIRST, Trial


def hint_findings(trial: Trial, first: Observation, second: Observation) -> list[Finding]:
    """Hints that both runs show to be false, and that the result depends on: one finding for each line.

    Args:
        trial: The case on trial, in which nothing else is grave: a false hint may be what that leads to.
        first: Its first run.
        second: Its second run.
    """
    shown = {_key(hint) for hint in second.watch.hints}
    hints: dict[tuple[str, int], FalseHint] = {}
    for hint in first.watch.hints:
        if _key(hint) in shown:
            hints.setdefault((hint.frame.file, hint.frame.line), hint)
    found = []
    for place, hint in hints.items():
        taken = trial.run(replace(FIRST, hinted=place))
        changed = changed_elements(trial, first, taken) if taken.error is None else {}
        if changed and not changed_elements(trial, first, trial.run(FIRST)):
            found.append(_finding(hint, changed))
    return found


def _key(hint: FalseHint) -> tuple[str, str, str, int]:
    return hint.name, hint.kernel, hint.frame.file, hint.frame.line


def _finding(hint: FalseHint, changed: Mapping[str, torch.Tensor]) -> Finding:
    name, mask = next(iter(changed.items()))
    where = ", ".join(map(str, mask.nonzero()[0].tolist()))
    element = f"{name}[{where}]" if where else name
    return Finding(
        kind=Kind.FALSE_HINT,
        message=f"{hint.kernel} tells the compiler that {_claim(hint)}, but {_fact(hint)}",
        kernel=hint.kernel,
        file=hint.frame.file,
        line=hint.frame.line,
        source=hint.frame.source,
        occurrence=hint.occurrence,
        argument=hint.argument,
        parameter=hint.parameter,
        program=hint.program,
        count=hint.lanes,
        programs=hint.programs,
        chain=tuple(map(source_frame, hint.chain)),
        notes=(
            f"code that is compiled with the hint may give another result: with {hint.wanted:,} in place of "
            f"{hint.value:,} and so on, {element} changes",
        ),
    )


def _claim(hint: FalseHint) -> str:
    along = f" along axis {hint.axis}" if len(hint.lane) > 1 else ""
    if hint.name == "max_contiguous":
        return f"each {hint.size} values{along} are consecutive"
    if hint.name == "max_constancy":
        return f"each {hint.size} values{along} are equal"
    what = hint.parameter or hint.argument or ("each run of consecutive values" if hint.lane else "a value")
    verb = "begins at" if hint.lane and not hint.parameter else "is"
    return f"{what} {verb} a multiple of {hint.size}{along}"


def _fact(hint: FalseHint) -> str:
    unit = f" bytes behind the start of {hint.argument}'s memory" if hint.argument else ""
    if not hint.lane:
        return f"it is {hint.value:,}{unit}"
    place = f"lane [{', '.join(map(str, hint.lane))}] holds {hint.value:,}{unit}"
    return place if hint.name == "multiple_of" else f"{place}, not {hint.wanted:,}"
