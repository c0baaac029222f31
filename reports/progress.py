"""The line that shows how far a run is."""

from __future__ import annotations

import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kcheck.events import BugFound, CaseDone, Event, Phase, PhaseStarted, RunStarted, TargetStarted, WorkerReplaced
from kcheck.reports.wording import counted, duration, plain, rate

_BAR = 20  # columns


class Progress:
    """A renderable, one line: target, phase, cases, cases a second, findings. It follows the events.

    Attributes:
        replaced: Why workers of the current target were replaced.
    """

    def __init__(self) -> None:
        self.replaced: list[str] = []
        self._targets = 0
        self._position = 0
        self._target = ""
        self._phase: Phase | None = None
        self._total: int | None = None
        self._in_phase = 0
        self._cases = 0
        self._findings = 0
        self._since = time.monotonic()

    def handle(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self._targets = len(event.targets)
            case TargetStarted(target):
                self.replaced = []
                self._position += 1
                self._target, self._phase, self._total = target, None, None
                self._in_phase = self._cases = 0
                self._since = time.monotonic()
            case PhaseStarted(_, phase, total, done):
                self._phase, self._total, self._in_phase = phase, total, done
            case CaseDone():
                self._in_phase += 1
                self._cases += 1
            case BugFound():
                self._findings += 1
            case WorkerReplaced():
                self.replaced.append(event.cause)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        elapsed = time.monotonic() - self._since
        line = Text(no_wrap=True, overflow="ellipsis")
        if self._targets > 1:
            line.append(f"{self._position}/{self._targets} ", "dim")
        line.append(plain(self._target) or "starting", "bold")
        if self._phase is not None:
            line.append(f"  {self._phase.value}", "cyan")
        if self._total:
            done = min(self._in_phase, self._total)
            filled, signs = done * _BAR // self._total, "#." if options.ascii_only else "━╌"
            line.append(f" {signs[0] * filled}", "cyan").append(signs[1] * (_BAR - filled), "dim")
            line.append(f" {done:,}/{self._total:,}")
        parts = [counted(self._cases, "case"), rate(self._cases, elapsed), duration(elapsed)]
        line.append(f"  {'  '.join(filter(None, parts))}")
        if self._findings:
            line.append(f"  {counted(self._findings, 'finding')}", "bold red")
        yield line
