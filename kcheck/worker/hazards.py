"""Hazards as findings: what the backend saw inside the views, held against what the runs show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kcheck.case import Role
from kcheck.dtypes import dtype_named
from kcheck.findings import Finding, Kind, Severity
from kcheck.worker.backends.base import Watch
from kcheck.worker.backends.hazard import Hazard, Side
from kcheck.worker.checks import MAX_CELLS, UNPROVEN, source_frame
from kcheck.worker.reference import changed_elements
from kcheck.worker.run import Observation
from kcheck.worker.trial import FIRST, Trial

_VERBS = {"read": "reads", "write": "writes", "atomic": "updates"}
_Key = tuple[object, ...]


def hazard_findings(
    trial: Trial, first: Observation, second: Observation, memory: list[Finding], wrong: list[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """Races, reads of memory that nobody wrote, lost stores and wrapped offsets that both runs show.

    Args:
        trial: The case on trial.
        first: Its first run.
        second: Its second run, with other poison and the other order of programs.
        memory: Stray accesses. Where one is grave, hazards may be what it leads to, and are not told.
        wrong: Findings about values; what a hazard explains is its symptom.

    Returns:
        Findings of hazards, and those about values that are left.
    """
    hazards = _in_both(first.watch, second.watch)
    found = [_overflow(trial, h) for h in hazards if h.kind is Kind.OFFSET_OVERFLOW]
    if any(finding.severity is Severity.ERROR for finding in explained(memory, found)):
        return _with_symptoms(found, wrong)
    races = [hazard for hazard in hazards if hazard.kind is Kind.RACE]
    found += [_race(trial, hazard, _matters(trial, hazard, first, second)) for hazard in races if _both_write(hazard)]
    for hazard in (hazard for hazard in races if not _both_write(hazard)):
        stale = _staleness_matters(trial, hazard, first)
        # A plain read that meets an atomic is how a flag is looked at: a fault only if the result shows it.
        if stale or all(side.access != "atomic" for side in hazard.sides):
            found.append(_race(trial, hazard, stale))
    found += [_conflict(trial, h, first) for h in hazards if h.kind is Kind.SCATTER_CONFLICT]
    blank = [hazard for hazard in hazards if hazard.kind is Kind.UNINITIALIZED_READ]
    depends = any(finding.kind is Kind.UNINITIALIZED_READ for finding in wrong)
    found += [_unwritten_read(trial, hazard, len(blank) == 1 and depends) for hazard in blank]
    return _with_symptoms(found, wrong)


def explained(memory: list[Finding], hazards: list[Finding]) -> list[Finding]:
    """Stray accesses without those whose address wrapped: these are one bug."""
    wrapped = {(f.kernel, f.file, f.line, f.argument) for f in hazards if f.kind is Kind.OFFSET_OVERFLOW}
    return [f for f in memory if (f.kernel, f.file, f.line, f.argument) not in wrapped]


def _in_both(first: Watch, second: Watch) -> list[Hazard]:
    """Hazards that both runs show; of reads of poison, where the same elements hold one poison and then the other."""
    others = {_key(hazard): hazard for hazard in second.hazards}
    found = []
    for hazard in first.hazards:
        other = others.get(_key(hazard))
        if other is None:
            continue
        offsets = hazard.offsets
        if hazard.kind is Kind.UNINITIALIZED_READ:
            offsets = np.intersect1d(offsets, other.offsets)
            if not offsets.size:
                continue
        known = [h.changed for h in (hazard, other) if h.changed is not None]
        found.append(replace(hazard, offsets=offsets, changed=any(known) if known else None))
    return found


def _key(hazard: Hazard) -> _Key:
    sides = frozenset((side.access, side.frame.file, side.frame.line) for side in hazard.sides)
    # Of a race between two parameters over one memory, the order of programs says which one it is seen through.
    return hazard.kind, hazard.kernel, "" if hazard.kind is Kind.RACE else hazard.parameter, sides


def _both_write(hazard: Hazard) -> bool:
    return all(side.access != "read" for side in hazard.sides)


def _matters(trial: Trial, hazard: Hazard, first: Observation, second: Observation) -> bool:
    """Which of two stores comes last matters: it is about a result, or the result depends on the order of programs."""
    if _judged(trial, hazard, first):
        return True
    if not changed_elements(trial, first, second):
        return False
    moved = changed_elements(trial, first, trial.run(FIRST, "reverse"))
    return bool(moved) and not changed_elements(trial, first, trial.run(FIRST))


def _staleness_matters(trial: Trial, hazard: Hazard, first: Observation) -> bool:
    """The result changes when the reads that race come before the writes that they race with."""
    place = next(side.frame for side in hazard.sides if side.access == "read")
    stale = trial.run(replace(FIRST, stale=(place.file, place.line)))
    if stale.error is not None or not changed_elements(trial, first, stale):
        return False
    return not changed_elements(trial, first, trial.run(FIRST))


def _judged(trial: Trial, hazard: Hazard, first: Observation) -> bool:
    """It is about a result, not about memory that nobody looks at afterwards."""
    if hazard.storage in first.returned:
        return True
    view = None if hazard.scratch else trial.case.views.get(hazard.argument)
    if view is None or view.role not in (Role.OUTPUT, Role.INOUT):
        return False
    dead = trial.dead.get(hazard.argument)
    if dead is None:
        return True
    places = [trial.layouts[hazard.argument].index_at(cell) for cell in _cells(trial, hazard)]
    return not all(place is not None and bool(dead[place]) for place in places)


def _with_symptoms(found: list[Finding], wrong: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Give wrong values to the hazard that causes them."""
    left = []
    for value in wrong:
        causes = {
            Kind.UNINITIALIZED_READ: (Kind.UNINITIALIZED_READ,),
            Kind.NONDETERMINISM: (Kind.RACE,),
        }.get(value.kind, (Kind.RACE, Kind.SCATTER_CONFLICT, Kind.OFFSET_OVERFLOW))
        at = next((i for i, f in enumerate(found) if f.kind in causes and f.severity is Severity.ERROR), None)
        if at is None:
            left.append(value)
        elif found[at].mismatch is None:
            found[at] = replace(found[at], mismatch=value.mismatch)
    return found, left


def _race(trial: Trial, hazard: Hazard, effect: bool) -> Finding:
    one, other = sorted(hazard.sides, key=lambda side: (side.access == "read", side.frame.file, side.frame.line))
    same = hazard.changed is False
    name = _element(hazard)
    message = (
        f"{hazard.kernel} {_VERBS[one.access]} {name} in program {one.program} and {_VERBS[other.access]} it in "
        f"program {other.program} (line {other.frame.line}), and nothing orders the two"
    )
    notes = [f"the other access: {other.frame.file}:{other.frame.line}: {other.frame.source}"]
    if same:
        notes.append("what is written is what is there already")
    elif not effect:
        notes.append(UNPROVEN)
    grave = effect and not same
    return replace(_finding(trial, hazard, one, message, grave), notes=tuple(notes))


def _conflict(trial: Trial, hazard: Hazard, first: Observation) -> Finding:
    message = (
        f"one store of {hazard.kernel} writes several values to {_element(hazard)}: which one stays is not defined"
    )
    return _finding(trial, hazard, hazard.sides[0], message, _judged(trial, hazard, first))


def _overflow(trial: Trial, hazard: Hazard) -> Finding:
    side, cause = hazard.sides[0], hazard.cause
    where = f" at line {cause.line}" if cause is not None else ""
    message = (
        f"{hazard.kernel} {_VERBS[side.access]} {hazard.argument} at a wrong address: its offset wrapped in 32 bits"
        f"{where}; in 64 bits it is {hazard.exact:,} bytes"
    )
    finding = _finding(trial, hazard, side, message, True)
    if cause is None:
        return finding
    return replace(finding, notes=(f"the arithmetic that wraps: {cause.file}:{cause.line}: {cause.source}",))


def _unwritten_read(trial: Trial, hazard: Hazard, effect: bool) -> Finding:
    message = f"{hazard.kernel} reads {_element(hazard)}, which nothing has written before"
    finding = _finding(trial, hazard, hazard.sides[0], message, effect)
    return finding if effect else replace(finding, notes=(UNPROVEN,))


def _element(hazard: Hazard) -> str:
    index = ", ".join(map(str, hazard.index))
    return f"{hazard.argument}[{index}]" if index else hazard.argument


def _finding(trial: Trial, hazard: Hazard, side: Side, message: str, grave: bool) -> Finding:
    argument = f"{hazard.argument} (made by the target)" if hazard.scratch else hazard.argument
    own = hazard.sides[-1] is side
    return Finding(
        kind=hazard.kind,
        severity=Severity.ERROR if grave else Severity.WARNING,
        message=message,
        kernel=hazard.kernel,
        file=side.frame.file,
        line=side.frame.line,
        source=side.frame.source,
        occurrence=side.occurrence,
        argument=argument,
        parameter=hazard.parameter,
        index=hazard.index,
        program=side.program,
        count=hazard.lanes,
        programs=hazard.programs,
        cells=_cells(trial, hazard),
        chain=tuple(map(source_frame, hazard.chain if own else (side.frame,))),
    )


def _cells(trial: Trial, hazard: Hazard) -> tuple[int, ...]:
    views: Mapping[str, object] = trial.case.views
    if hazard.scratch or hazard.argument not in views or hazard.argument not in trial.layouts:
        return ()
    size = dtype_named(trial.case.views[hazard.argument].dtype).itemsize
    first = trial.layouts[hazard.argument].first
    return tuple(dict.fromkeys(first + int(offset) // size for offset in hazard.offsets[:MAX_CELLS]))
