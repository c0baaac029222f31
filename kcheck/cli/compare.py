"""``kcheck compare``: which of two variants? The same values, and at what price."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.cli import options
from kcheck.errors import UsageError
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.case import Case
    from kcheck.client import Client
    from kcheck.loader import LoadedTarget
    from kcheck.plan import Plan
    from kcheck.protocol import Measurement, Variant


@click.command("compare")
@click.argument("a")
@click.argument("b")
@click.option(
    "--max-examples", type=click.IntRange(min=0), default=10, show_default=True, help="Random cases beside the sweep's."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of the random cases; drawn and shown if not given."
)
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Pin a dimension or an option; repeatable.")
@click.option("--layout", "layouts", multiple=True, metavar="ARGUMENT=KIND", help="Pin a layout kind; repeatable.")
@click.option("--sweep/--no-sweep", default=True, help="Run the sweep's layouts and boundary sizes.")
@click.option(
    "--case-timeout",
    type=click.FloatRange(min=0.1),
    default=120.0,
    show_default=True,
    help="Seconds that one case may take, all calls that are timed together.",
)
@options.backend
@options.directory
def command(
    a: str,
    b: str,
    max_examples: int,
    seed: int | None,
    sets: tuple[str, ...],
    layouts: tuple[str, ...],
    sweep: bool,
    case_timeout: float,
    backend: str,
    directory: Path,
) -> int:
    """Run the targets A and B, two variants with the same arguments, over the same cases, drawn from A.

    Exit code 0 if their values agree, 1 if not, 3 if they could not be compared.
    """
    from kcheck.client import Client
    from kcheck.engine import choose

    plan = options.read_plan(sets, layouts)
    name = options.chosen_backend(backend)
    run_seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    with Client(name, Store(directory).open().log, case_timeout=case_timeout) as client:
        pair = _load(a, b, plan)
        for one in pair:
            client.load(one.spec)
        first = pair[0].target
        drawn = list(choose.boundary_cases(first, plan)) if sweep else []
        drawn += choose.random_cases(first, plan, max_examples, run_seed)
        cases = choose.distinct(drawn)
        measured = []
        for done, case in enumerate(cases):
            if sys.stderr.isatty():
                click.echo(f"\r{done} of {len(cases)} cases", nl=False, err=True)
            measured.append(client.measure([one.spec for one in pair], case))
        if sys.stderr.isatty():
            click.echo("\r\033[K", nl=False, err=True)
        compiles = [_compiles(client, one.spec, cases) for one in pair] if name == "cuda" else []
        versions = client.versions
    click.echo(f"{name}, torch {versions['torch']}, triton {versions['triton']}, seed {run_seed}, {len(cases)} cases")
    for line in _report([one.target.name for one in pair], measured, compiles, name):
        click.echo(line)
    return exit_code(measured)


def _load(a: str, b: str, plan: Plan) -> list[LoadedTarget]:
    """Both targets.

    Raises:
        UsageError: One name stands for several, or their arguments differ.
    """
    from kcheck import loader
    from kcheck.cli.fuzz import check_layouts

    pair = []
    for name in (a, b):
        loaded = loader.load(name)
        if len(loaded) != 1:
            raise UsageError(f"{name} names {len(loaded)} targets: {', '.join(one.spec for one in loaded)}; choose one")
        pair += loaded
    one, other = (set(target.target.parameters) for target in pair)
    if one != other:
        raise UsageError(
            f"{a} and {b} cannot be compared: only one of them has {', '.join(sorted(one ^ other))}; two variants take "
            "the same arguments"
        )
    check_layouts(plan.layouts, pair)
    return pair


def _compiles(client: Client, spec: str, cases: Sequence[Case]) -> int:
    """Specialisations compiled for all cases, in a worker that has not compiled any for the other variant."""
    client.renew()
    answers = [client.measure([spec], case, timed=False) for case in cases]
    return sum(answer.variants[0].compiles or 0 for answer in answers if answer.variants)


def exit_code(measured: Sequence[Measurement]) -> int:
    """0 if all values agree, 1 if some do not, 3 if some case, or every case, could not be compared."""
    if any(not one.problem and not one.agree for one in measured):
        return 1
    return 3 if any(one.problem for one in measured) or not measured else 0


def _report(
    names: Sequence[str], measured: Sequence[Measurement], compiles: Sequence[int], backend: str
) -> Iterator[str]:
    compared = [one for one in measured if not one.problem]
    if compared:
        yield from _table([("", *names, "ratio"), *_rows(compared, compiles, backend)])
        yield ""
    yield _verdict(compared)
    for difference in list(dict.fromkeys(one.difference for one in compared if one.difference))[:3]:
        yield f"  {difference}"
    problems = [one.problem for one in measured if one.problem]
    for problem in list(dict.fromkeys(problems))[:3]:
        yield f"could not compare {problems.count(problem)} of {len(measured)} cases: {problem}"


def _verdict(compared: Sequence[Measurement]) -> str:
    if not compared:
        return "values: no case could be compared"
    same = sum(one.same_bits for one in compared)
    apart = sum(not one.agree for one in compared)
    if apart:
        return f"values: they differ in {apart} of {len(compared)} cases"
    if same == len(compared):
        return f"values: the same bits in all {len(compared)} cases"
    return f"values: within the tolerance in all {len(compared)} cases, the same bits in {same}"


def _rows(compared: Sequence[Measurement], compiles: Sequence[int], backend: str) -> Iterator[tuple[str, ...]]:
    on_device = backend == "cuda"
    clock = "CUDA events" if on_device else "host clock, on the interpreter"

    def of(read: Callable[[Variant], float]) -> list[list[float]]:
        return [[read(one.variants[i]) for one in compared] for i in range(2)]

    times = of(lambda variant: variant.seconds)
    ratios = [second / first for first, second in zip(*times, strict=True) if first > 0]
    medians = [statistics.median(column) for column in times]
    ratio = f"×{statistics.median(ratios):.2f}" if ratios else ""
    yield (f"time of a call, median ({clock})", *(_duration(seconds) for seconds in medians), ratio)
    launches = [sum(column) for column in of(lambda variant: variant.kernels)]
    what = "kernels and copies, all cases" if on_device else "Triton kernels launched, all cases"
    yield (what, *(f"{int(count):,}" for count in launches), "")
    peaks = of(lambda variant: -1 if variant.nbytes is None else variant.nbytes)
    yield (
        "bytes allocated in a call, most",
        *(f"{int(max(column)):,}" if max(column) >= 0 else "n/a" for column in peaks),
        "",
    )
    yield ("compiles, all cases", *((f"{count:,}" for count in compiles) if compiles else ("n/a", "n/a")), "")


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for head, *cells in rows:
        line = head.ljust(widths[0]) + "".join(
            f"  {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)
        )
        yield line.rstrip()


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:,.2f} ms"
