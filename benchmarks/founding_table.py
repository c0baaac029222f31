"""The founding table: both built-in kernels over a narrowed block table, 1 to 256 requests.

    python benchmarks/founding_table.py [--backend cuda]

The wrong kernel is right at 1 request and wrong at every other count; the right one is right at all nine.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from kcheck import loader
from kcheck.client import Client
from kcheck.engine.draw import simplest
from kcheck.layout import LayoutKind
from kcheck.plan import Plan
from kcheck.protocol import Judgement

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TARGETS = ("builtin:paged_gather_shape_stride", "builtin:paged_gather")


def founding_table(client: Client) -> dict[str, dict[int, Judgement]]:
    """Judge both targets at every request count, the table narrowed, all else small and contiguous."""
    table: dict[str, dict[int, Judgement]] = {}
    for spec in TARGETS:
        (loaded,) = loader.load(spec)
        client.load(spec)
        first = simplest(loaded.target, Plan(small=True))
        assert first is not None
        slots = first.record.learn_slots(first.case.drawn)
        for count in COUNTS:
            plan = Plan({"num_requests": count}, {"block_table": LayoutKind.NARROWED}, small=True)
            drawn = simplest(loaded.target, plan, slots)
            assert drawn is not None
            assert LayoutKind.NARROWED in drawn.case.views["block_table"].kinds
            assert drawn.case.views["block_table"].layout.shape[0] == count
            table.setdefault(spec, {})[count] = client.judge(spec, drawn.case)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="interpret")
    backend = parser.parse_args().backend
    with tempfile.TemporaryDirectory() as folder, Client(backend, Path(folder) / "log", case_timeout=120) as client:
        table = founding_table(client)
    print(f"{'requests':>8}  {'row stride from shape[-1]':<52}row stride from stride(0)")
    for count in COUNTS:
        cells = []
        for spec in TARGETS:
            judgement = table[spec][count]
            found = [
                f"{f.kind} of {f.argument}, {f.count:,} {'lanes' if f.parameter else 'elements'}"
                for f in judgement.findings
            ]
            cells.append("; ".join(found) or judgement.verdict.value)
        print(f"{count:>8}  {cells[0]:<52}{cells[1]}")


if __name__ == "__main__":
    main()
