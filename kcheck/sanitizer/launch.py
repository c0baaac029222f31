"""One launch of a worker under a tool: the job goes out, the process is watched, what it left is read."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kcheck.case import Case
from kcheck.dtypes import dtype_named
from kcheck.job import CaseProgress, Job, Progress, read_progress
from kcheck.machine import worker_environment
from kcheck.sanitizer.command import command, environment, python_module
from kcheck.sanitizer.locate import Sanitizer
from kcheck.sanitizer.outcome import Outcome, Run, judge_run
from kcheck.sanitizer.places import Allocation
from kcheck.sanitizer.tool import Tool

WORKER = "kcheck.worker.sanitized"
START_TIMEOUT_S = 300.0  # importing torch takes seconds without a tool already
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Setup:
    """How workers are launched.

    Attributes:
        sanitizer: What `locate` found.
        folder: Where jobs and reports are written.
        output: File for what the workers print.
        backend: Where kernels run.
        case_timeout: Seconds without a sign of progress after which a launch is ended.
        leaks: memcheck only: report device memory that is never freed.
    """

    sanitizer: Sanitizer
    folder: Path
    output: Path
    backend: str = "cuda"
    case_timeout: float = 120.0
    leaks: bool = False


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that is over.

    Attributes:
        cases: Its job's cases.
        progress: What the worker wrote.
        run: The tool's files and exit code.
        hung: The process was ended, because nothing went on.
    """

    cases: Sequence[Case]
    progress: Progress
    run: Run
    hung: bool

    def outcome(self, number: int | None = None) -> Outcome:
        """The verdict of the run.

        Args:
            number: The case that all its records belong to; None: not known, so no address is named.
        """
        allocations = [] if number is None else allocations_of(self.cases[number], self.progress.cases[number])
        return judge_run(replace(self.run, allocations=allocations))


def allocations_of(case: Case, progress: CaseProgress) -> list[Allocation]:
    """The views of a case in device memory, as far as they were placed."""
    return [
        Allocation(
            name,
            progress.addresses[view.backing],
            case.backings[view.backing].nbytes,
            view.layout,
            dtype_named(view.dtype).itemsize,
        )
        for name, view in case.views.items()
        if view.backing in progress.addresses
    ]


class Launcher:
    """Launches workers under one tool, for one target.

    Args:
        setup: How.
        tool: The tool.
        spec: The target.
        kernels: Its kernels: nothing else is checked. Empty: everything.
    """

    def __init__(self, setup: Setup, tool: Tool, spec: str, kernels: Sequence[str]) -> None:
        self._setup, self._tool, self._spec, self._kernels = setup, tool, spec, kernels
        self.count = 0

    def launch(self, cases: Sequence[Case]) -> Launched:
        """Run cases in one process, and wait for its end.

        Raises:
            UsageError: A kernel's name is not a symbol.
        """
        self.count += 1
        setup, tool = self._setup, self._tool
        base = setup.folder / f"{tool}-{self.count}"
        job, progress, xml, log = (base.with_suffix(suffix) for suffix in (".job", ".progress", ".xml", ".log"))
        leaks = setup.leaks and tool is Tool.MEMCHECK
        Job(setup.backend, self._spec, tuple(cases), tool is Tool.INITCHECK, leaks).write(job)
        for stale in (progress, xml, log):
            stale.unlink(missing_ok=True)
        line = command(
            setup.sanitizer, tool, python_module(WORKER, str(job), str(progress)), xml, log,
            kernels=self._kernels, leak_check=leaks,
        )  # fmt: skip
        exit_code, hung = self._wait(line, progress)
        seen = read_progress(progress)
        run = Run(tool, xml, log, exit_code, seen.ended, self._kernels, launches=None)
        return Launched(cases, seen, run, hung)

    def _wait(self, line: Sequence[str], progress: Path) -> tuple[int | None, bool]:
        """Start a process and wait for it.

        Returns:
            Its exit code (None: it was killed), and whether it was ended because nothing went on.
        """
        with self._setup.output.open("ab") as output:
            process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(worker_environment()),
                start_new_session=True,  # one group, so that nothing of it outlives this process
            )
        try:
            hung = not _ends(process, progress, self._setup.case_timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        return (None if hung or code < 0 else code), hung


def _ends(process: subprocess.Popen[bytes], progress: Path, timeout: float) -> bool:
    """Wait until a process ends.

    Returns:
        False if its progress file stood still for too long.
    """
    size, end = 0, time.monotonic() + max(START_TIMEOUT_S, timeout)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            return True
        now = progress.stat().st_size if progress.exists() else 0
        if now != size:
            size, end = now, time.monotonic() + timeout
        elif time.monotonic() > end:
            return False
