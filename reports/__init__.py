"""What a run tells: the console, machine formats, the drawings. Writers consume `kcheck.events`.

A format is one module and one line in `_FORMATS`; modules load when a format is asked for, so that importing this
package costs neither rich nor anything else.
"""

from __future__ import annotations

if __name__ != "kcheck.reports":
    raise ImportError(f"import kcheck.reports, not {__name__}: a second copy would have classes of its own")

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol

from kcheck.errors import UsageError
from kcheck.events import Event
from kcheck.reports.detail import Detail

__all__ = ["FORMATS", "Detail", "Report", "Reports", "open_reports"]


class Report(Protocol):
    """Consumes the events of one run, in order."""

    def handle(self, event: Event) -> None:
        """Take one event."""

    def close(self) -> None:
        """Finish: write what is still to be written, whether or not the run came to its end. Again: does nothing."""


class Reports:
    """Several reports as one, to be used in a ``with`` statement.

    Args:
        writers: The reports, called in this order.
    """

    def __init__(self, writers: Sequence[Report]) -> None:
        self.writers = tuple(writers)

    def handle(self, event: Event) -> None:
        """Give one event to every report."""
        for writer in self.writers:
            writer.handle(event)

    def close(self) -> None:
        """Close every report, the others too when one fails.

        Raises:
            KcheckError: A report could not be written.
        """
        with ExitStack() as stack:
            for writer in reversed(self.writers):
                stack.callback(writer.close)

    def __enter__(self) -> Reports:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _json(path: Path | None) -> Report:
    from kcheck.reports.document_report import DocumentReport
    from kcheck.reports.json_report import render_json

    return DocumentReport(render_json, path)


def _junit(path: Path | None) -> Report:
    from kcheck.reports.document_report import DocumentReport
    from kcheck.reports.junit_report import render_junit

    return DocumentReport(render_junit, path)


def _sarif(path: Path | None) -> Report:
    from kcheck.reports.document_report import DocumentReport
    from kcheck.reports.sarif_report import render_sarif

    return DocumentReport(render_sarif, path)


def _github(path: Path | None) -> Report:
    from kcheck.reports.github_report import GithubReport

    return GithubReport(path)


def _markdown(path: Path | None) -> Report:
    from kcheck.reports.document_report import DocumentReport
    from kcheck.reports.markdown_report import render_markdown

    return DocumentReport(render_markdown, path)


def _html(path: Path | None) -> Report:
    from kcheck.reports.document_report import DocumentReport
    from kcheck.reports.html_report import render_html

    return DocumentReport(render_html, path)


_FORMATS: Mapping[str, Callable[[Path | None], Report]] = {
    "json": _json,
    "junit": _junit,
    "sarif": _sarif,
    "github": _github,
    "markdown": _markdown,
    "html": _html,
}
FORMATS = ("console", *_FORMATS)
_STDOUT = Path("-")
# Names below --report-dir. The runner reads github's commands from stdout, so they have none.
_FILES = {
    "json": "kcheck.json",
    "junit": "kcheck.xml",
    "sarif": "kcheck.sarif",
    "markdown": "kcheck.md",
    "html": "kcheck.html",
}


def open_reports(
    specs: Sequence[str] = (),
    *,
    directory: Path | None = None,
    color: bool | None = None,
    width: int | None = None,
    progress: bool = True,
    detail: Detail = Detail.USUAL,
) -> Reports:
    """Make the reports that the user asked for.

    The console is always among them; it goes to stderr when another report goes to stdout.

    Args:
        specs: ``FORMAT`` or ``FORMAT=PATH``; without a path, or with the path ``-``, the report goes to stdout.
        directory: Where relative paths lie, and the reports without a path: ``kcheck.json``, ``kcheck.xml``, …. If no
            format that has a file is asked for, all of them are written there.
        color: Whether the console uses colour; None: as NO_COLOR or FORCE_COLOR says, else where the terminal has it.
        width: Columns of the console; None: the terminal's.
        progress: Whether the console shows progress on a terminal.
        detail: How much the console tells.

    Raises:
        UsageError: A format is unknown, a path is missing or cannot be written, or two reports go to one place.
    """
    wanted = [(spec, *_parse(spec)) for spec in specs]
    machine = [(spec, name, path) for spec, name, path in wanted if name != "console"]
    if directory is not None:
        machine = _placed(machine, directory)
    machine = [(spec, name, None if path == _STDOUT else path) for spec, name, path in machine]
    _refuse_shared_places(machine)
    from kcheck.reports.console import ConsoleReport, make_console

    stream = sys.stderr if any(path is None for _, _, path in machine) else sys.stdout
    console = ConsoleReport(make_console(stream, color=color, width=width), progress=progress, detail=detail)
    return Reports([console, *(_FORMATS[name](path) for _, name, path in machine)])


def _parse(spec: str) -> tuple[str, Path | None]:
    name, equals, path = spec.partition("=")
    if name not in FORMATS:
        raise UsageError(f"--report {spec}: {name!r} is not a report format; use one of {', '.join(FORMATS)}")
    if name == "console":
        if equals:
            raise UsageError(f"--report {spec}: the console takes no path; those that do are {', '.join(_FORMATS)}")
        return name, None
    if equals and not path:
        raise UsageError(
            f"--report {spec}: the path is missing; write {name}=PATH, or {name} alone for stdout "
            f"(formats: {', '.join(FORMATS)})"
        )
    return name, Path(path) if path else None


def _placed(machine: Sequence[tuple[str, str, Path | None]], directory: Path) -> list[tuple[str, str, Path | None]]:
    """Put reports below the directory."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--report-dir {directory}: it is a file; name a folder, which need not exist")
    asked = [*machine]
    if not any(name in _FILES for _, name, _ in machine):
        asked += [(name, name, None) for name in _FILES]
    return [
        (spec, name, path if path == _STDOUT or not (path or name in _FILES) else directory / (path or _FILES[name]))
        for spec, name, path in asked
    ]


def _refuse_shared_places(machine: Sequence[tuple[str, str, Path | None]]) -> None:
    taken: dict[str, str] = {}
    for spec, _, path in machine:
        place = "stdout" if path is None else str(path.absolute())
        if place in taken:
            raise UsageError(f"--report {taken[place]} and --report {spec} both write to {place}; change one path")
        taken[place] = spec
