"""What a run is asked to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kcheck.baseline import Known
from kcheck.case import Case
from kcheck.plan import Plan


@dataclass(frozen=True, slots=True)
class Settings:
    """Budgets and pins of a run.

    Attributes:
        max_examples: Random cases per target, those of shrinking not counted.
        max_time: Seconds per target, start-up not counted; a shrink that has begun may take `shrink_time` more.
        total_time: Seconds for all targets, divided over those that have not had their turn; infinite: no limit.
        shrink_time: Seconds to shrink one bug.
        seed: Seed of everything drawn at random.
        plan: Pins for the whole run.
        sweep: Walk through layouts and boundary sizes first.
        case_timeout: Seconds that one case may take.
        known: Target, as the user names it → what the run's baseline lists for it.
        saved: Target, as the user names it → cases to run besides, after the sweep; what they show is not shrunk.
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
