"""``kcheck merge``: the reports of the shards of a run, as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.cli import display, options
from kcheck.cli.known import check_writable, write_baseline
from kcheck.cli.verdict import allowed_result, check_names, exit_code

if TYPE_CHECKING:
    from kcheck.events import RunDone
    from kcheck.reports import Reports
    from kcheck.reports.record import RunRecord


@click.command("merge")
@click.argument("paths", nargs=-1, required=True, metavar="REPORT...", type=click.Path(path_type=Path))
@options.judging
@display.console
def command(paths: tuple[Path, ...], judging: options.JudgingOptions, console: display.ConsoleOptions) -> int:
    """Join the json reports of the shards of a run, and tell them as one run.

    REPORT is what `kcheck fuzz --shard I/N --report json=FILE` wrote. A shard that is missing counts as could not
    check. A single report of a whole run is told again, in other formats.
    """
    from kcheck import baseline, merge
    from kcheck.events import RunDone

    check_writable(judging.write_baseline)
    entries = () if judging.baseline is None else baseline.read(judging.baseline)
    record = merge.join_reports(merge.read_parts(paths))
    record = _allowing(merge.with_known(record, entries), judging.allow_skip)
    done = RunDone(record.outcomes(), record.interrupted, record.seconds)
    with display.open_reports(judging, console) as told:
        _tell(told, record, done)
    if judging.write_baseline is not None:
        click.echo(f"kcheck: {write_baseline(judging.write_baseline, done, record.backend)}", err=True)
    return exit_code(replace(done, interrupted=False), judging.fail_on)  # what a shard left out is among its reasons


def _allowing(record: RunRecord, names: tuple[str, ...]) -> RunRecord:
    """The report with the results marked that may be skipped. That a shard is missing may not."""
    known = {result.name: {result.name, *(d.target for d in result.discoveries)} for result in record.results}
    check_names(names, {name for all_names in known.values() for name in all_names})
    if record.joined:
        return record
    results = [allowed_result(result, known[result.name], names) for result in record.results]
    return replace(record, results=tuple(results))


def _tell(told: Reports, record: RunRecord, done: RunDone) -> None:
    from kcheck.events import RunStarted, TargetDone, TargetStarted

    told.handle(
        RunStarted(
            record.targets,
            record.backend,
            record.seed,
            record.versions,
            record.shard,
            record.joined,
            identity=record.identity,
        )
    )
    for result in done.results:
        told.handle(TargetStarted(result.name))
        told.handle(TargetDone(result))
    told.handle(done)
