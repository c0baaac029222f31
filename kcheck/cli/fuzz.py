"""``kcheck fuzz``: the main job."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from kcheck.cli import completion, display, options
from kcheck.cli.known import check_writable, known_findings, write_baseline
from kcheck.cli.verdict import allowing, check_skips, exit_code
from kcheck.errors import UsageError
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.case import Case
    from kcheck.engine import Campaign
    from kcheck.loader import LoadedTarget

PROFILES = {
    # A pull request gets the same cases each time: what it fails for is in it, not in the dice.
    "pr": {"total-time": 60.0, "max-examples": 200, "seed": 0},
    "nightly": {"max-time": 1800.0, "max-examples": 20_000},
}


@click.command("fuzz")
@click.argument("targets", nargs=-1, shell_complete=completion.targets)
@options.cases(max_examples=500, examples_help="Random cases a target; the sweep and shrinking come on top.")
@options.run(max_time=60.0, time_help="Seconds a target.", profiles=PROFILES)
@click.option("--cuda-graph", is_flag=True, help="Also capture every case in a CUDA graph and replay it.")
@options.backend
@display.console
@options.directory
def command(
    targets: tuple[str, ...],
    cases: options.CaseOptions,
    run: options.RunOptions,
    cuda_graph: bool,
    backend: str,
    console: display.ConsoleOptions,
    directory: Path,
) -> int:
    """Run TARGETS over generated layouts and sizes.

    A target is file.py, file.py::name, package.module:name or builtin:name; without one, those of [tool.kcheck] in
    pyproject.toml, or of the files kcheck_*.py below the current directory.
    """
    name = options.chosen_backend(backend)
    if cuda_graph and name != "cuda":
        raise UsageError(f"--cuda-graph needs --backend cuda; the backend is {name}")
    return search(targets, cases, run, console, name, directory, cuda_graph=cuda_graph)


def search(
    targets: tuple[str, ...],
    cases: options.CaseOptions,
    run: options.RunOptions,
    console: display.ConsoleOptions,
    name: str,
    directory: Path,
    *,
    cuda_graph: bool = False,
    with_saved: bool = False,
) -> int:
    """Run targets, report, and say with which exit code to leave.

    Args:
        targets: As the user names them.
        cases: Which cases.
        run: Budgets and reports.
        console: How the console looks, and how much it tells.
        name: The backend, with its options.
        directory: Where findings are kept.
        cuda_graph: Also replay every case as a CUDA graph.
        with_saved: Also run the cases of saved findings.
    """
    from kcheck.client import Client

    store = Store(directory).open()
    with (
        display.open_reports(run, console) as report,
        Client(name, store.log, case_timeout=cases.case_timeout, cuda_graph=cuda_graph) as client,
    ):
        # The worker process imports torch while this one imports the targets.
        from kcheck import loader
        from kcheck.engine import Campaign, Settings
        from kcheck.events import RunDone

        selected = loader.select(targets)
        gc.freeze()  # torch has made a million objects: a collection need not look through them every second
        check_layouts(cases.plan.layouts, selected)
        check_skips(run.allow_skip, selected)
        check_writable(run.write_baseline)
        settings = Settings(
            max_examples=cases.max_examples,
            max_time=run.max_time,
            total_time=run.total_time,
            seed=cases.seed,
            plan=cases.plan,
            sweep=cases.sweep,
            case_timeout=cases.case_timeout,
            known=known_findings(run.baseline, selected, [name]),
            saved={one.spec: _saved(store, one) for one in selected} if with_saved else {},
        )
        campaign = Campaign(selected, client, store, settings, name)
        done = None
        with _interruptible(campaign):
            for event in allowing(campaign.run(), run.allow_skip, selected):
                report.handle(event)
                done = event
    assert isinstance(done, RunDone)
    if run.write_baseline is not None:
        click.echo(f"kcheck: {write_baseline(run.write_baseline, done, name)}", err=True)
    return exit_code(done, run.fail_on)


def _saved(store: Store, one: LoadedTarget) -> tuple[Case, ...]:
    from kcheck.engine import choose

    cases, _ = choose.saved_cases(store, one.spec, one.target)
    return choose.distinct(cases)


def check_layouts(layouts: Iterable[str], selected: Iterable[LoadedTarget]) -> None:
    """A pin for an argument that no target has is a typing error, not a pass.

    Raises:
        UsageError: There is one.
    """
    names = {parameter for one in selected for parameter in one.target.parameters}
    for name in layouts:
        if name.partition("[")[0] not in names:
            raise UsageError(
                f"--layout {name}=…: no target has the argument {name!r}; known: {', '.join(sorted(names))}"
            )


@contextmanager
def _interruptible(campaign: Campaign) -> Iterator[None]:
    """The first Ctrl-C ends the run in order, with its reports; the second one ends it at once.

    SIGTERM is the Ctrl-C of a CI job whose time is up.
    """

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        campaign.interrupt()

    before = {number: signal.signal(number, on_interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
