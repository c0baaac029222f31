"""What a run is asked to do."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from kcheck.baseline import Known
from kcheck.case import Case
from kcheck.events import Discovery, Shard, TargetResult
from kcheck.plan import Plan
from kcheck.shard import WHOLE, random_seed


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a target's turn is.

    Attributes:
        result: What it saw, as if it had ended there.
        seen: Bugs that were seen and have not been shrunk yet.
        swept: Cases of the sweep that ran, the one in which a bug is being shrunk not counted.
        drawn: Random cases that were drawn.
    """

    result: TargetResult
    seen: tuple[Discovery, ...] = ()
    swept: int = 0
    drawn: int = 0


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier run did, that this one takes up.

    Attributes:
        results: Of targets that it was done with.
        progress: Of the target whose turn it was.
        seconds: That it took.
    """

    results: tuple[TargetResult, ...] = ()
    progress: Progress | None = None
    seconds: float = 0.0

    def result_of(self, title: str) -> TargetResult | None:
        """The result of a target that it was done with."""
        return next((result for result in self.results if result.name == title), None)

    def progress_of(self, title: str) -> Progress | None:
        """How far the turn of a target was."""
        return self.progress if self.progress is not None and self.progress.result.name == title else None


@dataclass(frozen=True, slots=True)
class Settings:
    """Budgets and pins of a run.

    Attributes:
        max_examples: Random cases per target, in this shard; those of shrinking not counted.
        max_time: Seconds per target, start-up not counted; a shrink that has begun may take `shrink_time` more.
        total_time: Seconds for all targets, divided over those that have not had their turn; infinite: no limit.
        shrink_time: Seconds to shrink one bug.
        seed: Seed of the run, the same in all shards.
        plan: Pins for the whole run.
        sweep: Walk through layouts and boundary sizes first.
        case_timeout: Seconds that one case may take.
        known: Target, as the user names it → what the run's baseline lists for it.
        saved: Target, as the user names it → cases to run besides, after the sweep; what they show is not shrunk.
        earlier: What an earlier run did, and this one need not do.
        shard: Which part of the run this is; None: it has no parts.
        began: When the run began, in seconds since the epoch, the same in all shards.
        identity: What all shards have in common, in words by name, for reports.
    """

    max_examples: int = 500
    max_time: float = 60.0
    total_time: float = math.inf
    shrink_time: float = 30.0
    seed: int = 0
    plan: Plan = field(default_factory=Plan)
    sweep: bool = True
    case_timeout: float = 20.0
    known: Mapping[str, tuple[Known, ...]] = field(default_factory=dict)
    saved: Mapping[str, tuple[Case, ...]] = field(default_factory=dict)
    earlier: Earlier = Earlier()
    shard: Shard | None = None
    began: float = field(default_factory=time.time)
    identity: Mapping[str, str] = field(default_factory=dict)

    @property
    def part(self) -> Shard:
        """The shard; the whole is one of one."""
        return self.shard or WHOLE

    @property
    def random_seed(self) -> int:
        """Seed of the random cases, in each shard another one."""
        return random_seed(self.part, self.seed)
