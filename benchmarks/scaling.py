"""How the cost of a case grows with its size, and which share of a run Hypothesis takes; on the CPU, or with --backend.

    python benchmarks/scaling.py [--backend cuda]

The paged gather from 1 to 256 requests, and a copy of rows from 1 Ki to 16 Mi elements, in a narrowed layout. Each size
is judged three times; the median counts. "Grows" is how many times the cost grew for 4 times the size: 4 is linear,
below is better. The share is of a fuzz of the paged gather: seconds that the worker was busy, of all seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from kcheck import loader
from kcheck.case import Case
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.engine.draw import simplest
from kcheck.engine.learn import learn
from kcheck.layout import LayoutKind
from kcheck.loader import LoadedTarget
from kcheck.plan import Plan
from kcheck.store import Store

KERNELS = Path(__file__).resolve().parent.parent / "tests" / "kernels"
TIMES = 3


def judged(one: LoadedTarget, case: Case, client: Client) -> float:
    """Median seconds of a judgement."""
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        judgement = client.judge(one.spec, case)
        times.append(time.perf_counter() - began)
        assert not judgement.findings, judgement.findings
        assert not judgement.reason, judgement.reason
    return statistics.median(times)


def pinned(one: LoadedTarget, size: str, value: int, argument: str) -> Case:
    """The simplest case of a size with a narrowed argument."""
    plan = Plan({size: value}, {argument: LayoutKind.NARROWED}, small=True)
    learnt = learn(one.target, plan)
    drawn = simplest(one.target, learnt.plan(plan), learnt.slots)
    assert drawn is not None
    return drawn.case


def gathers(client: Client) -> Iterator[tuple[str, int, float]]:
    """The paged gather, by requests."""
    (one,) = loader.load("builtin:paged_gather")
    client.load(one.spec)
    for requests in (1, 4, 16, 64, 256):
        case = pinned(one, "num_requests", requests, "block_table")
        yield "paged gather, requests", requests, judged(one, case, client)


def copies(client: Client) -> Iterator[tuple[str, int, float]]:
    """Rows of 1,024 elements, by elements."""
    (one,) = loader.load(str(KERNELS / "scaled_rows.py"))
    client.load(one.spec)
    for rows in (1, 4, 16, 64, 256, 1024, 4096, 16384):
        yield "rows, elements", rows * 1024, judged(one, pinned(one, "rows", rows, "x"), client)


def share(client: Client) -> tuple[float, int, float]:
    """Seconds of a fuzz, its cases, and seconds that the worker was busy."""
    (one,) = loader.load("builtin:paged_gather")
    busy, cases = 0.0, 0
    judge = client.judge

    def timed(spec: str, case: Case, dense: frozenset[str] = frozenset()) -> object:
        nonlocal busy, cases
        answer = judge(spec, case, dense)
        busy, cases = busy + answer.seconds.get("total", 0.0), cases + 1
        return answer

    client.judge = timed  # type: ignore[method-assign, assignment]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        settings = Settings(max_examples=300, max_time=600.0, seed=1, sweep=False)
        for _ in Campaign([one], client, Store(Path(folder)).open(), settings, client.backend).run():
            pass
    return time.perf_counter() - began, cases, busy


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--backend", default="interpret")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(options.backend, Path(folder) / "log", case_timeout=600) as client,
    ):
        print(f"{'':24} {'size':>10} {'ms a case':>10} {'grows':>6}")
        before = ("", 0.0)
        for name, size, seconds in chain(gathers(client), copies(client)):
            grows = f"{seconds / before[1]:6.2f}" if before[0] == name else ""
            print(f"{name:24} {size:10,} {1e3 * seconds:10.1f} {grows:>6}", flush=True)
            before = (name, seconds)
        seconds, cases, busy = share(client)
        each = 1e3 * seconds / cases
        print(f"fuzz: {cases} cases, {each:.2f} ms a case, the worker busy {busy / seconds:.0%} of the time")


if __name__ == "__main__":
    main()
