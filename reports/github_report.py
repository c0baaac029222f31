"""The report for GitHub Actions: workflow commands that annotate lines, and the job summary.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands. GitHub shows ten annotations of a
kind for a step, and drops a job summary near 1 MiB without a word.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kcheck.errors import UsageError
from kcheck.events import Discovery, TargetResult
from kcheck.findings import Severity
from kcheck.reports.document_report import DocumentReport
from kcheck.reports.finding_text import title
from kcheck.reports.location import locate, project_root
from kcheck.reports.markdown_report import fitted, sections
from kcheck.reports.record import RunRecord
from kcheck.reports.verdict import could_not_check, new
from kcheck.reports.wording import cut, plain

SUMMARY = "GITHUB_STEP_SUMMARY"  # the file of the job summary
MOST_SUMMARY_BYTES = 1_000_000
MOST_ANNOTATIONS = 10
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReport(DocumentReport):
    """Prints workflow commands, and appends the Markdown report to the job summary where there is one.

    Args:
        path: Where the commands go; None: stdout, where the runner reads them.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__(render_github, path)

    def write(self, record: RunRecord) -> None:
        """Write the commands and the summary."""
        super().write(record)
        if os.environ.get(SUMMARY):
            _append(Path(os.environ[SUMMARY]), sections(record))


def render_github(record: RunRecord) -> str:
    """Workflow commands for the gravest findings and for what could not be checked, a line each."""
    commands = list(_commands(record))
    lines = commands[:MOST_ANNOTATIONS]
    if len(commands) > MOST_ANNOTATIONS:
        lines.append(f"{len(commands) - MOST_ANNOTATIONS} more are not annotated; the job summary has them.")
    return "".join(f"{line}\n" for line in lines)


def _commands(record: RunRecord) -> Iterator[str]:
    """Annotations, the gravest first. Known findings are in the summary only."""
    results = record.outcomes()
    found = new(results)
    grave = [discovery for discovery in found if discovery.finding.severity is Severity.ERROR]
    yield from map(_finding, grave)
    for result in filter(could_not_check, results):
        yield _unchecked(result)
    for result in results:
        if result.gone:
            text = "\n".join(cut(gone.message) for gone in result.gone)
            yield _command("error", text, title=f"kcheck: baseline of {result.name}")
    yield from map(_finding, found[len(grave) :])


def _finding(discovery: Discovery) -> str:
    finding = discovery.finding
    location = locate(discovery)
    below = location.below(project_root())
    place = {"file": str(below), "line": str(location.line)} if below else {}
    text = f"{cut(finding.message)}\nReplay: {discovery.replay}"
    return _command(_LEVELS[finding.severity], text, **place, title=f"kcheck: {title(finding)}")


def _unchecked(result: TargetResult) -> str:
    """Not a pass, so an error, unless the user said so."""
    level = "warning" if result.allowed else "error"
    text = "\n".join(map(cut, result.reasons)) or "no reason is known"
    return _command(level, text, title=f"kcheck: could not check {result.name}")


def _command(level: str, text: str, **properties: str) -> str:
    given = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {given}::{_data(text)}"


def _data(text: str) -> str:
    """The message of a command."""
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _append(file: Path, parts: list[str]) -> None:
    """Append to the job summary, in which this step may have written already.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        room = MOST_SUMMARY_BYTES - (file.stat().st_size if file.exists() else 0)
        with file.open("ab") as stream:
            stream.write(f"{fitted(parts, room)}\n".encode(errors="backslashreplace"))
    except OSError as error:
        raise UsageError(
            f"the job summary cannot be written to {file} (${SUMMARY}): {error.strerror}; unset it or leave out github"
        ) from None
