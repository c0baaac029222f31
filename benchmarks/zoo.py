"""The zoo: how soon each planted bug is found, and whether anything is found where nothing is wrong.

    python benchmarks/zoo.py [--backend cuda] [--cases 300] [--right-cases 100] [--seed 1] [--only rope softmax]

Each wrong twin has its sweep, and `--cases` random cases if that does not show the bug; each right twin and control
has its sweep and `--right-cases`. Seconds count from the begin of the target's turn: the worker is up. The tables are
kept as JSON in benchmarks/zoo_BACKEND.json. Exit code 1 if a bug was missed or a control raised an alarm.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.events import CaseDone, CaseVerdict, RunDone, TargetStarted
from kcheck.store import Store
from kcheck.targets.registry import BUILTIN, CONTROLS, PAIRS, Pair

HERE = Path(__file__).resolve().parent


def run(spec: str, client: Client, settings: Settings) -> dict[str, Any]:
    """One target's run: its verdict, its discoveries, and when the first case with a finding came."""
    began, cases, first = time.monotonic(), 0, None
    with tempfile.TemporaryDirectory() as folder:
        for event in Campaign(loader.load(spec), client, Store(Path(folder)).open(), settings, client.backend).run():
            if isinstance(event, TargetStarted):
                began = time.monotonic()
            elif isinstance(event, CaseDone):
                cases += 1
                if first is None and event.verdict is CaseVerdict.FINDINGS:
                    first = {"cases": cases, "seconds": round(time.monotonic() - began, 2)}
    assert isinstance(event, RunDone)
    (result,) = event.results
    return {
        "verdict": result.verdict.value,
        "reasons": result.reasons,
        "cases": cases,
        "seconds": round(time.monotonic() - began, 1),
        "first": first,
        "findings": [
            {"kind": one.finding.kind.value, "argument": one.finding.argument, "culprit": one.culprit}
            for one in result.discoveries
        ],
    }


def wrong_twin(pair: Pair, client: Client, settings: Settings) -> dict[str, Any]:
    """A row of the first table, printed."""
    for examples in (0, settings.max_examples):
        row = run(pair.wrong, client, replace(settings, max_examples=examples))
        proof = next((one for one in row["findings"] if pair.is_proven_by(*one.values())), None)
        if proof is not None:
            break
    row |= {"pair": pair.name, "mechanism": pair.mechanism, "found": proof is not None}
    first = row["first"] or {"cases": "", "seconds": ""}
    shown = (proof["kind"], proof["argument"]) if proof else ("MISSED", "; ".join(row["reasons"]))
    print(
        "|",
        " | ".join(map(str, (pair.name, pair.mechanism, first["cases"], first["seconds"], *shown))),
        "|",
        flush=True,
    )
    return row


def silent(spec: str, client: Client, settings: Settings) -> dict[str, Any]:
    """A row of the second table, printed."""
    row = run(spec, client, settings) | {"target": spec.removeprefix(BUILTIN)}
    alarms = ", ".join(one["kind"] for one in row["findings"]) or "none"
    print(f"| {row['target']} | {row['cases']} | {row['verdict']} | {alarms} |", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="interpret")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--right-cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    settings = Settings(max_examples=options.cases, max_time=600.0, seed=options.seed)
    on_gpu = options.backend != "interpret"
    pairs = [
        pair
        for pair in PAIRS
        if not (pair.needs_cpu if on_gpu else pair.needs_gpu) and (not options.only or pair.name in options.only)
    ]
    rights = [*(pair.right for pair in pairs), *(CONTROLS if not options.only else ())]
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(options.backend, Path(folder) / "log", case_timeout=120) as client,
    ):
        print("| pair | mechanism | cases | seconds | kind | argument |\n| --- | --- | --- | --- | --- | --- |")
        wrong = [wrong_twin(pair, client, settings) for pair in pairs]
        print("\n| right | cases | verdict | alarms |\n| --- | --- | --- | --- |")
        settings = replace(settings, max_examples=options.right_cases)
        right = [silent(spec, client, settings) for spec in rights]
    found = [row for row in wrong if row["found"]]
    alarms = sum(len(row["findings"]) for row in right)
    print(f"\n{len(found)} of {len(wrong)} found; the first case with a finding, median and most:")
    for unit in ("cases", "seconds"):
        times = [row["first"][unit] for row in found]
        print(f"  {unit}: {statistics.median(times):g}, {max(times):g}")
    print(f"{alarms} alarms in {sum(row['cases'] for row in right):,} cases of {len(right)} right targets")
    if not options.only:
        kept = {
            "backend": options.backend,
            "seed": options.seed,
            "cases": options.cases,
            "wrong": wrong,
            "right": right,
        }
        (HERE / f"zoo_{options.backend.partition(':')[0]}.json").write_text(json.dumps(kept, indent=1) + "\n")
    checked = all(row["verdict"] == CaseVerdict.MATCH.value for row in right)
    raise SystemExit(not (len(found) == len(wrong) and alarms == 0 and checked))


if __name__ == "__main__":
    main()
