"""Random kernels and views in both CPU engines: are memory and findings the same?

Run it with ``python benchmarks/batched_agreement.py [pairs] [first seed]``. It prints every pair that differs with
what shows it again, and at the end how the pairs ran. Exit status 1 if any differed.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

KERNELS, PAIRS = 20, 5  # of a module; of a kernel


def generator() -> ModuleType:
    """The generator of the tests."""
    path = Path(__file__).parents[1] / "tests" / "batched" / "random_kernels.py"
    spec = importlib.util.spec_from_file_location("kcheck_random_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    wanted, seed = (int(text) for text in (*sys.argv[1:], *("2000", "0")[len(sys.argv) - 1 :]))
    warnings.simplefilter("ignore", UserWarning)
    made, ran, differed, began = generator(), Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while sum(ran.values()) < wanted:
            module, random = made.make_kernels(Path(folder), seed, KERNELS), Random(seed)
            for number in range(KERNELS):
                for turn in range(PAIRS):
                    pair = made.Pair.random(random)
                    one, other = (pair.run(getattr(module, f"kernel{number}"), e) for e in ("sequential", "batched"))
                    if one.bytes != other.bytes or one.findings() != other.findings():
                        differed += 1
                        print(f"seed {seed} kernel{number} pair {turn}: {_what(one, other)}", flush=True)
                    ran[_how(other)] += 1
            seed += 1
    pairs = sum(ran.values())
    print(f"{pairs:,} pairs, {differed} differed, {time.monotonic() - began:.0f} s; seeds up to {seed - 1}")
    for how, count in ran.most_common():
        print(f"{count:8,} {how}")
    return differed > 0


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


if __name__ == "__main__":
    sys.exit(main())
