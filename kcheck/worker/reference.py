"""Held against a reference: the oracle, the target's own result on contiguous copies, its own second run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from kcheck.findings import Finding, Kind, Mismatch
from kcheck.worker import checks, oracle
from kcheck.worker.compare import Precise, Tolerance, describe, differ, is_right, wrong_elements
from kcheck.worker.decoys import Style
from kcheck.worker.run import Observation
from kcheck.worker.trial import FIRST, SECOND, Trial

Wrong = dict[str, tuple[torch.Tensor, torch.Tensor]]  # by output: mask of wrong elements, allowed difference


def value_findings(
    trial: Trial, first: Observation, second: Observation, agree: bool
) -> tuple[str | None, list[Finding]]:
    """Compare the first run with the oracle (without one: with contiguous copies), and both runs with each other.

    Args:
        trial: The case on trial.
        first: Its first run.
        second: Its second run, in another style and order.
        agree: The two runs give the same bits.

    Returns:
        What `oracle.constant_value` says (``""`` without an oracle), and findings about values.

    Raises:
        SpecError: The oracle is at fault.
    """
    constant: str | None = ""
    if trial.target.oracle is None:
        right = first.outputs
        found = _variance(trial, first)
    else:
        right = oracle.expected(trial.target, trial.case, trial.contents, _returned(first))
        oracle.check_shapes(trial.target, right, first.outputs)
        constant = oracle.constant_value(right)
        found = _mismatches(trial, first, right)
    if not agree:
        stray = [] if first.watch.faults else _stray_read(trial, first, second, found[0].mismatch if found else None)
        found = stray or _uninitialised(trial, first, second, found) or _unstable(trial, first, second, right)
    return constant, found


def _mismatches(trial: Trial, run: Observation, right: Mapping[str, torch.Tensor]) -> list[Finding]:
    """Results that differ from the oracle's: a layout bug if the contiguous copies give the right ones."""
    wrong = _wrong(trial, run.outputs, right, trial.tolerance)
    layout_bug = bool(wrong) and _dense_is_right(trial, right)
    kind = Kind.LAYOUT_VARIANCE if layout_bug else Kind.VALUE_MISMATCH
    says = "differs from the oracle" + ("; on contiguous copies of the same values it does not" if layout_bug else "")
    return _findings(trial, run, kind, says, wrong, run.outputs, right, "oracle")


def _dense_is_right(trial: Trial, right: Mapping[str, torch.Tensor]) -> bool:
    if trial.is_dense:
        return False
    dense = trial.run_dense()
    if dense.error is not None or dense.watch.faults:
        return False
    return not _wrong(trial, dense.outputs, right, trial.tolerance)


def _variance(trial: Trial, first: Observation) -> list[Finding]:
    """Without an oracle: the view must give what its contiguous copy gives."""
    if trial.is_dense:
        return []
    dense = trial.run_dense()
    if dense.error is not None:
        return []
    wrong = _as_wrong(changed_elements(trial, dense, first))
    says = "differs from its own result on contiguous copies of the same values"
    return _findings(trial, first, Kind.LAYOUT_VARIANCE, says, wrong, first.outputs, dense.outputs, "contiguous copy")


def _unstable(
    trial: Trial, first: Observation, second: Observation, right: Mapping[str, torch.Tensor]
) -> list[Finding]:
    """The two runs disagree although the first one is right.

    Rounding that depends on the order of programs is no finding, unless the target promises bits: then the second run
    is right too.
    """
    if trial.target.deterministic:
        wrong = _wrong(trial, second.outputs, first.outputs, Tolerance(exact=True))
    elif trial.target.oracle is not None:
        changes = changed_elements(trial, first, second)  # a run just inside the tolerance and one just outside agree
        found = _wrong(trial, second.outputs, right, trial.tolerance)
        wrong = {name: (mask & changes[name], allowed) for name, (mask, allowed) in found.items() if name in changes}
        wrong = {name: pair for name, pair in wrong.items() if bool(pair[0].any())}
    else:
        wrong = _as_wrong(changed_elements(trial, first, second))
    if not wrong:
        return []
    kind, cause = _cause(trial, first, next(iter(wrong)))
    says = f"differs between two runs of the same case: {cause}"
    return _findings(trial, first, kind, says, wrong, second.outputs, first.outputs, "repeat")


def _stray_read(trial: Trial, first: Observation, second: Observation, mismatch: Mismatch | None) -> list[Finding]:
    """Results that change with the decoys alone: something read outside of the views, where the backend did not see it.

    Args:
        trial: The case on trial.
        first: Its first run.
        second: Its second run.
        mismatch: How the first run differs from the reference, if it does.
    """
    if not changed_elements(trial, first, second):
        return []
    other = Style(SECOND.decoys, FIRST.poison)
    changes = changed_elements(trial, first, trial.run(other))
    # It counts only if repeats with the same decoys agree.
    if (
        not changes
        or changed_elements(trial, first, trial.run(FIRST))
        or not changed_elements(trial, first, trial.run(other))
    ):
        return []
    name, mask = next(iter(changes.items()))
    backings = sorted({first.placement.homes[view] for view in trial.case.views})
    alone = (b for b in backings if changed_elements(trial, first, trial.run(replace(other, only=b))))
    argument = next(iter(first.placement.views_of(next(alone, ""))), "")
    around = f"around the view of {argument}" if argument else "around the views"
    finding = Finding(
        kind=Kind.OUT_OF_VIEW_READ,
        message=f"{name} depends on what lies in memory {around}: two runs that differ in nothing else disagree",
        argument=argument or name,
        count=int(mask.sum()),
        mismatch=mismatch,
    )
    return [checks.at_launch(finding, trial.target, first.watch.launches)]


def _uninitialised(trial: Trial, first: Observation, second: Observation, found: list[Finding]) -> list[Finding]:
    """Wrong values that change with the poison alone: what was there before the run has come through."""
    if not found or not changed_elements(trial, first, second):
        return found
    if not changed_elements(trial, first, trial.run(Style(FIRST.decoys, SECOND.poison))) or changed_elements(
        trial, first, trial.run(FIRST)
    ):
        return found
    says = "depends on what outputs, scratch or the target's own torch.empty held before"
    return [replace(f, kind=Kind.UNINITIALIZED_READ, message=f"{f.argument} {says}") for f in found]


def changed_elements(trial: Trial, first: Observation, other: Observation) -> dict[str, torch.Tensor]:
    """Results that differ between two runs by more than rounding, as masks of their elements."""
    found = {}
    for name, value in first.outputs.items():
        again = other.outputs.get(name)
        if again is None or again.shape != value.shape:
            found[name] = torch.ones_like(value, dtype=torch.bool)
            continue
        mask = differ(again, value, trial.tolerance)
        if trial.tolerance.adaptive and bool(mask.any()):
            mask = differ(again, value, trial.tolerance, _moved(trial, first.outputs).get(name))
        if name in trial.unwritten:
            mask &= ~trial.unwritten[name]
        if bool(mask.any()):
            found[name] = mask
    return found


def _as_wrong(changes: Mapping[str, torch.Tensor]) -> Wrong:
    return {name: (mask, torch.zeros_like(mask, dtype=torch.float64)) for name, mask in changes.items()}


def _cause(trial: Trial, first: Observation, name: str) -> tuple[Kind, str]:
    """Vary one thing at a time, to say which one the result depends on."""
    reference = first.outputs[name]
    if not identical(trial.run(FIRST).outputs.get(name), reference):
        return Kind.NONDETERMINISM, "an exact repeat differs too"
    if not identical(trial.run(FIRST, "reverse").outputs.get(name), reference):
        return Kind.NONDETERMINISM, "it depends on the order in which programs run"
    if not identical(trial.run(Style(FIRST.decoys, SECOND.poison)).outputs.get(name), reference):
        return (
            Kind.UNINITIALIZED_READ,
            "it depends on what outputs, scratch or the target's own torch.empty held before",
        )
    return Kind.NONDETERMINISM, "no single cause of it was found"


def _wrong(
    trial: Trial,
    outputs: Mapping[str, torch.Tensor],
    right: Mapping[str, torch.Tensor],
    tolerance: Tolerance,
) -> Wrong:
    """Wrong elements by output; elements never written are another check's business.

    What costs more oracle calls is asked only while an element is still wrong: torch.testing's tolerance, then the
    oracle's error against float64, then what rounding can do.
    """
    found: Wrong = {}
    for name in right.keys() & outputs.keys():
        if is_right(outputs[name], right[name], tolerance):  # most are
            continue
        for ask in (None, _precise, _moved) if tolerance.adaptive else (None,):
            precise = ask(trial, outputs).get(name) if ask is not None else None
            if ask is not None and precise is None:
                break
            wrong, allowed = wrong_elements(outputs[name], right[name], tolerance, precise)
            if name in trial.unwritten:
                wrong &= ~trial.unwritten[name]
            if not bool(wrong.any()):
                found.pop(name, None)
                break
            found[name] = wrong, allowed
    return found


def _precise(trial: Trial, outputs: Mapping[str, torch.Tensor]) -> Mapping[str, Precise]:
    """The oracle's word in float64 by output, worked out once for a trial; empty without an oracle that runs so."""
    if trial.precise is None:
        trial.precise = {}
        if trial.target.oracle is not None:
            returned = _returned(outputs)
            trial.precise = oracle.expected_precise(trial.target, trial.case, trial.contents, returned) or {}
    return {
        name: Precise(value)
        for name, value in trial.precise.items()
        if value.dtype.is_floating_point and name in outputs and value.shape == outputs[name].shape
    }


def _moved(trial: Trial, outputs: Mapping[str, torch.Tensor]) -> Mapping[str, Precise]:
    """The same, with how far rounding can move it: several calls of the oracle, once for a trial."""
    precise = _precise(trial, outputs)
    if trial.moves is None:
        values = trial.precise or {}
        trial.moves = oracle.sensitivity(trial.target, trial.case, trial.contents, values) if values else {}
    return {name: replace(one, move=trial.moves[name]) for name, one in precise.items()}


def _findings(
    trial: Trial,
    run: Observation,
    kind: Kind,
    says: str,
    wrong: Wrong,
    outputs: Mapping[str, torch.Tensor],
    right: Mapping[str, torch.Tensor],
    against: str,
) -> list[Finding]:
    found = []
    for name, (mask, allowed) in wrong.items():
        mismatch = describe(name, outputs[name], right[name], mask, allowed, against)
        message = f"{name} {says} ({mismatch.count:,} of {mismatch.total:,} elements)"
        found.append(
            checks.difference_finding(trial.target, kind, message, mismatch, mask, trial.layouts, run.watch.launches)
        )
    return found


def _returned(run: Observation | Mapping[str, torch.Tensor]) -> list[str]:
    """Names of the returned tensors."""
    outputs = run.outputs if isinstance(run, Observation) else run
    return [name for name in outputs if name.startswith("return")]


def identical(a: torch.Tensor | None, b: torch.Tensor | None, unwritten: torch.Tensor | None = None) -> bool:
    """The same bits in every element that was written."""
    if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
        return a is b
    if unwritten is None:
        return torch.equal(checks.raw_bytes(a), checks.raw_bytes(b))
    differ = (checks.raw_bytes(a) != checks.raw_bytes(b)).any(-1)
    return not bool((differ & ~unwritten).any())
