"""Cases a second of ``kcheck fuzz`` with several workers, as a ratio to one, side by side in one run.

    python benchmarks/workers.py [--workers 2] [--rounds 3] [--seconds 20] [--target TARGET --set NAME=VALUE]

A control says whether the cores were idle: the steps of plain loops, as many as there are workers, against those of
one. It runs before and after every measurement. Where it falls short the ratio says more of the machine than of kcheck,
and is not claimed. A worker has two processes, Hypothesis's and the kernels', and the second takes most of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

KCHECK = (sys.executable, "-P", "-m", "kcheck", "fuzz")
LOOP = """
import time
end, steps = time.perf_counter() + 1.0, 0
while time.perf_counter() < end:
    steps += 1
print(steps)
"""
# Sizes are pinned: cases of random sizes differ in cost by a factor of a hundred, and each worker draws others.
TARGET = "builtin:paged_gather"
PINS = ("num_requests=16", "max_blocks=4", "block_size=16", "lengths=full")
IDLE = 0.95  # of the cores that the control must get


def steps(processes: int) -> int:
    """Steps of that many loops in one second, added up."""
    running = [subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE) for _ in range(processes)]
    return sum(int(one.communicate()[0]) for one in running)


def control(workers: int) -> float:
    """Cores that as many loops as workers get, counted in those that one gets."""
    return steps(workers) / steps(1)


def speed(target: str, pins: Sequence[str], backend: str, workers: int, seconds: float, seed: int) -> float:
    """Random cases a second; start-up is not counted."""
    options = ["--workers", str(workers), "--backend", backend, "--seed", str(seed), "--quiet", "--no-sweep"]
    options += [word for pin in pins for word in ("--set", pin)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*KCHECK, target, *options, "--max-time", str(seconds), "--max-examples", "1000000", "--report", "json"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if not done.stdout:
        raise SystemExit(done.stderr)
    (result,) = json.loads(done.stdout)["targets"]
    return float(sum(result["cases"].values()) / result["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--target", default=TARGET)
    parser.add_argument("--set", dest="pins", action="append", help="as of kcheck fuzz")
    parser.add_argument("--backend", default="interpret")
    options = parser.parse_args()
    target, pins = options.target, options.pins or (PINS if options.target == TARGET else ())
    if (path := Path(target.partition("::")[0])).exists():
        target = target.replace(str(path), str(path.absolute()), 1)
    cores, ratios, controls = os.cpu_count() or 1, [], [control(options.workers)]
    for seed in range(options.rounds):
        one, several = (
            speed(target, pins, options.backend, workers, options.seconds, seed) for workers in (1, options.workers)
        )
        controls.append(control(options.workers))
        ratios.append(several / one)
        print(
            f"round {seed + 1}: 1 worker {one:6.1f} cases/s, {options.workers} workers {several:6.1f} cases/s, "
            f"ratio {ratios[-1]:.2f}; control {min(controls[-2:]):.2f} of {options.workers} cores"
        )
    ratio, idle = statistics.median(ratios), min(controls)
    print(f"median ratio {ratio:.2f} on {cores} cores; the control got {idle:.2f} of {options.workers} cores at worst")
    if idle < IDLE * min(options.workers, cores):
        print("not claimed: the cores were not idle")


if __name__ == "__main__":
    main()
