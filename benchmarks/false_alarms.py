"""False alarms: random cases of targets that are right. There must be none.

    python benchmarks/false_alarms.py [--cases 2000] [--seeds 1 2 3] [--backend cuda] [--zoo]

The paged gather over all layout kinds with at most 8 requests; a correct float32 matmul with K = 1024, an atomic column
sum and a last-block reduction with a tenth of the cases; the zoo's right twins and controls with 10,000 in all
(`--zoo`: these alone).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.events import RunDone, TargetResult
from kcheck.loader import LoadedTarget
from kcheck.store import Store
from kcheck.targets import registry
from kcheck.targets.paged_gather import cases

KERNELS = Path(__file__).resolve().parent.parent / "tests" / "kernels"
REPEATED = 1.4  # Hypothesis draws some cases twice; only distinct ones are counted
ZOO_SHARE = 28  # a 28th of the cases for each
OTHERS = ("controls_matmul.py::matmul", "controls_reduce.py::atomic_column_sum", "controls_reduce.py::last_block_sum")


def general() -> Iterator[tuple[LoadedTarget, int]]:
    """Targets, and the share of the cases that each gets."""
    (gather,) = loader.load("builtin:paged_gather")
    yield LoadedTarget(replace(gather.target, cases=cases(max_requests=8)), gather.spec), 1
    for name in OTHERS:
        (loaded,) = loader.load(str(KERNELS / name))
        yield loaded, 10


def zoo() -> Iterator[tuple[LoadedTarget, int]]:
    """The zoo's targets that are right, but for the paged gathers."""
    for spec in (*(pair.right for pair in registry.PAIRS), *registry.CONTROLS):
        if "paged_gather" not in spec:
            (loaded,) = loader.load(spec)
            yield loaded, ZOO_SHARE


def run(one: LoadedTarget, client: Client, examples: int, seed: int) -> TargetResult:
    """Random cases alone: no sweep, and an empty example database."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(max_examples=examples, max_time=36_000.0, seed=seed, sweep=False)
        events = list(Campaign([one], client, Store(Path(folder)).open(), settings, client.backend).run())
    done = events[-1]
    assert isinstance(done, RunDone)
    return done.results[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--backend", default="interpret")
    parser.add_argument("--zoo", action="store_true")
    options = parser.parse_args()
    alarms = total = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(options.backend, Path(folder) / "log", case_timeout=120) as client,
    ):
        for one, share in chain(() if options.zoo else general(), zoo()):
            for seed in options.seeds:
                began = time.monotonic()
                result = run(one, client, int(options.cases * REPEATED) // share, seed)
                counts = ", ".join(f"{count:,} {verdict.value}" for verdict, count in result.cases.items())
                print(f"{one.target.name:<20} seed {seed}: {counts} in {time.monotonic() - began:.0f} s", flush=True)
                alarms += len(result.discoveries)
                total += sum(result.cases.values())
                for discovery in result.discoveries:
                    print(f"  FALSE ALARM: {discovery.finding.message}")
    print(f"{alarms} false alarms in {total:,} cases")
    raise SystemExit(alarms > 0)


if __name__ == "__main__":
    main()
