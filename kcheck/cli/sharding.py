"""``--workers``, ``--shard`` and ``--ray``: how many processes share a run, and which part of it is run here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from kcheck.cli.options import Decorator, group
from kcheck.cli.search import Run, Search, started
from kcheck.errors import UsageError
from kcheck.machine import visible_gpus
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.events import Event
    from kcheck.sharded.message import Runner


@dataclass(frozen=True, slots=True)
class SharingOptions:
    """Who shares the work.

    Attributes:
        workers: Processes here, or on the Ray cluster; None: one per GPU, or one.
        shard: ``I/N`` or ``auto``; None: the whole run.
        ray: Address of a Ray cluster, ``auto`` for the one that is running; None: none.
    """

    workers: int | None
    shard: str | None
    ray: str | None


ALONE = SharingOptions(workers=1, shard=None, ray=None)
# The command gets `SharingOptions` as ``sharing``.
options: Decorator = group(
    "sharing",
    SharingOptions,
    workers=click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Processes that share the run; one per GPU, or one, if not given.",
    ),
    shard=click.option(
        "--shard",
        metavar="I/N",
        help="Run the I-th of N parts; auto: as Slurm says. `kcheck merge` joins their json reports.",
    ),
    ray=click.option(
        "--ray",
        metavar="[ADDRESS]",
        is_flag=False,
        flag_value="auto",
        help="Have a Ray cluster run the workers: this machine's if no address is given. Put it behind TARGETS.",
    ),
)


def placed(search: Search, sharing: SharingOptions) -> Search:
    """The search, told which shard it is.

    Raises:
        UsageError: There is no such shard, or the shards would not have a common seed.
    """
    from kcheck.shard import AUTO, read_shard

    if sharing.shard is None:
        return search
    shard = read_shard(sharing.shard, os.environ)
    cases = search.cases
    job = os.environ.get("SLURM_JOB_ID", "")
    if cases.is_seed_drawn and sharing.shard == AUTO and job.isdecimal():
        cases = replace(cases, seed=int(job) % 2**32, is_seed_drawn=False)
    if cases.is_seed_drawn and shard.of > 1:
        raise UsageError(f"--shard {shard} needs the seed that all shards share; give each of them the same --seed")
    return replace(search, shard=shard, cases=cases)


@contextmanager
def opened(search: Search, sharing: SharingOptions, *, with_cases: bool) -> Iterator[Run]:
    """The run, in this process if one is enough; its workers end with the context.

    Args:
        search: What to do.
        sharing: Who shares it.
        with_cases: Whether the events of cases must have the cases.

    Raises:
        KcheckError: The run cannot begin.
    """
    gpus = visible_gpus() if search.backend == "cuda" else ()
    workers = sharing.workers or max(1, len(gpus))
    if sharing.ray is not None:
        from kcheck.sharded.ray_cluster import RayCluster

        cluster = RayCluster(sharing.ray, on_gpu=search.backend == "cuda")
        yield _shared(search, cluster, sharing.workers or cluster.places, with_cases=with_cases)
    elif workers > 1:
        from kcheck.sharded.processes import Processes

        yield _shared(search, Processes(gpus), workers, with_cases=with_cases)
    else:
        with started(search) as run:
            yield run


def _shared(search: Search, runner: Runner, workers: int, *, with_cases: bool) -> Run:
    from kcheck.shard import WHOLE, split
    from kcheck.sharded.run import ShardedRun

    shards = split(search.shard or WHOLE, workers)
    started_before: set[int] = set()

    def task(number: int, finished: Sequence[str]) -> Search:
        again = number in started_before
        started_before.add(number)
        shard = shards[number]
        return replace(search, shard=shard, finished=tuple(finished), with_cases=with_cases, is_restart=again)

    run = ShardedRun(runner, workers, task, search.shard)
    return Run(_saving(run.run(), Store(search.directory)), run.interrupt)


def _saving(events: Iterable[Event], store: Store) -> Iterator[Event]:
    """The events; of each bug the simplest case of all workers is what ``kcheck replay`` finds."""
    from kcheck.events import Notice, TargetDone
    from kcheck.weight import weight

    for event in events:
        if isinstance(event, TargetDone):
            for discovery in event.result.discoveries:
                saved = store.saved(discovery)  # a worker left it there if it is simpler and still shows the bug
                if discovery.seen and (saved is None or weight(discovery.case) < weight(saved.case)):
                    try:
                        store.save(discovery)
                    except UsageError as error:
                        yield Notice(f"finding {discovery.fingerprint} could not be saved: {error}")
        yield event
