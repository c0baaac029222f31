"""The self-test: kcheck on its built-in targets. Does it find every known bug here, and nothing in correct kernels?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from kcheck.backend_spec import VIEWCHECK, BackendSpec
from kcheck.case import Case
from kcheck.client import Client
from kcheck.engine import choose
from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Severity
from kcheck.loader import LoadedTarget, load
from kcheck.plan import Plan
from kcheck.recall import Outcome, SelfTestResult, TargetOutcome
from kcheck.targets.registry import CONTROLS, PAIRS, Pair

CASE_TIMEOUT = 120.0  # seconds: that a machine is busy must not look like a kernel that hangs
# What else looks for a bug on a GPU that kernels with checks of their bounds do not show: the full view check, with
# races and unwritten reads, and the kernel as it is.
OTHERS = (str(BackendSpec(VIEWCHECK, on_gpu=True)), "cuda")
SEARCH_CASES = 300  # within which a known bug must be found, the sweep's cases counted


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried of correct targets.

    Attributes:
        controls: Cases of the sweep, and random ones, of a correct target that is like a faulty one.
        cured: The same of a target that is a faulty one's cure.
        seed: Of random cases, those of the search for bugs too.
    """

    controls: tuple[int, int] = (8, 12)
    cured: tuple[int, int] = (8, 12)
    seed: int = 0


THOROUGH = Effort(controls=(100, 650), cured=(50, 150))  # of controls more than 10,000 cases in all


class SelfTest:
    """A self-test on one backend.

    Args:
        backend: Its name, with its options.
        log: For what workers print.
        workers: Targets to try at a time.
        effort: How much is tried.
        tell: Called with how many targets are done, and how many there are.
        pairs: Known bugs and their cures.
        controls: Other correct targets.
    """

    def __init__(
        self,
        backend: str,
        log: Path,
        workers: int,
        effort: Effort,
        tell: Callable[[int, int], None] = lambda *_: None,
        *,
        pairs: Sequence[Pair] = PAIRS,
        controls: Sequence[str] = CONTROLS,
    ) -> None:
        self._backend, self._log, self._workers, self._effort, self._tell = backend, log, workers, effort, tell
        self._pairs, self._controls = pairs, controls
        self._drawing = threading.Lock()  # one thread draws, while others wait for their workers

    @property
    def _on_gpu(self) -> bool:
        return self._backend.startswith("cuda")

    def run(self) -> SelfTestResult:
        """Try all targets.

        Raises:
            CouldNotCheck: No worker can be started on this backend.
        """
        began = time.monotonic()
        with ExitStack() as stack:
            logs = [self._log, *(self._log.with_suffix(f".{n}.log") for n in range(1, self._workers))]
            clients = [stack.enter_context(Client(self._backend, log, case_timeout=CASE_TIMEOUT)) for log in logs]
            wrong = {pair.wrong: pair for pair in self._pairs}
            cured = [pair.right for pair in self._pairs if not (self._on_gpu and pair.needs_cpu)]
            specs = [*wrong, *cured, *self._controls]
            targets = {spec: load(spec)[0] for spec in specs}  # while the workers import torch
            free: SimpleQueue[Client] = SimpleQueue()
            for client in clients:
                for spec in specs:
                    client.load(spec)
                free.put(client)

            def work(spec: str) -> TargetOutcome:
                client = free.get()
                try:
                    if spec in wrong:
                        return self._search(targets[spec], wrong[spec], client)
                    return self._watch(targets[spec], client)
                finally:
                    free.put(client)

            pool = ThreadPoolExecutor(len(clients))
            try:
                tried = [pool.submit(work, spec) for spec in specs]
                for done, _ in enumerate(as_completed(tried), 1):
                    self._tell(done, len(tried))
                outcomes = tuple(one.result() for one in tried)
            except KeyboardInterrupt:
                for client in clients:
                    client.interrupt()
                raise
            finally:
                pool.shutdown(cancel_futures=True)
        return SelfTestResult(self._backend, outcomes, time.monotonic() - began)

    def _search(self, one: LoadedTarget, pair: Pair, client: Client) -> TargetOutcome:
        """Judge cases of a faulty target until one shows its bug."""
        on_gpu = self._on_gpu
        left_out = pair.needs_cpu if on_gpu else "it needs a GPU" if pair.needs_gpu else ""
        if left_out:
            return TargetOutcome(one.spec, pair.mechanism, Outcome.LEFT_OUT, 0, 0.0, left_out)
        began = time.monotonic()

        def outcome(what: Outcome, cases: int, message: str) -> TargetOutcome:
            return TargetOutcome(one.spec, pair.mechanism, what, cases, time.monotonic() - began, message)

        cases, others, problem = 0, "", ""
        with ExitStack() as stack:
            others_on_gpu = OTHERS if on_gpu else ()
            for backend in (self._backend, *others_on_gpu):
                asked = client if backend == self._backend else self._other(stack, one, backend)
                for case in islice(self._cases(one, SEARCH_CASES, SEARCH_CASES), SEARCH_CASES):
                    judgement = asked.judge(one.spec, case)
                    cases += 1
                    for finding in judgement.findings:
                        if _is_it(finding, pair, on_gpu=on_gpu):
                            return outcome(Outcome.RIGHT, cases, _told(finding))
                        others = others or f"; found instead: {_told(finding)}"
                    problem = problem or judgement.reason
        if problem:
            return outcome(Outcome.COULD_NOT_CHECK, cases, problem)
        wanted = f"{' or '.join(pair.kinds)} of {pair.argument or 'no argument'}"
        return outcome(Outcome.WRONG, cases, f"missed {wanted}{others}")

    def _other(self, stack: ExitStack, one: LoadedTarget, backend: str) -> Client:
        """A worker of another way to run kernels on a GPU."""
        log = self._log.with_suffix(f".{backend.replace(',', '-')}.{threading.get_ident()}.log")
        client = stack.enter_context(Client(backend, log, case_timeout=CASE_TIMEOUT))
        client.load(one.spec)
        return client

    def _watch(self, one: LoadedTarget, client: Client) -> TargetOutcome:
        """Judge cases of a correct target; none may show anything."""
        began = time.monotonic()
        cases = matches = 0
        what, message = Outcome.RIGHT, ""
        for case in self._cases(one, *(self._effort.controls if one.spec in self._controls else self._effort.cured)):
            judgement = client.judge(one.spec, case)
            cases += 1
            matches += judgement.verdict is CaseVerdict.MATCH
            if judgement.findings:
                what, message = Outcome.WRONG, f"false alarm: {_told(judgement.findings[0])}"
                break
            if judgement.verdict is CaseVerdict.COULD_NOT_CHECK and not message:
                what, message = Outcome.COULD_NOT_CHECK, judgement.reason
        if not matches and what is Outcome.RIGHT:
            what, message = Outcome.COULD_NOT_CHECK, "no case matched"
        return TargetOutcome(one.spec, "", what, cases, time.monotonic() - began, message)

    def _cases(self, one: LoadedTarget, swept: int, drawn: int) -> Iterator[Case]:
        """Cases of the sweep, then random ones; drawn when they are asked for."""

        def draw() -> Iterator[Case]:
            yield from islice(choose.boundary_cases(one.target, Plan()), swept)
            yield from choose.random_cases(one.target, Plan(), drawn, self._effort.seed)

        return _guarded(draw(), self._drawing)


def _guarded(cases: Iterable[Case], lock: threading.Lock) -> Iterator[Case]:
    """The cases, each drawn while the lock is held."""
    left = iter(cases)
    while True:
        with lock:
            case = next(left, None)
        if case is None:
            return
        yield case


def _is_it(finding: Finding, pair: Pair, *, on_gpu: bool) -> bool:
    """Whether a finding is a pair's bug. A GPU shows what an access does, not always the access."""
    grave = finding.severity is Severity.ERROR
    if on_gpu:
        return grave or finding.kind in pair.kinds
    return grave and finding.kind in pair.kinds and finding.argument == pair.argument


def _told(finding: Finding) -> str:
    return f"{finding.kind.value}: {finding.message}"
