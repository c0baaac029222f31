"""``kcheck fuzz``: the main job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from kcheck.cli import completion, display, options, sharding
from kcheck.cli.known import check_writable, write_baseline
from kcheck.cli.search import Search, interruptible
from kcheck.cli.verdict import exit_code
from kcheck.errors import UsageError
from kcheck.store import Store

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
@click.option(
    "--resume", is_flag=True, help="Go on where the last run of these targets was, if it was killed or interrupted."
)
@sharding.options
@options.backend
@display.console
@options.directory
@options.database
def command(
    targets: tuple[str, ...],
    cases: options.CaseOptions,
    run: options.RunOptions,
    cuda_graph: bool,
    resume: bool,
    sharing: sharding.SharingOptions,
    backend: str,
    console: display.ConsoleOptions,
    directory: Path,
    database: Path | None,
) -> int:
    """Run TARGETS over generated layouts and sizes.

    A target is file.py, file.py::name, package.module:name or builtin:name; without one, those of [tool.kcheck] in
    pyproject.toml, or of the files kcheck_*.py below the current directory.
    """
    name = options.chosen_backend(backend)
    if cuda_graph and name != "cuda":
        raise UsageError(f"--cuda-graph needs --backend cuda; the backend is {name}")
    search = Search(targets, cases, run, name, directory, cuda_graph=cuda_graph, resume=resume, database=database)
    return run_search(resumed(search), console, sharing)


def resumed(search: Search) -> Search:
    """The search with the seed of the run that it goes on with, if nobody asks for one."""
    if not (search.resume and search.cases.is_seed_drawn):
        return search
    from kcheck.resume import earlier_seed

    seed = earlier_seed(Store(search.directory), " ".join(search.targets), search.backend)
    return search if seed is None else replace(search, cases=replace(search.cases, seed=seed, is_seed_drawn=False))


def run_search(
    search: Search, console: display.ConsoleOptions, sharing: sharding.SharingOptions = sharding.ALONE
) -> int:
    """Run targets, report, and say with which exit code to leave.

    Args:
        search: What to do.
        console: How the console looks, and how much it tells.
        sharing: Who shares the work.
    """
    from kcheck.events import RunDone

    judging = search.run
    search = sharding.placed(search, sharing)
    check_writable(judging.write_baseline)
    done = None
    with (
        display.open_reports(judging, console) as report,
        sharding.opened(search, sharing, with_cases=console.detail == "verbose") as run,
        interruptible(run),
    ):
        for event in run.events:
            report.handle(event)
            done = event
    assert isinstance(done, RunDone)
    if judging.write_baseline is not None:
        click.echo(f"kcheck: {write_baseline(judging.write_baseline, done, search.backend)}", err=True)
    return exit_code(done, judging.fail_on)
