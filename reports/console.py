"""The console: progress while a run goes on, a block per target, a panel per finding, a summary."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from kcheck.case import Case
from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Discovery,
    Event,
    Notice,
    RunDone,
    RunStarted,
    TargetDone,
    TargetResult,
    WorkerReplaced,
)
from kcheck.reports import finding_text
from kcheck.reports.detail import Detail
from kcheck.reports.fact import Hanging, fact, unwrapped
from kcheck.reports.matrix import LayoutMatrix, rows
from kcheck.reports.panel import SEVERITY_STYLES, FindingPanel
from kcheck.reports.progress import Progress
from kcheck.reports.verdict import cases, could_not_check, known
from kcheck.reports.view_text import scalars
from kcheck.reports.wording import counted, duration, nearest_path, plain, rate

_VERDICTS = {
    CaseVerdict.MATCH: ("MATCH", "bold green"),
    CaseVerdict.FINDINGS: ("FINDINGS", "bold red"),
    CaseVerdict.COULD_NOT_CHECK: ("COULD NOT CHECK", "bold magenta"),
    CaseVerdict.REJECTED: ("REJECTED", "bold yellow"),
}


class _Console(Console):
    """A console that leaves it to the program what to do when nobody reads on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True  # closing prints, too
        raise BrokenPipeError


def make_console(stream: TextIO, *, color: bool | None = None, width: int | None = None) -> Console:
    """A Rich console that prints user text literally and never fails on a character the stream cannot encode.

    Args:
        stream: Where to.
        color: Whether to use colour; None: as NO_COLOR or FORCE_COLOR says, else where the terminal has it.
        width: Columns; None: the terminal's.
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    if color is None and os.environ.get("FORCE_COLOR"):
        color = not os.environ.get("NO_COLOR")
    # Asked for, there is colour also where Rich sees no terminal, or one that cannot show any.
    plain_stream = not stream.isatty() or os.environ.get("TERM") in ("dumb", "unknown")
    system: Literal["auto", "standard"] = "standard" if color and plain_stream else "auto"
    return _Console(
        file=stream,
        width=width,
        color_system=None if color is False else system,
        force_terminal=color or None,
        no_color=False if color else None,
        markup=False,
        highlight=False,
        emoji=False,
    )


def render(renderable: RenderableType, width: int = 80) -> str:
    """A renderable as text without colour, for logs and for the message of a failed test."""
    stream = io.StringIO()
    make_console(stream, color=False, width=width).print(renderable, crop=False)
    return stream.getvalue()


class ConsoleReport:
    """Shows a run while it goes on.

    Args:
        console: Where to; `make_console` makes one.
        progress: Whether to show progress where the console is a terminal.
        detail: How much to tell.
    """

    def __init__(self, console: Console, *, progress: bool = True, detail: Detail = Detail.USUAL) -> None:
        self._console = console
        self._detail = detail
        self._progress = Progress()
        moving = progress and console.is_terminal and not console.is_dumb_terminal and console.file.isatty()
        self._live = Live(self._progress, console=console, refresh_per_second=8, transient=True) if moving else None
        self._shown: dict[tuple[str, str], bool] = {}  # whether while the target ran

    def handle(self, event: Event) -> None:
        """Take one event."""
        self._progress.handle(event)
        match event:
            case RunStarted():
                if self._detail is not Detail.QUIET:
                    self._print(Hanging(Text(_heading(event), "dim")))
                if self._live is not None:
                    self._live.start(refresh=True)
            case Notice(text):
                self._print(unwrapped(Text(f"note  {plain(text)}")))
            case CaseDone() if self._detail is Detail.VERBOSE:
                self._print(_case_line(event))
            case WorkerReplaced() if self._detail is Detail.VERBOSE:
                self._print(Hanging(f"worker replaced in {duration(event.seconds)}: {event.cause}", rest="  "))
            case BugFound(discovery):
                self._show(discovery, so_far=True)
            case TargetDone(result):
                for discovery in result.discoveries:
                    self._show(discovery)
                parts = _verdict(result)
                if self._detail is not Detail.QUIET:
                    early = [d for d in result.discoveries if not d.known and self._shown[d.spec, d.fingerprint]]
                    parts = chain(parts, _in_the_end(early), _circumstances(result, self._progress.replaced))
                for part in parts:
                    self._print(part)
            case RunDone():
                self.close()
                for part in _summary(event):
                    self._print(part)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, part: RenderableType) -> None:
        as_it_is = isinstance(part, Text) and bool(part.no_wrap)  # Rich joins texts, and forgets that
        self._console.print(part, crop=False, soft_wrap=as_it_is)

    def _show(self, discovery: Discovery, *, so_far: bool = False) -> None:
        key = (discovery.spec, discovery.fingerprint)
        if key not in self._shown:
            self._shown[key] = so_far
            if discovery.known:
                for part in _known(discovery):
                    self._print(part)
            else:
                self._print(FindingPanel(discovery, so_far=so_far))


def _heading(event: RunStarted) -> str:
    known = [f"{name} {event.versions[name]}" for name in ("kcheck", "triton", "torch") if name in event.versions]
    shard = [f"shard {event.shard}"] if event.shard is not None and not event.joined else []
    workers = [counted(event.workers, "worker")] if event.workers > 1 else []
    run = (f"backend {event.backend}", f"seed {event.seed}", *shard, *workers, counted(len(event.targets), "target"))
    return plain(", ".join([*known, *run]))


def _case_line(event: CaseDone) -> RenderableType:
    """One case in short: verdict, phase, time, arguments, and why it was not run to its end."""
    word, style = _VERDICTS[event.verdict]
    line = Text.assemble((word.lower(), style), f"  {event.phase.value}, {duration(event.seconds)}")
    if event.case is not None:
        line.append(f"  {_arguments(event.case)}", "dim")
    if event.reason:
        line.append(f"  {plain(event.reason)}")
    return Hanging(line, rest="  ")


def _arguments(case: Case) -> str:
    """The arguments of a case in one line of code."""
    views = [f"{name}={view.code}" for name, view in case.views.items()]
    return plain(", ".join([*views, *(f"{name}={value}" for name, value in scalars(case).items())]))


def _verdict(result: TargetResult) -> Iterator[RenderableType]:
    """What came out for a target."""
    word, style = _VERDICTS[result.verdict]
    total = sum(result.cases.values())
    line = Text.assemble((word, style), "  ", (plain(result.name), "bold"), f"  {counted(total, 'case')}")
    kinds = cases(result)
    line.append(f" ({kinds})" if kinds else "")
    speed = rate(total, result.seconds)
    line.append(f" in {duration(result.seconds)}{', ' if speed else ''}{speed}")
    yield Hanging(line, rest="  ")
    for reason in result.reasons:
        yield fact("unchecked", reason)
    if result.allowed:
        yield fact("skipped", "--allow-skip lets the run pass all the same")
    for gone in result.gone:
        yield fact("gone", gone.message)


def _in_the_end(discoveries: Sequence[Discovery]) -> Iterator[RenderableType]:
    """What was not known yet when these were shown."""
    for discovery in discoveries:
        yield fact("seen", f"{_in_short(discovery)}: in {counted(discovery.seen, 'case')}")
        for i, related in enumerate(discovery.related):
            yield fact("" if i else "related", finding_text.relation(related))


def _circumstances(result: TargetResult, replaced: Sequence[str]) -> Iterator[RenderableType]:
    """What there is to know beside the verdict."""
    for note in result.notes:
        yield fact("note", note)
    if replaced:
        yield fact("workers", f"{counted(len(replaced), 'worker')} replaced, the last because: {replaced[-1]}")
    if matrix := rows(result.matrix):
        yield Text()
        yield LayoutMatrix(matrix)
    yield Text()


def _summary(event: RunDone) -> Iterator[RenderableType]:
    found = [discovery for result in event.results for discovery in result.discoveries if not discovery.known]
    listed = len(known(event.results))
    gone = sum(len(result.gone) for result in event.results)
    if len(found) > 1:
        for discovery in found:
            yield from _recap(discovery)
        yield Text()
    unchecked = sum(map(could_not_check, event.results))
    total = sum(sum(result.cases.values()) for result in event.results)
    parts = [
        counted(len(found), "finding") if found else "no new findings" if listed else "no findings",
        *([f"{listed} known"] if listed else []),
        *([f"{gone} gone"] if gone else []),
        *([f"{unchecked} could not check"] if unchecked else []),
        counted(len(event.results), "target"),
        counted(total, "case"),
    ]
    style = "bold red" if found or gone else "bold magenta" if unchecked else "bold green"
    yield Hanging(Text(f"{', '.join(parts)} in {duration(event.seconds)}", style))
    if event.interrupted:
        yield Hanging(Text("interrupted: what was found until then is kept and can be replayed", "bold yellow"))


def _known(discovery: Discovery) -> Iterator[RenderableType]:
    """A finding that the baseline lists: where it is, and where it is discussed."""
    yield Hanging(Text.assemble(("KNOWN", "bold blue"), "  ", plain(_in_short(discovery))), rest="  ")
    yield unwrapped(Text(f"    {plain(discovery.known)}"))


def _in_short(discovery: Discovery) -> str:
    finding = discovery.finding
    place = f"{nearest_path(finding.file)}:{finding.line}" if finding.line else finding.kernel or discovery.target
    return " · ".join(filter(None, (finding.kind.value, finding.argument, place)))


def _recap(discovery: Discovery) -> Iterator[RenderableType]:
    """One finding in short, so that the end of a log names them all."""
    finding = discovery.finding
    severity = (finding.severity.upper(), SEVERITY_STYLES[finding.severity])
    yield Hanging(Text.assemble(severity, "  ", plain(_in_short(discovery))), rest="  ")
    yield unwrapped(Text(f"    {plain(discovery.replay)}"))
