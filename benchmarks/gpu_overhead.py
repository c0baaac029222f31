"""What kcheck adds to a case on a GPU, against a bare loop in the same run.

    python benchmarks/gpu_overhead.py [--cases 200]

The bare loop does what is unavoidable on the same ready-made cases: two launches, one call of the oracle, three
comparisons. Compiles are left out of both: every case has run before. Hypothesis draws a case while the worker runs the
one before, so the parts add up to more than the wall time: Hypothesis on one side, all the others on the other.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import triton

from kcheck import loader
from kcheck.case import Case
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.loader import LoadedTarget
from kcheck.protocol import Judgement
from kcheck.store import Store
from kcheck.targets.paged_gather import cases
from kcheck.worker.arena import dense_values
from kcheck.worker.arguments import arguments

KERNELS = Path(__file__).resolve().parent.parent / "tests" / "kernels"


class Recording:
    """Wraps a client's `judge`: keeps the cases, the answers and the time spent waiting for them."""

    def __init__(self, client: Client) -> None:
        self.judge_plain = client.judge
        self.cases: list[Case] = []
        self.answers: list[Judgement] = []
        self.seconds = 0.0

    def judge(self, spec: str, case: Case, dense: Any = ()) -> Judgement:
        """As `Client.judge`."""
        began = time.perf_counter()
        answer = self.judge_plain(spec, case, dense)
        self.seconds += time.perf_counter() - began
        self.cases.append(case)
        self.answers.append(answer)
        return answer


def campaign(one: LoadedTarget, client: Client, examples: int) -> tuple[Recording, float]:
    """Random cases of one target with an empty database; wall seconds of the whole campaign."""
    recording = Recording(client)
    client.judge = recording.judge  # type: ignore[method-assign]
    settings = Settings(max_examples=examples, max_time=3600.0, seed=1, sweep=False)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for _ in Campaign([one], client, Store(Path(folder)).open(), settings, "cuda").run():
            pass
        wall = time.perf_counter() - began
    client.judge = recording.judge_plain  # type: ignore[method-assign]
    return recording, wall


def protocol(one: LoadedTarget, client: Client, ready: list[Case]) -> float:
    """Seconds that asking and answering take, over ready-made cases: what the worker does not account for."""
    began = time.perf_counter()
    inside = sum(client.judge(one.spec, case).seconds["total"] for case in ready)
    return time.perf_counter() - began - inside


def bare(one: LoadedTarget, ready: list[Case]) -> float:
    """Seconds of the bare loop over ready-made cases."""
    target = one.target
    made = []
    for case in ready:
        contents = dense_values(case, "cuda")
        made.append([arguments(case, {name: t.clone() for name, t in contents.items()}) for _ in range(3)])
    outputs = list(target.outputs)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for first, second, reference in made:
        target.function(**first)
        target.function(**second)
        assert target.oracle is not None
        expected = target.oracle(**reference)
        for name in outputs:
            torch.equal(first[name], second[name])
            torch.equal(first[name], expected.to(first[name].dtype))
            torch.equal(second[name], expected.to(first[name].dtype))
        torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    examples = parser.parse_args().cases
    (gather,) = loader.load("builtin:paged_gather")
    (matmul,) = loader.load(str(KERNELS / "controls_matmul.py"))
    chosen = [
        LoadedTarget(replace(gather.target, cases=cases(max_requests=8)), gather.spec),
        matmul,
    ]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}; ms a case")
    gc.freeze()  # as `kcheck fuzz` does
    print(f"{'target':<16}{'cases':>7}{'bare':>8}{'kcheck':>8}{'added':>8}   Hypothesis, protocol, arena, checks")
    with tempfile.TemporaryDirectory() as folder, Client("cuda", Path(folder) / "log", case_timeout=120) as client:
        for one in chosen:
            campaign(one, client, examples)  # compiles
            recording, wall = campaign(one, client, examples)
            count = len(recording.cases)
            bare(one, recording.cases)
            plain = statistics.median(bare(one, recording.cases) for _ in range(3))
            parts: dict[str, float] = defaultdict(float)
            for answer in recording.answers:
                for part, seconds in answer.seconds.items():
                    parts[part] += seconds
            checks = parts["total"] - parts["arena"] - parts["target"]
            rows = (wall - recording.seconds, protocol(one, client, recording.cases), parts["arena"], checks)
            shown = ", ".join(f"{1e3 * seconds / count:.2f}" for seconds in rows)
            figures = "".join(f"{1e3 * seconds / count:8.2f}" for seconds in (plain, wall, wall - plain))
            print(f"{one.target.name:<16}{count:>7}{figures}   {shown}", flush=True)


if __name__ == "__main__":
    main()
