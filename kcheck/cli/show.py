"""``kcheck show``: a case, drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kcheck.cli import completion, display, options
from kcheck.store import Store


@click.command("show")
@click.argument("case", shell_complete=completion.findings)
@display.look
@options.directory
def command(case: str, look: display.DisplayOptions, directory: Path) -> int:
    """Draw the layouts of CASE: a finding's fingerprint, or the path of a saved case. Runs nothing."""
    from kcheck.reports.case_view import draw_case
    from kcheck.reports.console import make_console

    saved = Store(directory).find(case)
    make_console(sys.stdout, color=look.color, width=look.width).print(draw_case(saved.case), crop=False)
    return 0
