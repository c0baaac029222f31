"""The supervisor's side of the workers: start, ask, kill, replace. Never imports `kcheck.worker`."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kcheck import remains
from kcheck.case import Case
from kcheck.document import case_text
from kcheck.events import CaseVerdict
from kcheck.machine import module_places
from kcheck.mutation import Mutation
from kcheck.protocol import Channel, ChannelClosed, ChannelTimeout, Judgement, Measurement, Yardstick
from kcheck.remains import Lost
from kcheck.zygote import Zygote

FILL_BYTES_A_SECOND = 20e6  # a slow machine fills and compares so much; large cases get that time on top


class Client:
    """A zygote and one worker of it, replaced whenever it is lost.

    Args:
        backend: Where kernels run.
        log: File for what user code prints.
        case_timeout: Seconds that one case may take.
        cuda_graph: Also replay every case as a CUDA graph.
        on_replaced: Called with the cause and the seconds until the new worker was ready.
    """

    def __init__(
        self,
        backend: str,
        log: Path,
        *,
        case_timeout: float = 20.0,
        cuda_graph: bool = False,
        on_replaced: Callable[[str, float], None] | None = None,
    ) -> None:
        self.backend = backend
        self.cuda_graph = cuda_graph
        self.case_timeout = case_timeout
        self.on_replaced = on_replaced
        self._mutation: dict[str, Any] | None = None
        self._loaded: set[str] = set()
        self._worker: Channel | None = None
        self._pid = 0
        self._begun: deque[dict[str, Any]] = deque()  # sent, and not yet asked for
        self._allowance = 0.0
        self._interrupted = False
        self._zygote = Zygote(backend, log)
        self._log = self._zygote.log

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def interrupt(self) -> None:
        """End the case in flight, from another thread: the worker is killed and not replaced.

        The call of `judge` in flight returns could-not-check.
        """
        self._interrupted = True
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """End the worker and the zygote."""
        if self._worker is not None:
            self._worker.close()
        self._zygote.close()

    @property
    def versions(self) -> dict[str, str]:
        """Versions in the worker.

        Raises:
            WorkerError: No worker could be started.
        """
        return dict(self._zygote.wait_ready()["versions"])

    def load(self, spec: str) -> None:
        """Have the zygote import a target.

        Raises:
            WorkerError: It cannot.
        """
        if spec not in self._loaded:
            self._zygote.request({"op": "load", "target": spec, "path": module_places()})
            self._loaded.add(spec)
            self._drop()  # a worker forked earlier does not know the target

    def judge(self, spec: str, case: Case, dense: Iterable[str] = ()) -> Judgement:
        """Have a case judged; a worker that dies or hangs over it is replaced.

        A crash or a timeout is a finding only if a fresh worker shows it again. A worker killed from outside
        (SIGKILL) is no evidence against the kernel.

        Args:
            spec: A loaded target.
            case: What to run.
            dense: Views to be made contiguous.

        Raises:
            WorkerError: No worker could be started, or one does not speak the protocol.
        """
        self._allowance = _time_to_fill(case)
        request = self._to_run(spec, case, dense)
        answer, lost = self._attempt(request)
        if not lost or not answer.findings:
            return answer
        again, lost = self._attempt(request)
        if lost and again.findings and again.findings[0].kind is answer.findings[0].kind:
            return again
        if again.verdict is CaseVerdict.COULD_NOT_CHECK:
            return again
        reason = f"{answer.findings[0].message}; a second worker did not repeat it"
        return Judgement(CaseVerdict.COULD_NOT_CHECK, reason)

    def begin(self, spec: str, case: Case) -> None:
        """Hand a case to the worker and go on; `judge` of the same case waits for the answer.

        Two cases may be with the worker, one that runs and one that waits, and answers are asked for in order.

        Args:
            spec: A loaded target.
            case: What to run.

        Raises:
            WorkerError: No worker could be started.
        """
        request = self._to_run(spec, case)
        with contextlib.suppress(ChannelClosed):  # then `judge` finds the worker lost
            (self._worker or self._fork()).send(request)
            self._begun.append(request)

    def renew(self) -> None:
        """Have the next case run in a fresh worker."""
        self._drop()

    def mutate(self, mutation: Mutation | None) -> None:
        """Have the next cases run a mutant, in fresh workers; None: the target as it is."""
        self._mutation = None if mutation is None else mutation.to_json()
        self._drop()

    def measure(self, specs: Iterable[str], case: Case, *, timed: bool = True) -> Measurement:
        """Have variants of a target measured on one case.

        Args:
            specs: Loaded targets.
            case: What to run.
            timed: Measure time, memory and launches; else only results and compiles.

        Raises:
            WorkerError: No worker could be started, or one does not speak the protocol.
        """
        mark = self._log.size()
        self._allowance = _time_to_fill(case)
        request = {"op": "measure", "targets": list(specs), "case": case_text(case), "timed": timed}
        try:
            answer = Measurement.from_json(self._ask(request))
        except ChannelTimeout:
            return Measurement(problem=_problem(self._timed_out(mark)))
        except Lost as lost:
            return Measurement(problem=_problem(remains.crashed(self._log.stack(mark), lost)))
        if answer.fatal:
            self._replace(answer.problem)
        return answer

    def yardstick(self, spec: str, case: Case) -> Yardstick:
        """Have a worker say what the results of a case are held against, and how far they may be off.

        Args:
            spec: A loaded target.
            case: What to run, on contiguous copies.

        Raises:
            WorkerError: No worker could be started, or one does not speak the protocol.
        """
        mark = self._log.size()
        self._allowance = _time_to_fill(case)
        try:
            return Yardstick.from_json(self._ask({"op": "yardstick", "target": spec, "case": case_text(case)}))
        except ChannelTimeout:
            return Yardstick(problem=_problem(self._timed_out(mark)))
        except Lost as lost:
            return Yardstick(problem=_problem(remains.crashed(self._log.stack(mark), lost)))

    def _to_run(self, spec: str, case: Case, dense: Iterable[str] = ()) -> dict[str, Any]:
        return {
            "op": "run",
            "target": spec,
            "case": case_text(case),
            "dense": sorted(dense),
            "cuda_graph": self.cuda_graph,
            "mutation": self._mutation,
        }

    def _attempt(self, request: dict[str, Any]) -> tuple[Judgement, bool]:
        """Ask once; a worker killed from outside does not count.

        Returns:
            The answer, and whether the case cost the worker.
        """
        kills = 0
        while not self._interrupted:
            mark = self._log.size()
            try:
                answer = Judgement.from_json(self._ask(request))
                if answer.fatal:
                    self._replace(answer.findings[0].message)
                return answer, answer.fatal
            except ChannelTimeout:
                return self._timed_out(mark), True
            except Lost as lost:
                if lost.signal_number == signal.SIGKILL:
                    kills += 1
                    if kills < 3:
                        continue
                    reason = "the worker was killed from outside three times (out of memory?)"
                    return Judgement(CaseVerdict.COULD_NOT_CHECK, reason), False
                return remains.crashed(self._log.stack(mark), lost), True
        return Judgement(CaseVerdict.COULD_NOT_CHECK, "interrupted"), False

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request to the worker.

        Raises:
            ChannelTimeout: It did not answer in time.
            Lost: It is gone; another one is ready.
        """
        while self._begun and self._begun[0] != request:  # nobody asked for it; its answer is not for another
            if self._interrupted:
                raise self._replace()
            self._attempt(self._begun[0])
        worker = self._worker or self._fork()
        try:
            if self._begun:
                self._begun.popleft()
            else:
                worker.send(request)
            return worker.receive(self.case_timeout + self._allowance)
        except ChannelClosed:
            raise self._replace() from None

    def _timed_out(self, mark: int) -> Judgement:
        os.kill(self._pid, signal.SIGUSR1)  # faulthandler writes the stack into the log
        time.sleep(0.05)
        place, in_oracle = self._log.stack(mark), remains.in_oracle(self._pid)
        os.kill(self._pid, signal.SIGKILL)
        self._replace(f"a case took longer than {self.case_timeout:.3g} s")
        return remains.timed_out(place, self.case_timeout, in_oracle=in_oracle)

    def _replace(self, cause: str = "") -> Lost:
        """Bury the worker and have another one ready.

        Returns:
            How it ended.
        """
        began = time.perf_counter()
        in_oracle = remains.in_oracle(self._pid)
        ended = self._zygote.request({"op": "ended", "pid": self._pid})
        lost = Lost(int(ended["code"]), in_oracle=in_oracle)
        self._forget()
        self._fork()
        if self.on_replaced is not None and not self._interrupted:
            self.on_replaced(cause or str(lost), time.perf_counter() - began)
        return lost

    def _drop(self) -> None:
        """End the worker in peace."""
        if self._worker is not None:
            self._worker.close()
            self._zygote.request({"op": "ended", "pid": self._pid})
            self._forget()

    def _forget(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker, self._pid = None, 0
        self._begun.clear()

    def _fork(self) -> Channel:
        self._pid, self._worker = self._zygote.fork()
        if self._interrupted:
            self.interrupt()  # it came while there was no worker to kill
        return self._worker


def _time_to_fill(case: Case) -> float:
    """Seconds that a large case gets on top of its timeout."""
    return sum(backing.nbytes for backing in case.backings.values()) / FILL_BYTES_A_SECOND


def _problem(judgement: Judgement) -> str:
    """What a lost worker's judgement says, in one sentence."""
    return judgement.findings[0].message if judgement.findings else judgement.reason
