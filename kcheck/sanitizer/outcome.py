"""The verdict of one run under compute-sanitizer. A pass needs every proof that the run was one; no proof, no pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kcheck.errors import CouldNotCheck
from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Severity
from kcheck.sanitizer.findings import Collected, collect
from kcheck.sanitizer.log import LogSummary, read_log
from kcheck.sanitizer.places import Allocation
from kcheck.sanitizer.records import Records
from kcheck.sanitizer.tool import ERROR_EXIT_CODE, Tool


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a worker under compute-sanitizer, when it is over.

    Attributes:
        tool: The tool.
        xml: File of the records.
        log: File of the tool's own lines.
        exit_code: Of compute-sanitizer; None: it was killed.
        ended: The worker said, over its own channel, that it came to its end.
        kernels: Kernels that must have launched, by name.
        launches: Launches that the worker counted, by kernel. None: judged elsewhere, over several runs.
        allocations: The tensor arguments, to name addresses with.
    """

    tool: Tool
    xml: Path
    log: Path
    exit_code: int | None
    ended: bool
    kernels: Sequence[str] = ()
    launches: Mapping[str, int] | None = field(default_factory=dict)
    allocations: Sequence[Allocation] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Verdict of one run.

    Attributes:
        verdict: MATCH, FINDINGS or COULD_NOT_CHECK.
        findings: Proven faults, gravest first.
        reasons: Why the run is no proof, or not a whole one, a sentence each, the most telling one first.
        total: Errors that compute-sanitizer counted; None if it did not say.
    """

    verdict: CaseVerdict
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()
    total: int | None = None


def judge_run(run: Run) -> Outcome:
    """Judge a run by its files, its exit code and what the worker said."""
    log = read_log(run.log)
    records = Records(run.xml, run.tool)
    try:
        collected = collect(records, log, allocations=run.allocations, kernels=run.kernels)
    except CouldNotCheck as refusal:
        return Outcome(CaseVerdict.COULD_NOT_CHECK, reasons=(str(refusal),), total=log.total)
    reasons = _damage(run, log, records.problem, collected)
    if collected.findings:
        # A fault takes the CUDA context with it: that the worker then failed, and launched no more, is no news.
        return Outcome(CaseVerdict.FINDINGS, collected.findings, tuple(reasons), log.total)
    reasons += _missing_proof(run, log, collected)
    verdict = CaseVerdict.COULD_NOT_CHECK if reasons else CaseVerdict.MATCH
    return Outcome(verdict, reasons=tuple(reasons), total=log.total)


def _damage(run: Run, log: LogSummary, xml_problem: str, collected: Collected) -> list[str]:
    """What keeps the report from being whole, findings or not."""
    reasons = [*log.refusals, *(f"compute-sanitizer says: {quote}" for quote in log.quotes)]
    if xml_problem and not log.refusals:  # a refusal is the cause
        reasons.append(f"{xml_problem}.")
    if not log.finished and not log.refusals:
        reasons.append("compute-sanitizer's summary line is missing: it did not come to its end.")
    if collected.unknown:
        reasons.append(f"compute-sanitizer reports kinds that kcheck does not know: {', '.join(collected.unknown)}.")
    grave = not collected.findings or collected.findings[0].severity is Severity.ERROR
    expected = {ERROR_EXIT_CODE if collected.listed else 0} | (set() if grave else {0})
    if run.exit_code not in expected and not reasons:
        reasons.append(_wrong_exit(run, collected))
    return reasons


def _wrong_exit(run: Run, collected: Collected) -> str:
    if run.exit_code is None:
        return "compute-sanitizer was killed before it came to its end."
    if run.exit_code == ERROR_EXIT_CODE:
        return f"compute-sanitizer exits with {ERROR_EXIT_CODE}, which means errors, but lists none."
    listed = f"lists {collected.listed} errors" if collected.listed else "lists no errors"
    return f"compute-sanitizer {listed} and exits with {run.exit_code}, which fits neither errors nor a clean end."


def _missing_proof(run: Run, log: LogSummary, collected: Collected) -> list[str]:
    """What a pass needs and the run does not show."""
    reasons = []
    if log.total is not None and log.total > collected.listed:
        others = f", {collected.foreign} of them in other kernels" if collected.foreign else ""
        reasons.append(f"compute-sanitizer counts {log.total:,} errors and lists {collected.listed:,}{others}.")
    if not run.ended:
        reasons.append("the worker did not reach its end.")
    return reasons + ([] if run.launches is None else unlaunched(run.kernels, run.launches))


def unlaunched(kernels: Sequence[str], launches: Mapping[str, int]) -> list[str]:
    """Why launches prove nothing about some kernels, a sentence each.

    Args:
        kernels: Kernels that must have launched; empty: any.
        launches: Launches by kernel.
    """
    missing = [kernel for kernel in kernels if not launches.get(kernel)]
    if missing:
        return [f"{', '.join(missing)} did not launch: the result proves nothing about it."]
    if not kernels and not any(launches.values()):
        return ["no kernel launched: the result proves nothing."]
    return []
