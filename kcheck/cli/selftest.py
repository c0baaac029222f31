"""``kcheck selftest``: does kcheck find the known bugs on this machine, and nothing in correct kernels?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from kcheck.cli import display, options
from kcheck.store import Store

MOST_WORKERS = 8


@click.command("selftest")
@click.option("--thorough", is_flag=True, help="More than 10,000 cases of correct targets, not some 1,000.")
@click.option(
    "--backend",
    type=click.Choice(["auto", "interpret", "cuda"]),
    default="auto",
    show_default=True,
    help="Where kernels run; auto: on the CPU, and on the GPU where there is one.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help=f"Targets to try at a time; one for each processor, at most {MOST_WORKERS}, if not given.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say how each bug was found.")
@display.look
@options.directory
def command(
    thorough: bool, backend: str, workers: int | None, verbose: bool, look: display.DisplayOptions, directory: Path
) -> int:
    """Run the built-in targets: each known bug must be found, and correct kernels must stay silent.

    Exit code 1 if a bug is missed, or at a false alarm; 3 if something could not be checked.
    """
    from kcheck.reports.console import make_console
    from kcheck.reports.selftest_report import SelfTestView
    from kcheck.selftest import THOROUGH, Effort, SelfTest

    console = make_console(sys.stdout, color=look.color, width=look.width)
    store = Store(directory).open()
    count = workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    effort = THOROUGH if thorough else Effort()
    results = []
    for name in _backends(backend):
        results.append(SelfTest(name, store.log, count, effort, _progress).run())
        console.print(SelfTestView(results[-1], verbose=verbose), crop=False)
    if any(any(result.failures()) for result in results):
        return 1
    return 3 if any(any(result.unchecked()) for result in results) else 0


def _backends(asked: str) -> list[str]:
    """Names of backends, with their options: on a GPU every access is checked, as it is on the CPU."""
    found = options.chosen_backend(asked)
    if found == "cuda":
        return ["cuda,checked"] if asked == "cuda" else ["interpret", "cuda,checked"]
    return [found]


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{done} of {total} targets" if done < total else "\r\033[K", nl=False, err=True)
