"""``kcheck compare``: which of two variants? The same values, and at what price."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.cli import completion, options
from kcheck.errors import UsageError
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.case import Case
    from kcheck.client import Client
    from kcheck.loader import LoadedTarget
    from kcheck.plan import Plan
    from kcheck.protocol import Measurement, Variant


@click.command("compare")
@click.argument("a", shell_complete=completion.targets)
@click.argument("b", shell_complete=completion.targets)
@options.cases(
    max_examples=10,
    examples_help="Random cases beside the sweep's.",
    case_timeout=120.0,
    timeout_help="Seconds that one case may take, all calls that are timed together.",
)
@options.backend
@options.directory
def command(a: str, b: str, cases: options.CaseOptions, backend: str, directory: Path) -> int:
    """Run the targets A and B, two variants with the same arguments, over the same cases, drawn from A.

    Exit code 0 if their values agree, 1 if not, 3 if they could not be compared.
    """
    from kcheck.client import Client
    from kcheck.engine import choose

    name = options.chosen_backend(backend)
    store = Store(directory).open()
    with Client(name, store.log, case_timeout=cases.case_timeout) as client:
        pair = _load(a, b, cases.plan)
        for one in pair:
            client.load(one.spec)
        first = pair[0].target
        drawn = list(choose.boundary_cases(first, cases.plan)) if cases.sweep else []
        drawn += choose.random_cases(first, cases.plan, cases.max_examples, cases.seed)
        chosen = choose.distinct(drawn)
        measured = []
        for done, case in enumerate(chosen):
            if sys.stderr.isatty():
                click.echo(f"\r{done} of {len(chosen)} cases", nl=False, err=True)
            measured.append(client.measure([one.spec for one in pair], case))
        if sys.stderr.isatty():
            click.echo("\r\033[K", nl=False, err=True)
        compiles = [_compiles(client, one.spec, chosen) for one in pair] if name == "cuda" else []
        versions = client.versions
    click.echo(
        f"{name}, torch {versions['torch']}, triton {versions['triton']}, seed {cases.seed}, {len(chosen)} cases"
    )
    for line in _report([one.target.name for one in pair], measured, compiles, name):
        click.echo(line)
    return exit_code(measured)


def _load(a: str, b: str, plan: Plan) -> list[LoadedTarget]:
    """Both targets.

    Raises:
        UsageError: One name stands for several, their arguments differ, or a pin cannot be honoured.
    """
    from kcheck import loader
    from kcheck.engine import check_pins

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
    check_pins([loaded.target for loaded in pair], plan)
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
