"""What kcheck adds to a case on a GPU, against a bare loop in the same run.

    python benchmarks/gpu_overhead.py [--cases 200]

The bare loop does the same launches, oracle calls and comparisons on the same ready-made cases: both runs, results
copied, held against each other and against the oracle, in float64 too where kcheck asks for it. "Least" is a loop
that only launches twice, calls the oracle once and compares three times for equality. Compiles are left out: every case
has run before. Hypothesis draws a case while the worker runs the one before, so the parts add up to more than what is
added.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import triton

from kcheck import loader
from kcheck.case import Case, Role
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.loader import LoadedTarget
from kcheck.protocol import Judgement
from kcheck.store import Store
from kcheck.targets.paged_gather import cases
from kcheck.worker.arena import Arena, Placement, dense_values
from kcheck.worker.arguments import arguments
from kcheck.worker.backends.base import Watch
from kcheck.worker.backends.cuda import CudaBackend
from kcheck.worker.call import named_tensors
from kcheck.worker.judge import compared
from kcheck.worker.run import Observation
from kcheck.worker.sharing import prepared
from kcheck.worker.trial import FIRST, SECOND, Trial

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


@dataclass(slots=True)
class Ready:
    """A case in memory, twice, as kcheck's two runs find it."""

    trial: Trial
    placements: tuple[Placement, Placement]

    @staticmethod
    def of(one: LoadedTarget, case: Case, backend: CudaBackend) -> Ready:
        """Place a case; it keeps the memory."""
        case = prepared(one.target, case)
        trial = Trial(one.target, case, frozenset(), dense_values(case, "cuda"), backend, Arena("cuda"))
        placements = tuple(Arena("cuda").place(case, trial.contents, style) for style in (FIRST, SECOND))
        trial.layouts = placements[0].layouts
        return Ready(trial, (placements[0], placements[1]))

    def run(self, which: int) -> Observation:
        """Launch, wait, copy what was written."""
        placement, case = self.placements[which], self.trial.case
        returned = self.trial.target.function(**arguments(case, placement.tensors))
        torch.cuda.synchronize()
        written = [name for name, view in case.views.items() if view.role in (Role.OUTPUT, Role.INOUT)]
        outputs = {n: placement.tensors[n].clone(memory_format=torch.contiguous_format) for n in written}
        outputs |= {name: tensor.clone() for name, tensor in named_tensors(returned)}
        return Observation(placement, Watch(), outputs)


def bare(one: LoadedTarget, ready: list[Case], backend: CudaBackend) -> float:
    """Seconds of the bare loop over ready-made cases, made anew, since a run changes them."""
    made = [Ready.of(one, case, backend) for case in ready]
    torch.cuda.synchronize()
    began = time.perf_counter()
    for each in made:
        judgement = compared(each.trial, each.run(0), each.run(1), [])
        assert not judgement.findings, judgement.findings
    return time.perf_counter() - began


def least(one: LoadedTarget, ready: list[Case]) -> float:
    """Seconds of a loop of launches, oracle calls and plain comparisons."""
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
    heads = f"{'target':<16}{'cases':>7}{'least':>8}{'bare':>8}{'kcheck':>8}{'added':>8}"
    print(f"{heads}   Hypothesis, protocol, arena, checks and oracle", flush=True)
    backend = CudaBackend()
    with tempfile.TemporaryDirectory() as folder, Client("cuda", Path(folder) / "log", case_timeout=120) as client:
        for one in chosen:
            campaign(one, client, examples)  # compiles
            recording, wall = campaign(one, client, examples)
            count = len(recording.cases)
            bare(one, recording.cases, backend)
            plain = statistics.median(bare(one, recording.cases, backend) for _ in range(3))
            fewest = statistics.median(least(one, recording.cases) for _ in range(4))
            parts: dict[str, float] = defaultdict(float)
            for answer in recording.answers:
                for part, seconds in answer.seconds.items():
                    parts[part] += seconds
            checks = parts["total"] - parts["arena"] - parts["target"]
            rows = (wall - recording.seconds, protocol(one, client, recording.cases), parts["arena"], checks)
            shown = ", ".join(f"{1e3 * seconds / count:.2f}" for seconds in rows)
            figures = "".join(f"{1e3 * seconds / count:8.2f}" for seconds in (fewest, plain, wall, wall - plain))
            print(f"{one.target.name:<16}{count:>7}{figures}   {shown}", flush=True)


if __name__ == "__main__":
    main()
