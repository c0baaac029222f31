"""``kcheck sanitize``: targets under NVIDIA's compute-sanitizer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.cli import options
from kcheck.cli.fuzz import check_layouts, exit_code
from kcheck.errors import CouldNotCheck
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.loader import LoadedTarget
    from kcheck.plan import Plan
    from kcheck.protocol import Judgement
    from kcheck.sanitizer.campaign import Subject
    from kcheck.sanitizer.launch import Setup
    from kcheck.store import SavedCase

BACKEND = "cuda"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


@click.command("sanitize")
@click.argument("targets", nargs=-1)
@click.option(
    "--tool",
    type=click.Choice([*TOOLS, "all"]),
    default="memcheck",
    show_default=True,
    help="Tool of compute-sanitizer.",
)
@click.option(
    "--max-examples",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Random cases a target, beside the sweep's and those of saved findings.",
)
@click.option(
    "--max-time",
    type=click.FloatRange(min=0.1),
    default=600.0,
    show_default=True,
    help="Seconds a target after which no worker is started.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of the random cases; drawn and shown if not given."
)
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Pin a dimension or an option; repeatable.")
@click.option("--layout", "layouts", multiple=True, metavar="ARGUMENT=KIND", help="Pin a layout kind; repeatable.")
@click.option("--sweep/--no-sweep", default=True, help="Run the sweep's layouts and boundary sizes.")
@click.option("--leaks", is_flag=True, help="memcheck: report device memory that the target never frees.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    default="error",
    show_default=True,
    help="Mildest severity that gives exit code 1.",
)
@click.option(
    "--case-timeout",
    type=click.FloatRange(min=0.1),
    default=120.0,
    show_default=True,
    help="Seconds that one case may take under the tool.",
)
@options.reports
@options.directory
def command(
    targets: tuple[str, ...],
    tool: str,
    max_examples: int,
    max_time: float,
    seed: int | None,
    sets: tuple[str, ...],
    layouts: tuple[str, ...],
    sweep: bool,
    leaks: bool,
    fail_on: str,
    case_timeout: float,
    reports: tuple[str, ...],
    directory: Path,
) -> int:
    """Run TARGETS under compute-sanitizer, on a GPU.

    Each tensor is an allocation of its own, with wild values around its view. The cases are those of fuzz's sweep, of
    saved findings, and some random ones. Needs an NVIDIA GPU and compute-sanitizer.
    """
    from kcheck import loader
    from kcheck.events import RunDone
    from kcheck.reports import open_reports
    from kcheck.sanitizer.campaign import SanitizerCampaign
    from kcheck.sanitizer.tool import Tool

    plan = options.read_plan(sets, layouts)
    store = Store(directory).open()
    setup = _setup(store, case_timeout, leaks=leaks)
    run_seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    with open_reports(reports) as report:
        selected = loader.select(targets)
        check_layouts(plan.layouts, selected)
        subjects = [_subject(one, plan, store, max_examples, run_seed, sweep=sweep) for one in selected]
        tools = [Tool(name) for name in (TOOLS if tool == "all" else (tool,))]
        campaign = SanitizerCampaign(subjects, tools, setup, store, seed=run_seed, max_time=max_time)
        done = None
        for event in campaign.run():
            report.handle(event)
            done = event
    assert isinstance(done, RunDone)
    return exit_code(done, fail_on)


def check_gpu() -> None:
    """Check that there is a GPU.

    Raises:
        CouldNotCheck: There is none.
    """
    if options.chosen_backend("auto") != "cuda":
        raise CouldNotCheck("an NVIDIA GPU and its driver are missing: this machine shows none in /dev")


def judge_again(saved: SavedCase, one: LoadedTarget, store: Store) -> Judgement:
    """Run the case of a finding again, under the tool that found it.

    Raises:
        CouldNotCheck: There is no GPU, or no compute-sanitizer.
    """
    from kcheck.events import CaseVerdict
    from kcheck.protocol import Judgement
    from kcheck.sanitizer.launch import Launcher
    from kcheck.sanitizer.session import Session
    from kcheck.sanitizer.tool import Tool

    setup = _setup(store, 120.0, leaks=saved.finding is not None and saved.finding.kind == "leak")
    session = Session(Launcher(setup, Tool(saved.tool), one.spec, one.target.kernels))
    checked = list(session.check([saved.case]))
    if session.reasons or not checked:
        return Judgement(CaseVerdict.COULD_NOT_CHECK, " ".join(session.reasons) or "the case did not run")
    return Judgement(checked[0].verdict, checked[0].reason, checked[0].findings, session.launches)


def _setup(store: Store, case_timeout: float, *, leaks: bool) -> Setup:
    """What the machine has; the folder of reports is made anew.

    Raises:
        CouldNotCheck: There is no GPU, or no compute-sanitizer.
    """
    from kcheck.sanitizer.launch import Setup
    from kcheck.sanitizer.locate import locate

    sanitizer = locate()
    check_gpu()
    folder = store.root / "sanitize"
    folder.mkdir(exist_ok=True)
    return Setup(sanitizer, folder, store.log, BACKEND, case_timeout, leaks)


def _subject(one: LoadedTarget, plan: Plan, store: Store, examples: int, seed: int, *, sweep: bool) -> Subject:
    """A target with its cases; what its strategy does wrong is told of it, and no reason to leave out the others."""
    from kcheck.engine import choose
    from kcheck.errors import SpecError
    from kcheck.sanitizer.campaign import Subject

    saved, notes = choose.saved_cases(store, one.spec, one.target)
    try:
        cases = list(choose.boundary_cases(one.target, plan)) if sweep else []
        cases += saved + choose.random_cases(one.target, plan, examples, seed)
    except SpecError as error:
        return Subject(one.target, one.spec, (), tuple(notes), str(error))
    return Subject(one.target, one.spec, choose.distinct(cases), tuple(notes))
