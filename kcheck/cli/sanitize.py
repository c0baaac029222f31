"""``kcheck sanitize``: targets under kcheck's view check, or under NVIDIA's compute-sanitizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.backend_spec import VIEWCHECK, BackendSpec
from kcheck.cli import completion, display, options
from kcheck.cli.fuzz import run_search
from kcheck.cli.known import check_writable, known_findings, write_baseline
from kcheck.cli.search import Search
from kcheck.cli.verdict import allowing, check_skips, exit_code
from kcheck.errors import CouldNotCheck, UsageError
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.baseline import Known
    from kcheck.loader import LoadedTarget
    from kcheck.protocol import Judgement
    from kcheck.sanitizer.campaign import Subject
    from kcheck.sanitizer.launch import Setup
    from kcheck.saved_case import SavedCase

BACKEND = "cuda"
PROFILES = {
    "pr": {"total-time": 60.0, "max-examples": 0, "seed": 0},
    "nightly": {"max-time": 3600.0, "max-examples": 200},
}
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


@click.command("sanitize")
@click.argument("targets", nargs=-1, shell_complete=completion.targets)
@click.option(
    "--tool",
    type=click.Choice([VIEWCHECK, *TOOLS, "all"]),
    help="viewcheck: kcheck's own. The others, and all of those, are compute-sanitizer's. Default: memcheck on a "
    "machine with an NVIDIA GPU, else viewcheck.",
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "interpret", "cuda"]),
    default="auto",
    show_default=True,
    help="Where viewcheck runs kernels: auto is a GPU, compiled with the checks, where there is one, else the CPU.",
)
@options.cases(
    max_examples=10,
    examples_help="Random cases a target, beside the sweep's and those of saved findings.",
    case_timeout=120.0,
    timeout_help="Seconds that one case may take under the tool.",
)
@options.run(max_time=600.0, time_help="Seconds a target after which no worker is started.", profiles=PROFILES)
@click.option("--leaks", is_flag=True, help="memcheck: report device memory that the target never frees.")
@display.console
@options.directory
def command(
    targets: tuple[str, ...],
    tool: str | None,
    backend: str,
    cases: options.CaseOptions,
    run: options.RunOptions,
    leaks: bool,
    console: display.ConsoleOptions,
    directory: Path,
) -> int:
    """Run TARGETS under a sanitizer: kcheck's view check, or NVIDIA's compute-sanitizer.

    The cases are those of fuzz's sweep, of saved findings, and some random ones; wild values lie around the views.

    viewcheck looks at every access of a Triton kernel: in its view? two programs at one byte? of memory that nobody
    wrote? at an offset that wrapped in 32 bits? Of grids beyond 2,000 programs a part runs. compute-sanitizer runs the
    compiled kernel, each tensor in an allocation of its own, and needs an NVIDIA GPU.
    """
    tool = tool or ("memcheck" if options.chosen_backend("auto") == "cuda" else VIEWCHECK)
    if tool == VIEWCHECK:
        if leaks:
            raise UsageError("--leaks is for memcheck; the tool is viewcheck")
        on_gpu = options.chosen_backend(backend) == "cuda"
        spec = str(BackendSpec(VIEWCHECK, on_gpu=on_gpu))
        return run_search(Search(targets, cases, run, spec, directory, with_saved=True), console)
    if backend == "interpret":
        raise UsageError(f"--backend interpret is for viewcheck; {tool} is compute-sanitizer's, and needs a GPU")
    from kcheck import loader
    from kcheck.engine import check_pins
    from kcheck.events import RunDone
    from kcheck.sanitizer.campaign import SanitizerCampaign
    from kcheck.sanitizer.tool import Tool

    store = Store(directory).open()
    setup = _setup(store, cases.case_timeout, leaks=leaks)
    with display.open_reports(run, console) as report:
        selected = loader.select(targets)
        check_pins([one.target for one in selected], cases.plan)
        check_skips(run.allow_skip, selected)
        check_writable(run.write_baseline)
        tools = [Tool(name) for name in (TOOLS if tool == "all" else (tool,))]
        known = known_findings(run.baseline, selected, [*tools, BACKEND])
        subjects = [_subject(one, cases, store, known.get(one.spec, ())) for one in selected]
        campaign = SanitizerCampaign(
            subjects, tools, setup, store, seed=cases.seed, max_time=run.max_time, total_time=run.total_time
        )
        done = None
        for event in allowing(campaign.run(), run.allow_skip, selected):
            report.handle(event)
            done = event
    assert isinstance(done, RunDone)
    if run.write_baseline is not None:
        click.echo(f"kcheck: {write_baseline(run.write_baseline, done, BACKEND)}", err=True)
    return exit_code(done, run.fail_on)


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

    check_gpu()
    sanitizer = locate()
    folder = store.root / "sanitize"
    folder.mkdir(exist_ok=True)
    return Setup(sanitizer, folder, store.log, BACKEND, case_timeout, leaks)


def _subject(one: LoadedTarget, chosen: options.CaseOptions, store: Store, known: tuple[Known, ...]) -> Subject:
    """A target with its cases; what its strategy does wrong is told of it, and no reason to leave out the others."""
    from kcheck.engine import choose
    from kcheck.errors import SpecError
    from kcheck.sanitizer.campaign import Subject

    saved, notes = choose.saved_cases(store, one.spec, one.target)
    try:
        cases = list(choose.boundary_cases(one.target, chosen.plan)) if chosen.sweep else []
        cases = [entry.case for entry in known if not entry.is_crash] + cases
        cases += saved + choose.random_cases(one.target, chosen.plan, chosen.max_examples, chosen.seed)
    except SpecError as error:
        return Subject(one.target, one.spec, (), tuple(notes), str(error), known, one.title)
    return Subject(one.target, one.spec, choose.distinct(cases), tuple(notes), known=known, title=one.title)
