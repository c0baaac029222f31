"""A run over the mutants of a target: the target itself first, then each mutant until a case shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from itertools import islice
from queue import SimpleQueue

from kcheck.case import Case
from kcheck.client import Client
from kcheck.engine import choose
from kcheck.errors import CouldNotCheck
from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Kind, Severity
from kcheck.loader import LoadedTarget
from kcheck.mutate.mutants import mutants, sample
from kcheck.mutate.reach import reached
from kcheck.mutation import Fate, Mutant, MutantResult, MutationScore
from kcheck.plan import Plan
from kcheck.protocol import Judgement
from kcheck.weight import weight

SWEEP_SHARE = 0.75  # of the cases, at most
SLOW = 20  # times as long as the target's slowest case: a mutant that takes longer does not end
LEAST_TIMEOUT = 5.0  # seconds
TRIES = 12  # cases after which a mutant that ran in none of them is given up
# A kernel that does not compile, or raises, whatever the case: no test suite would be needed to notice.
RAISING = frozenset({Kind.COMPILE_ERROR, Kind.TARGET_ERROR})


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is tried.

    Attributes:
        cases: Cases that a mutant must pass to survive, of the sweep and random ones.
        mutants: Mutants that are tried, at most.
        seed: Of random cases, and of the choice of mutants.
        plan: Pins for all cases.
        sweep: Also take cases of the sweep.
    """

    cases: int = 100
    mutants: int = 100
    seed: int = 0
    plan: Plan = field(default_factory=Plan)
    sweep: bool = True


class MutantCampaign:
    """A run over the mutants of one target.

    Args:
        one: The target.
        clients: Its workers: each tries one mutant at a time.
        limits: How much is tried.
        tell: Called before and after each mutant with how many are done, and how many there are.
    """

    def __init__(
        self,
        one: LoadedTarget,
        clients: Sequence[Client],
        limits: Limits,
        tell: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        self._one, self._clients, self._limits, self._tell = one, clients, limits, tell
        self._stopped = False

    def run(self) -> MutationScore:
        """Try the mutants.

        Raises:
            CouldNotCheck: The target itself does not match, or there is nothing to mutate.
        """
        began = time.monotonic()
        target = self._one.target
        for client in self._clients:
            client.load(self._one.spec)
        cases, launched = self._matching(self._clients[0])
        made = mutants(reached(target, launched & set(target.kernels) if target.kernels else launched))
        if not made:
            raise CouldNotCheck(
                f"no mutant of {target.name} can be made: from its function in {target.file}:{target.line} no Triton "
                "kernel is reached by names of modules and functions"
            )
        results = self._try_all(sample(made, self._limits.mutants, self._limits.seed), cases)
        names = tuple(dict.fromkeys(mutant.mutation.qualname for mutant in made))
        seconds = time.monotonic() - began
        return MutationScore(target.name, names, len(made), len(cases), tuple(results), seconds, self._stopped)

    def _matching(self, client: Client) -> tuple[list[Case], set[str]]:
        """Cases that the target itself matches in, the most telling first; and the kernels that it launches.

        Raises:
            CouldNotCheck: It does not match.
        """
        name = self._one.title
        cases, launched = [], set[str]()
        slowest, problem = 0.0, ""
        for case in self._drawn():
            began = time.monotonic()
            judgement = client.judge(self._one.spec, case)
            slowest = max(slowest, time.monotonic() - began)
            if found := _grave(judgement):
                raise CouldNotCheck(
                    f"{name} itself shows {found[0].kind.value}: {found[0].message.rstrip('.')}; its mutants say "
                    f"nothing before `kcheck fuzz {self._one.spec}` finds nothing"
                )
            problem = problem or judgement.reason
            if judgement.verdict is CaseVerdict.MATCH and not judgement.exempt:
                cases.append(case)
                launched.update(judgement.launches)
        if not cases:
            raise CouldNotCheck(f"{name} matches in no case: {problem or 'none was drawn'}")
        if unlaunched := [kernel for kernel in self._one.target.kernels if kernel not in launched]:
            raise CouldNotCheck(f"kernel {unlaunched[0]} of {name} never launched, so its mutants would prove nothing")
        for client in self._clients:
            client.case_timeout = min(client.case_timeout, max(LEAST_TIMEOUT, SLOW * slowest))
        return _telling_first(cases), launched

    def _drawn(self) -> Sequence[Case]:
        target, limits = self._one.target, self._limits
        most = int(limits.cases * SWEEP_SHARE) if limits.sweep else 0  # layouts come first, then sizes that grow
        swept = choose.distinct(islice(choose.boundary_cases(target, limits.plan), most))
        left = limits.cases - len(swept)
        return choose.distinct([*swept, *choose.random_cases(target, limits.plan, left, limits.seed)])

    def _try_all(self, chosen: Sequence[Mutant], cases: Sequence[Case]) -> list[MutantResult]:
        """Results in the order of the mutants; fewer if the user stops the run."""
        free: SimpleQueue[Client] = SimpleQueue()
        for client in self._clients:
            free.put(client)
        results: dict[int, MutantResult] = {}

        def work(position: int) -> None:
            client = free.get()
            try:
                result = attempt(self._one.spec, chosen[position], cases, client)
                if not self._stopped:
                    results[position] = result
            finally:
                free.put(client)

        pool = ThreadPoolExecutor(len(self._clients))
        try:
            self._tell(0, len(chosen))
            for done in as_completed([pool.submit(work, position) for position in range(len(chosen))]):
                done.result()
                self._tell(len(results), len(chosen))
        except KeyboardInterrupt:
            self._stopped = True
            for client in self._clients:
                client.interrupt()
        finally:
            pool.shutdown(cancel_futures=True)
        return [results[position] for position in sorted(results)]


def attempt(spec: str, mutant: Mutant, cases: Sequence[Case], client: Client) -> MutantResult:
    """Judge a mutant in a fresh worker until a case kills it.

    Args:
        spec: A target that the client has loaded.
        mutant: The change.
        cases: What the target itself matches in.
        client: The worker; it runs the target itself again afterwards.
    """
    client.mutate(mutant.mutation)
    try:
        result = _judged(spec, mutant, cases, client)
        if result.fate is Fate.SURVIVED:
            client.mutate(mutant.probe)
            ran = any(client.judge(spec, case).verdict is not CaseVerdict.MATCH for case in cases)
            result = replace(result, ran=ran)
        return result
    finally:
        client.mutate(None)


def _judged(spec: str, mutant: Mutant, cases: Sequence[Case], client: Client) -> MutantResult:
    raised: Finding | None = None
    problem = ""
    ran = False
    done = 0
    for case in cases:
        judgement = client.judge(spec, case)
        done += 1
        found = _grave(judgement)
        if found and found[0].kind not in RAISING:
            return MutantResult(mutant, Fate.KILLED, done, found[0].kind.value, found[0].message)
        raised = raised or (found[0] if found else None)
        if judgement.verdict is CaseVerdict.MATCH:
            ran = True
        else:
            problem = problem or judgement.reason
        if done == TRIES and not ran:
            break
    if raised is not None:
        return MutantResult(mutant, Fate.KILLED if ran else Fate.INVALID, done, raised.kind.value, raised.message)
    if problem:  # the target itself runs in all of these cases
        return MutantResult(mutant, Fate.INVALID, done, message=f"does not compile or always raises: {_cause(problem)}")
    return MutantResult(mutant, Fate.SURVIVED, done)


def _cause(problem: str) -> str:
    """Why a mutant cannot run. It is no limit of the interpreter, which runs the target itself in the same case."""
    _, limit, cause = problem.partition(", which the CPU interpreter cannot run (")
    return cause.removesuffix(")") if limit else problem


def _grave(judgement: Judgement) -> list[Finding]:
    return [finding for finding in judgement.findings if finding.severity is Severity.ERROR]


def _telling_first(cases: Sequence[Case]) -> list[Case]:
    """The smaller half of the cases first, then the others; in each, those first that have few contiguous views."""
    weights = {case.key: weight(case) for case in cases}
    median = sorted(elements for elements, _, _ in weights.values())[len(cases) // 2]

    def rank(case: Case) -> tuple[bool, int]:
        elements, strided, _ = weights[case.key]
        return elements > median, -strided

    return sorted(cases, key=rank)
