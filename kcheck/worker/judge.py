"""The judge: runs a case twice with everything varied that must not matter, and says what is proven."""

from __future__ import annotations

import errno
import functools
import inspect
import linecache
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kcheck.backend_spec import VIEWCHECK
from kcheck.case import Case
from kcheck.errors import CouldNotCheck, SpecError, quoted
from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Kind, Severity
from kcheck.objects import argument_of
from kcheck.protocol import Judgement
from kcheck.target import GRAD_OUTPUT, Target
from kcheck.worker import checks
from kcheck.worker.arena import Arena, dense_values
from kcheck.worker.backends.base import (
    Backend,
    CompileFailed,
    ContextLost,
    DeviceAssertFailed,
    EndlessLoop,
    KernelStopped,
    OutOfMemory,
    Unsupported,
)
from kcheck.worker.configs import beside, each_config
from kcheck.worker.dead import dead_masks
from kcheck.worker.dead_reads import dead_findings
from kcheck.worker.graphs import graph_findings
from kcheck.worker.hazards import explained, hazard_findings
from kcheck.worker.hints import hint_findings
from kcheck.worker.host import on_host
from kcheck.worker.paths import traced, with_paths
from kcheck.worker.reference import identical, value_findings
from kcheck.worker.run import Observation, user_frame
from kcheck.worker.sharing import prepared
from kcheck.worker.trial import FIRST, SECOND, Trial
from kcheck.worker.wild import wild_findings

# Exceptions by which a wrapper declines arguments (torch's own checks raise RuntimeError).
REJECTIONS = (ValueError, TypeError, NotImplementedError, AssertionError, RuntimeError)
NAMED_EVERY = 100  # cases from one look for kernels given by name to the next: a look costs some 9 ms
_EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)  # a disk is full, too many files are open
_STOPPED: dict[type[BaseException], Kind] = {
    DeviceAssertFailed: Kind.DEVICE_ASSERT,
    CompileFailed: Kind.COMPILE_ERROR,
    EndlessLoop: Kind.TIMEOUT,
}


class Judge:
    """Judges cases on one backend.

    Args:
        backend: Where kernels run.

    Attributes:
        wild: Runs every case a third time, with wild values: the view check of ``kcheck sanitize``.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.wild = backend.name == VIEWCHECK
        self.arena = Arena(backend.device)
        self._judged: Counter[str] = Counter()

    def judge(
        self, target: Target, case: Case, dense: frozenset[str] = frozenset(), *, cuda_graph: bool = False
    ) -> Judgement:
        """Run a case and judge it.

        Args:
            target: What is tested.
            case: Its arguments.
            dense: Views (by path) to be made contiguous, as a control.
            cuda_graph: Also capture the call in a CUDA graph, where nothing else is found.
        """
        began = time.perf_counter()
        try:
            case = prepared(target, case)
            _bind(target, case)
            target = beside(target, self.backend)
            contents = on_host(case, dense_values(case, self.backend.device))
            trial = Trial(target, case, dense, contents, self.backend, self.arena)
            if target.dead:
                trial.dead = dead_masks(target, case, contents)
            if self.backend.device == "cuda" and self._judged[target.name] % NAMED_EVERY == 0:
                trial.named = target.named
            self._judged[target.name] += 1
            judgement = each_config(trial, lambda trial: _try(trial, self.wild))
            if cuda_graph and judgement.verdict is CaseVerdict.MATCH and not judgement.exempt:
                found = tuple(graph_findings(trial))
                judgement = replace(judgement, findings=found, verdict=CaseVerdict.FINDINGS) if found else judgement
        except CouldNotCheck as error:
            return Judgement(CaseVerdict.COULD_NOT_CHECK, str(error))
        seconds = trial.seconds | {"total": time.perf_counter() - began}
        compiles = tuple((c.kernel, c.seconds, c.cached, c.cause) for c in trial.compiles)
        sequential = {
            kernel: f"kernel {kernel} ran one program after the other, not batched: {feature}"
            for kernel, feature in trial.sequential.items()
        }
        return replace(judgement, seconds=seconds, compiles=compiles, sequential=sequential)


def _try(trial: Trial, wild: bool) -> Judgement:
    first = trial.run(FIRST)
    trial.layouts = first.placement.layouts
    if first.error is not None:
        return _failed(trial, first, first.error)
    # Read before the second run, which uses the same memory.
    disturbed = checks.disturbance_findings(
        trial.target, trial.case, first.placement, first.watch.faults, first.watch.launches
    )
    second = trial.run(SECOND, "reverse", traced(first.watch.faults))
    if second.error is not None:
        return _failed(trial, second, second.error)
    if first.watch.partial or second.watch.partial:
        judgement = _sampled(trial, first, second)
    else:
        judgement = compared(trial, first, second, disturbed)
    return _with_wild(trial, first, judgement) if wild else judgement


def _with_wild(trial: Trial, first: Observation, judgement: Judgement) -> Judgement:
    """The judgement with what a third run adds."""
    found, problem = wild_findings(trial, first, list(judgement.findings))
    verdict = CaseVerdict.FINDINGS if found else CaseVerdict.COULD_NOT_CHECK if problem else judgement.verdict
    findings = tuple(sorted(found, key=lambda f: f.severity.rank))
    return replace(judgement, verdict=verdict, reason=judgement.reason or problem, findings=findings)


def _sampled(trial: Trial, first: Observation, second: Observation) -> Judgement:
    """Not all programs ran: only accesses can be judged, and nothing shows that a stray one has no effect."""
    faults = checks.merged_faults((first.watch, second.watch))
    memory = checks.memory_findings(trial.case, trial.layouts, faults, effect=True)
    hazards, _ = hazard_findings(trial, first, second, memory, [])
    found = (*with_paths(trial.case, explained(memory, hazards), second.watch), *hazards)
    if not any(finding.severity is Severity.ERROR for finding in found):
        found += tuple(hint_findings(trial, first, second))
    gaps = [*first.watch.gaps, *second.watch.gaps]
    verdict = CaseVerdict.COULD_NOT_CHECK if gaps else CaseVerdict.MATCH
    return Judgement(
        CaseVerdict.FINDINGS if found else verdict,
        reason=gaps[0] if gaps else "",
        findings=found,
        launches=_launches(first),
        partial=first.watch.partial,
    )


def compared(trial: Trial, first: Observation, second: Observation, disturbed: list[Finding]) -> Judgement:
    """Both runs returned: hold their results against each other and against the oracle."""
    trial.unwritten = checks.unwritten(trial.case, first, second, (FIRST.poison, SECOND.poison))
    agree = first.outputs.keys() == second.outputs.keys() and all(
        identical(first.outputs[n], second.outputs[n], trial.unwritten.get(n)) for n in first.outputs
    )
    dead = dead_findings(trial, first, agree) if trial.dead else []
    constant, wrong = value_findings(trial, first, second, agree or bool(dead))
    faults = checks.merged_faults((first.watch, second.watch))
    memory = checks.memory_findings(trial.case, trial.layouts, faults, effect=bool(wrong) or not agree)
    hazards, wrong = hazard_findings(trial, first, second, memory, wrong)
    memory = with_paths(trial.case, explained(memory, hazards), second.watch)
    memory += [f for f in disturbed if f.kind is not Kind.INPUT_MUTATED]
    grave = next((f for f in memory if f.severity.rank == 0), None)
    if grave is not None and wrong:  # a wrong value is a symptom of the wrong access, not a second bug
        memory[memory.index(grave)] = replace(grave, mismatch=wrong[0].mismatch)
        wrong = []
    found = memory + [f for f in disturbed if f.kind is Kind.INPUT_MUTATED]
    found += checks.unwritten_findings(trial.target, trial.case, trial.layouts, trial.unwritten, first.watch.launches)
    found += hazards
    found += dead or wrong  # a wrong value is a symptom there, too
    if not any(finding.severity is Severity.ERROR for finding in found):
        found += hint_findings(trial, first, second)
    gaps = [*first.watch.gaps, *second.watch.gaps]
    verdict = CaseVerdict.COULD_NOT_CHECK if gaps else CaseVerdict.MATCH
    return Judgement(
        CaseVerdict.FINDINGS if found else verdict,
        reason=gaps[0] if gaps else "",
        findings=tuple(sorted(found, key=lambda f: f.severity.rank)),
        launches=_launches(first),
        exempt=not any(tensor.numel() for tensor in first.outputs.values()),
        constant=constant,
    )


def _failed(trial: Trial, run: Observation, error: BaseException) -> Judgement:
    """The target raised: a rejection, a finding, or nothing that can be judged."""
    memory = tuple(checks.memory_findings(trial.case, run.placement.layouts, run.watch.faults, effect=True))
    if run.watch.partial and not memory:
        return Judgement(CaseVerdict.COULD_NOT_CHECK, next(iter(run.watch.partial.values())), launches=_launches(run))
    if isinstance(error, (Unsupported, OutOfMemory)):
        reason = f"{error.frame.file}:{error.frame.line}: {error.reason}" if error.frame else error.reason
        verdict = CaseVerdict.FINDINGS if memory else CaseVerdict.COULD_NOT_CHECK
        return Judgement(verdict, reason, memory, _launches(run))
    if _is_own(error):
        raise error
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        reason = f"{trial.target.name} raised {quoted(error)}, which is the machine's trouble"
        verdict = CaseVerdict.FINDINGS if memory else CaseVerdict.COULD_NOT_CHECK
        return Judgement(verdict, reason, memory, _launches(run))
    if isinstance(error, REJECTIONS) and len(run.watch.launches) == run.forward and not memory:
        return _rejected(trial, error)
    own = () if memory else (_error_finding(trial.target, run, error),)
    fatal = isinstance(error, ContextLost)
    return Judgement(CaseVerdict.FINDINGS, findings=(*memory, *own), launches=_launches(run), fatal=fatal)


def _is_own(error: BaseException) -> bool:
    """Whether kcheck itself is at fault: its own code raised what only a mistake in code raises."""
    if not isinstance(error, (ImportError, NameError, AttributeError, KeyError)):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    own = Path(__file__).resolve().parent
    return bool(frames) and own in Path(frames[-1].filename).resolve().parents and not _stands_in(frames[-1].filename)


def _stands_in(file: str) -> bool:
    """Whether code of kcheck raises there in the name of what it stands in for."""
    return Path(file).name.startswith("pretend")


def _rejected(trial: Trial, error: BaseException) -> Judgement:
    file, line = user_frame(error, trial.target)
    text = str(error).strip() or linecache.getline(file, line).strip()
    quote = f"{type(error).__name__}: {text} ({file}:{line})"
    about_layout = not trial.is_dense and trial.run_dense().error is None
    owed = [
        name
        for name, view in trial.case.views.items()
        if about_layout and view.kinds & trial.target.must_accept.get(argument_of(name), frozenset())
    ]
    if not owed:
        return Judgement(CaseVerdict.REJECTED, quote, layout_rejected=about_layout)
    finding = Finding(
        kind=Kind.MUST_ACCEPT,
        message=f"{owed[0]} was rejected in a layout that the target must accept: {quote}",
        file=file,
        line=line,
        argument=owed[0],
    )
    return Judgement(CaseVerdict.FINDINGS, findings=(finding,))


def _bind(target: Target, case: Case) -> None:
    """Check that a case has the target's arguments.

    Raises:
        SpecError: It has others.
    """
    names = dict(case.args)
    if target.grad and names.pop(GRAD_OUTPUT, None) is None:
        raise SpecError(
            f"{target.file}:{target.line}: {target.name} has gradients, but the case has no {GRAD_OUTPUT}; draw the "
            "tensor that goes into the backward pass, of the shape that is returned"
        )
    try:
        _signature(target.function).bind(**names)
    except TypeError as error:
        raise SpecError(
            f"{target.file}:{target.line}: the case's arguments ({', '.join(case.args)}) do not fit "
            f"{target.name}({', '.join(target.parameters)}): {error}"
        ) from None


@functools.lru_cache(maxsize=256)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _launches(run: Observation) -> dict[str, int]:
    """Launches of at least one program, by kernel."""
    counts: dict[str, int] = {}
    for launch in run.watch.launches:
        if launch.programs:
            counts[launch.kernel] = counts.get(launch.kernel, 0) + 1
    return counts


def _error_finding(target: Target, run: Observation, error: BaseException) -> Finding:
    kind = error.kind if isinstance(error, ContextLost) else _STOPPED.get(type(error), Kind.TARGET_ERROR)
    frame = error.frame if isinstance(error, KernelStopped) else None
    file, line = (frame.file, frame.line) if frame else user_frame(error, target)
    text = error.reason if isinstance(error, KernelStopped) else quoted(error)
    return Finding(
        kind=kind,
        message=f"{target.name} raised {text}" if kind is Kind.TARGET_ERROR else text,
        kernel=run.watch.launches[-1].kernel if run.watch.launches else "",
        file=file,
        line=line,
        source=frame.source if frame else "",
    )
