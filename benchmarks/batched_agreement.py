"""Random kernels and views in both CPU engines: are memory and findings the same?

Run it with ``python benchmarks/batched_agreement.py [pairs] [--seed FIRST] [--jobs PROCESSES]``. It prints every pair
that differs with what shows it again, and at the end how the pairs ran. Exit status 1 if any differed.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

KERNELS, PAIRS = 20, 5  # of a seed; of a kernel


@cache
def generator() -> ModuleType:
    """The generator of the tests."""
    path = Path(__file__).parents[1] / "tests" / "batched" / "generator" / "__init__.py"
    spec = importlib.util.spec_from_file_location("kcheck_batched_generator", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def of_seed(seed: int) -> tuple[Counter[str], list[str]]:
    """How the pairs of a seed ran, and those that differed."""
    warnings.simplefilter("ignore", UserWarning)
    made, random, ran, differed = generator(), Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        module = made.make_kernels(Path(folder), seed, KERNELS)
        for number in range(KERNELS):
            for turn in range(PAIRS):
                pair = made.Pair.random(random)
                one, other = (pair.run(getattr(module, f"kernel{number}"), e) for e in ("sequential", "batched"))
                if one.bytes != other.bytes or one.findings() != other.findings():
                    differed.append(f"seed {seed} kernel{number} pair {turn}: {_what(one, other)}")
                ran[_how(other)] += 1
    return ran, differed


def _what(one: Any, other: Any) -> str:
    names = [name for name in one.bytes if one.bytes[name] != other.bytes[name]]
    return ", ".join([f"{name} differs" for name in names] + ["findings differ"] * (one.findings() != other.findings()))


def _how(result: Any) -> str:
    watch = result.watch
    if watch.faults or watch.hazards:
        return "sequential, for a finding"
    if result.error:
        return "stopped"
    return next((f"sequential: {reason}" for reason in watch.sequential.values()), "batched")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=int, nargs="?", default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first one; each gives 100 pairs")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + -(-options.pairs // (KERNELS * PAIRS)))
    ran, differed, began = Counter[str](), 0, time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=100) as pool:
        for counts, lines in pool.map(of_seed, seeds):
            ran += counts
            differed += len(lines)
            for line in lines:
                print(line, flush=True)
    print(
        f"{ran.total():,} pairs, {differed} differed, {time.monotonic() - began:.0f} s; seeds {seeds[0]} to {seeds[-1]}"
    )
    for how, count in ran.most_common():
        print(f"{count:8,} {how}")
    return differed > 0


if __name__ == "__main__":
    sys.exit(main())
