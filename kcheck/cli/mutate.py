"""``kcheck mutate``: how many bugs of the usual kinds would a target notice?"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.cli import completion, display, options
from kcheck.errors import UsageError
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.loader import LoadedTarget
    from kcheck.mutation import MutationScore

MOST_WORKERS = 4


@click.command("mutate")
@click.argument("target", shell_complete=completion.targets)
@options.cases(
    max_examples=100,
    examples_help="Cases a mutant, those of the sweep and random ones together.",
    seed_help="Seed of random cases and of the choice of mutants; 0 if not given.",
)
@click.option(
    "--max-mutants",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Mutants to try; of more, a choice that the seed decides.",
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    help="Exit code 1 if a smaller share of the mutants is killed; without it survivors fail nothing.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help=f"Mutants to try at a time; one for each processor, at most {MOST_WORKERS}, if not given.",
)
@click.option("--report", metavar="json[=PATH]", help="Also write the result as JSON; without a path to stdout.")
@click.option("-v", "--verbose", is_flag=True, help="Tell of mutants that are killed, or cannot run, too.")
@options.backend
@display.look
@options.directory
def command(
    target: str,
    cases: options.CaseOptions,
    max_mutants: int,
    min_score: float | None,
    workers: int | None,
    report: str | None,
    verbose: bool,
    backend: str,
    look: display.DisplayOptions,
    directory: Path,
) -> int:
    """Change the kernels of TARGET, and what launches them, as real bugs do; say which changes its cases show.

    A mask is dropped, a stride taken from the shape, a bound is one off, …, one at a time and never on disk. Without
    --seed the same mutants get the same cases every time. Exit code 3 if TARGET itself does not match.
    """
    place = _json_place(report)
    stream = sys.stderr if report is not None and place is None else sys.stdout
    score = _score(target, cases, max_mutants, workers, options.chosen_backend(backend), directory)
    from kcheck.reports.console import make_console
    from kcheck.reports.mutation_report import MutationView

    make_console(stream, color=look.color, width=look.width).print(MutationView(score, verbose=verbose), crop=False)
    if report is not None:
        _write(score, place)
    if score.interrupted:
        return 130
    if score.score is None:
        return 3
    if min_score is not None and score.score < min_score:
        click.echo(f"kcheck: the score is {score.score:.3f}, below --min-score {min_score:g}", err=True)
        return 1
    return 0


def _score(
    name: str, cases: options.CaseOptions, most: int, workers: int | None, backend: str, directory: Path
) -> MutationScore:
    from kcheck.client import Client

    count = min(workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS), most)
    store = Store(directory).open()
    with ExitStack() as stack:
        logs = [store.log, *(store.log.with_suffix(f".{n}.log") for n in range(1, count))]
        clients = [stack.enter_context(Client(backend, log, case_timeout=cases.case_timeout)) for log in logs]
        from kcheck.mutate.campaign import Limits, MutantCampaign

        seed = 0 if cases.is_seed_drawn else cases.seed
        limits = Limits(cases.max_examples, most, seed, cases.plan, cases.sweep)
        return MutantCampaign(_one(name, cases), clients, limits, _progress).run()


def _one(name: str, cases: options.CaseOptions) -> LoadedTarget:
    """The target.

    Raises:
        UsageError: The name stands for several, or a pin for none of its arguments.
    """
    from kcheck import loader
    from kcheck.engine import check_pins

    loaded = loader.load(name)
    if len(loaded) != 1:
        raise UsageError(f"{name} names {len(loaded)} targets: {', '.join(one.spec for one in loaded)}; choose one")
    check_pins([loaded[0].target], cases.plan)
    return loaded[0]


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{done} of {total} mutants" if done < total else "\r\033[K", nl=False, err=True)


def _json_place(report: str | None) -> Path | None:
    """Where the JSON goes; None: stdout, or nowhere.

    Raises:
        UsageError: It is another format, or the place cannot be written to.
    """
    if report is None:
        return None
    name, equals, path = report.partition("=")
    if name != "json" or (equals and not path):
        raise UsageError(f"--report {report}: expected json or json=PATH")
    if not path:
        return None
    if not Path(path).absolute().parent.is_dir():
        raise UsageError(f"--report {report}: there is no folder {Path(path).absolute().parent}; make it first")
    return Path(path)


def _write(score: MutationScore, place: Path | None) -> None:
    text = json.dumps(score.to_json(), indent=2, ensure_ascii=False)
    if place is None:
        click.echo(text)
        return
    try:
        place.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--report json={place}: it cannot be written: {error.strerror}; choose another place"
        ) from None
