"""The third run of a view check: wild values wherever a kernel must not look, and programs in a shuffled order.

Wild values are NaN, and integers that lead far away. What the two runs with values that look valid cannot show comes
out here: a value multiplied by zero instead of masked, an address made of what nobody wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from kcheck.findings import Finding, Kind, Severity
from kcheck.worker import checks
from kcheck.worker.backends.base import Fault, Frame
from kcheck.worker.dead import NAN
from kcheck.worker.decoys import WILD, Style
from kcheck.worker.reference import changed_elements
from kcheck.worker.run import Observation
from kcheck.worker.trial import FIRST, Trial

POISON = 0xFF  # NaN in every float type, -1 as an integer
_ALL = Style(decoys=WILD, poison=POISON, undefined="wild")
_HIDDEN = (
    (replace(FIRST, decoys=WILD), Kind.OUT_OF_VIEW_READ, "around the views"),
    (replace(FIRST, poison=POISON), Kind.UNINITIALIZED_READ, "in outputs, scratch and torch.empty before the run"),
)


_STRAY = frozenset({Kind.OUT_OF_BOUNDS_READ, Kind.OUT_OF_BOUNDS_WRITE, Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_VIEW_WRITE})


def wild_findings(trial: Trial, first: Observation, known: list[Finding]) -> tuple[list[Finding], str]:
    """Run a case a third time, and tell what that shows beyond what is known.

    Args:
        trial: A case whose first two runs returned.
        first: The first of them.
        known: What they showed.

    Returns:
        All findings, and why the third run could not be judged (``""`` if it could).
    """
    run = trial.run(replace(_ALL, dead=NAN) if trial.dead else _ALL, "shuffled")
    strays = [fault for fault in run.watch.faults if not _is_known(fault, known)]
    if strays and any(finding.kernel for finding in known):
        return _with_consequences(known, strays), ""
    if run.error is not None and not strays:
        return known, f"with wild values around the views the target raised {type(run.error).__name__}: {run.error}"
    found = list(known)
    for finding in checks.memory_findings(trial.case, trial.layouts, strays, effect=True):
        note = "seen with wild values where nothing must be read: masked lanes, unwritten memory, dead elements"
        found.append(replace(finding, notes=(*finding.notes, note)))
    if not strays and not first.watch.partial and changed_elements(trial, first, run):
        found = _attributed(trial, first, run, found)
    return found, ""


def _is_known(fault: Fault, known: Sequence[Finding]) -> bool:
    where = (fault.kernel, fault.frame.file, fault.frame.line)
    return any((f.kernel, f.file, f.line) == where for f in known)


def _with_consequences(known: list[Finding], strays: Sequence[Fault]) -> list[Finding]:
    """A stray read that yields a wild value leads to more of them: one bug."""
    at = min(range(len(known)), key=lambda i: (not known[i].kernel, known[i].severity.rank))
    notes = [
        f"with a wild value there, {fault.kernel} also {'reads' if fault.access == 'read' else 'writes'} outside of "
        f"{fault.argument or 'every tensor'} ({fault.frame.file}:{fault.frame.line})"
        for fault in strays[:3]
    ]
    worst = replace(known[at], severity=Severity.ERROR, notes=_effective(known[at], *notes))
    return [*known[:at], worst, *known[at + 1 :]]


def _effective(finding: Finding, *more: str) -> tuple[str, ...]:
    return (*(note for note in finding.notes if note not in (checks.HARMLESS, checks.UNPROVEN)), *more)


def _attributed(trial: Trial, first: Observation, run: Observation, known: list[Finding]) -> list[Finding]:
    """The result depends on a wild value: vary one thing at a time to say on which."""
    racing = any(finding.kind in (Kind.RACE, Kind.NONDETERMINISM) for finding in known)
    if (racing and trial.backend.device == "cuda") or changed_elements(trial, first, trial.run(FIRST)):
        return known  # it differs anyway
    for style, kind, where in _HIDDEN:
        changed = changed_elements(trial, first, trial.run(style))
        if changed:
            return _made_graver(trial, first, known, kind, where, changed)
    found = list(known)
    for place in run.watch.undefined:
        style = replace(FIRST, undefined="wild", undefined_at=(place.file, place.line))
        changed = changed_elements(trial, first, trial.run(style))
        if changed:
            found.append(_undefined(first, place, changed))
    return found


def _made_graver(
    trial: Trial, first: Observation, known: list[Finding], kind: Kind, place: str, changed: Mapping[str, torch.Tensor]
) -> list[Finding]:
    """The reads of a kind have an effect after all; where none is known, the target itself makes one."""
    note = f"with NaN, or an integer out of range, {place}, the result changes"
    if any(finding.kind is kind or finding.kind in _STRAY for finding in known):
        return [replace(f, severity=Severity.ERROR, notes=_effective(f, note)) if f.kind is kind else f for f in known]
    name, mask = next(iter(changed.items()))
    finding = Finding(
        kind=kind,
        message=f"{name} depends on what lies {place}: with NaN, or an integer out of range, there it changes",
        argument=name,
        count=int(mask.sum()),
    )
    return [*known, checks.at_launch(finding, trial.target, first.watch.launches)]


def _undefined(first: Observation, place: Frame, changed: Mapping[str, torch.Tensor]) -> Finding:
    name, mask = next(iter(changed.items()))
    index = tuple(mask.nonzero()[0].tolist())
    return Finding(
        kind=Kind.UNINITIALIZED_READ,
        severity=Severity.WARNING,  # today's GPU back ends make them zero
        message=f"{name} depends on lanes that {place.function} masks off without other: Triton leaves them undefined",
        kernel=checks.sole_kernel(first.watch.launches),
        file=place.file,
        line=place.line,
        source=place.source,
        argument=name,
        index=index,
        count=int(mask.sum()),
        notes=("pass other=... to tl.load; with NaN, or an integer out of range, in these lanes the result changes",),
    )
