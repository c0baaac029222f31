"""``kcheck fuzz``: the main job."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from kcheck.cli import options
from kcheck.errors import UsageError
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.engine import Campaign
    from kcheck.events import RunDone
    from kcheck.loader import LoadedTarget


@click.command("fuzz")
@click.argument("targets", nargs=-1)
@click.option(
    "--max-examples",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    help="Random cases a target; the sweep and shrinking come on top.",
)
@click.option("--max-time", type=click.FloatRange(min=0.1), default=60.0, show_default=True, help="Seconds a target.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of the whole run; drawn and shown if not given.")
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Pin a dimension or an option; repeatable.")
@click.option("--layout", "layouts", multiple=True, metavar="ARGUMENT=KIND", help="Pin a layout kind; repeatable.")
@click.option("--sweep/--no-sweep", default=True, help="Walk through layouts and boundary sizes first.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    default="error",
    show_default=True,
    help="Mildest severity that gives exit code 1.",
)
@click.option("--cuda-graph", is_flag=True, help="Also capture every case in a CUDA graph and replay it.")
@options.case_timeout
@options.backend
@options.reports
@options.directory
def command(
    targets: tuple[str, ...],
    max_examples: int,
    max_time: float,
    seed: int | None,
    sets: tuple[str, ...],
    layouts: tuple[str, ...],
    sweep: bool,
    fail_on: str,
    cuda_graph: bool,
    case_timeout: float,
    backend: str,
    reports: tuple[str, ...],
    directory: Path,
) -> int:
    """Run TARGETS over generated layouts and sizes.

    A target is file.py, file.py::name, package.module:name or builtin:name; without one, those of [tool.kcheck] in
    pyproject.toml, or of the files kcheck_*.py below the current directory.
    """
    from kcheck.client import Client
    from kcheck.reports import open_reports

    plan = options.read_plan(sets, layouts)
    name = options.chosen_backend(backend)
    if cuda_graph and name != "cuda":
        raise UsageError(f"--cuda-graph needs --backend cuda; the backend is {name}")
    store = Store(directory).open()
    with (
        open_reports(reports) as report,
        Client(name, store.log, case_timeout=case_timeout, cuda_graph=cuda_graph) as client,
    ):
        # The worker process imports torch while this one imports the targets.
        from kcheck import loader
        from kcheck.engine import Campaign, Settings

        selected = loader.select(targets)
        check_layouts(plan.layouts, selected)
        settings = Settings(
            max_examples=max_examples,
            max_time=max_time,
            seed=random.SystemRandom().getrandbits(32) if seed is None else seed,
            plan=plan,
            sweep=sweep,
            case_timeout=case_timeout,
        )
        campaign = Campaign(selected, client, store, settings, name)
        done = None
        with _interruptible(campaign):
            for event in campaign.run():
                report.handle(event)
                done = event
    return exit_code(done, fail_on)  # type: ignore[arg-type]  # the last event of a run is RunDone


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
    """The first Ctrl-C ends the run in order, with its reports; the second one ends it at once."""

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        campaign.interrupt()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def exit_code(done: RunDone, fail_on: str = "error") -> int:
    """The exit code of a run.

    Args:
        done: Its last event.
        fail_on: Mildest severity that counts as a finding.
    """
    from kcheck.events import CaseVerdict
    from kcheck.findings import Severity

    if done.interrupted:
        return 130
    limit = Severity(fail_on).rank
    if any(d.finding.severity.rank <= limit for result in done.results for d in result.discoveries):
        return 1
    if any(result.reasons or result.verdict is CaseVerdict.COULD_NOT_CHECK for result in done.results):
        return 3
    return 0
