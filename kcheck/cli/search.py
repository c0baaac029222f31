"""What ``kcheck fuzz`` has to do, so that a process of its own can be told, and the engine that does it."""

from __future__ import annotations

import gc
import hashlib
import itertools
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from kcheck.cli import options
from kcheck.cli.known import known_findings
from kcheck.cli.verdict import allowing, check_skips
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.case import Case
    from kcheck.events import Event, Shard
    from kcheck.loader import LoadedTarget


@dataclass(frozen=True, slots=True)
class Search:
    """A run of targets over generated cases.

    Attributes:
        targets: As the user names them.
        cases: Which cases.
        run: Budgets, and what is known and allowed.
        backend: With its options.
        directory: Where findings are kept.
        cuda_graph: Also replay every case as a CUDA graph.
        with_saved: Also run the cases of saved findings.
        shard: Which part of the run this is, None if it is all of it.
        finished: Targets, as reports call them, that need not run again.
        with_cases: Whether the events of cases must have the cases.
        began: When the run began, in seconds since the epoch.
        resume: Go on where an earlier run of the same was killed.
        is_restart: It does, unasked, what a process that was lost began.
        database: Folder of the example database; None: in `directory`.
    """

    targets: tuple[str, ...]
    cases: options.CaseOptions
    run: options.RunOptions
    backend: str
    directory: Path
    cuda_graph: bool = False
    with_saved: bool = False
    shard: Shard | None = None
    finished: tuple[str, ...] = ()
    with_cases: bool = True
    began: float = field(default_factory=time.time)
    resume: bool = False
    is_restart: bool = False
    database: Path | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A run that can go on.

    Attributes:
        events: Until `RunDone`; the run goes on while they are taken.
        interrupt: Ends it soon.
    """

    events: Iterable[Event]
    interrupt: Callable[[], None]


@contextmanager
def started(search: Search) -> Iterator[Run]:
    """The run in this process, ready to begin; its workers end with the context.

    Raises:
        KcheckError: A target cannot be loaded, or an option does not fit the targets.
    """
    from kcheck.client import Client

    store = Store(search.directory, search.database).open()
    store.keep_left()
    timeout = search.cases.case_timeout
    with Client(search.backend, store.log, case_timeout=timeout, cuda_graph=search.cuda_graph) as client:
        # The worker process imports torch while this one imports the targets.
        from kcheck import loader, resume
        from kcheck.engine import Campaign, Settings, check_pins
        from kcheck.engine.settings import Earlier
        from kcheck.events import Notice
        from kcheck.shard import WHOLE, share

        selected = loader.select(search.targets)
        gc.freeze()  # torch has made a million objects: a collection need not look through them every second
        check_pins([one.target for one in selected], search.cases.plan)
        check_skips(search.run.allow_skip, selected)
        settings = Settings(
            max_examples=share(search.shard or WHOLE, search.cases.max_examples),
            max_time=search.run.max_time,
            total_time=search.run.total_time,
            seed=search.cases.seed,
            plan=search.cases.plan,
            sweep=search.cases.sweep,
            case_timeout=timeout,
            known=known_findings(search.run.baseline, selected, [search.backend]),
            saved={one.spec: _saved(store, one) for one in selected} if search.with_saved else {},
            shard=search.shard,
            began=search.began,
        )
        program = _program(search, selected)
        settings = replace(settings, identity=program | {"random cases": str(search.cases.max_examples)})
        left = [one for one in selected if one.title not in search.finished]
        identity = _identity(search, program)
        journal = resume.Journal(store, identity, search.cases.seed, search.shard)
        notices: list[Event] = []
        if search.resume or search.is_restart:
            earlier, sentence = resume.take_up(store, identity, search.shard)
            settings = replace(settings, earlier=earlier)
            if search.resume or earlier != Earlier():
                notices.append(Notice(sentence))
        campaign = Campaign(left, client, store, settings, search.backend, journal)
        events = itertools.chain(notices, campaign.run())
        yield Run(allowing(events, search.run.allow_skip, selected), campaign.interrupt)


def _program(search: Search, selected: Sequence[LoadedTarget]) -> dict[str, str]:
    """What all shards of a run have in common, wherever they run."""
    from kcheck import config, resume

    baseline, plan = search.run.baseline, search.cases.plan
    folders = (config.project_folder(), Path.cwd())
    source = [resume.sources(one.target.file, *folders) for one in selected]
    return {
        "targets": " ".join(one.spec for one in selected),
        "pins": " ".join(f"{name}={pin}" for name, pin in (*plan.pins.items(), *plan.layouts.items())) or "none",
        "sweep": str(search.cases.sweep),
        "CUDA graphs": str(search.cuda_graph),
        "saved cases": str(search.with_saved),
        "baseline": "none" if baseline is None else hashlib.sha256(baseline.read_bytes()).hexdigest()[:16],
        "source": hashlib.sha256(" ".join(source).encode()).hexdigest()[:16],
    }


def _identity(search: Search, program: Mapping[str, str]) -> dict[str, str]:
    """What makes a run the one that can go on where another one was; budgets and reports may change."""
    from kcheck import resume

    return {
        **program,
        "targets": " ".join(search.targets),
        "backend": search.backend,
        "seed": str(search.cases.seed),
        "shard": str(search.shard or ""),
        **resume.versions(),
    }


def _saved(store: Store, one: LoadedTarget) -> tuple[Case, ...]:
    from kcheck.engine import choose

    cases, _ = choose.saved_cases(store, one.spec, one.target)
    return choose.distinct(cases)


@contextmanager
def interruptible(run: Run) -> Iterator[None]:
    """The first Ctrl-C ends the run in order, with its reports; the second one ends it at once.

    SIGTERM is the Ctrl-C of a CI job whose time is up.
    """

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        run.interrupt()

    before = {number: signal.signal(number, on_interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
