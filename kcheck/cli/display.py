"""Options of the console: how it looks, and how much it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kcheck.cli.options import Decorator, JudgingOptions, group
from kcheck.errors import UsageError

if TYPE_CHECKING:
    from kcheck.reports import Reports


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """How the console looks.

    Attributes:
        color: Whether to use colour; None: as the environment says, else where the terminal has it.
        width: Columns; None: the terminal's.
    """

    color: bool | None
    width: int | None


_COLORS = {"auto": None, "always": True, "never": False}
_LOOKS = {
    "color": click.option(
        "--color",
        type=click.Choice(list(_COLORS)),
        default="auto",
        show_default=True,
        help="Colour; NO_COLOR and FORCE_COLOR count for auto.",
    ),
    "width": click.option("--width", type=click.IntRange(min=40), help="Columns; those of the terminal if not given."),
}
# The command gets `DisplayOptions` as ``look``.
look: Decorator = group("look", lambda color, width: DisplayOptions(_COLORS[color], width), **_LOOKS)


@dataclass(frozen=True, slots=True)
class ConsoleOptions(DisplayOptions):
    """How the console looks, and how much it tells.

    Attributes:
        detail: ``quiet``, ``usual`` or ``verbose``.
    """

    detail: str


def open_reports(run: JudgingOptions, console: ConsoleOptions) -> Reports:
    """The reports that were asked for.

    Raises:
        UsageError: One of them cannot be had.
    """
    from kcheck.reports import Detail
    from kcheck.reports import open_reports as opened

    detail = Detail(console.detail)
    return opened(run.reports, directory=run.report_dir, color=console.color, width=console.width, detail=detail)


def _console(color: str, width: int | None, quiet: bool, verbose: bool) -> ConsoleOptions:
    if quiet and verbose:
        raise UsageError("--quiet and --verbose contradict each other; give one of them")
    return ConsoleOptions(_COLORS[color], width, "quiet" if quiet else "verbose" if verbose else "usual")


# The command gets `ConsoleOptions` as ``console``.
console: Decorator = group(
    "console",
    _console,
    **_LOOKS,
    quiet=click.option("-q", "--quiet", is_flag=True, help="Tell only findings and a verdict for each target."),
    verbose=click.option("-v", "--verbose", is_flag=True, help="Tell every case, rejection and lost worker too."),
)
