"""The batched engine beside triton-viz's sanitizer, on kernels whose addresses are affine and on others.

Run it with ``python benchmarks/batched_peer.py PYTHON``, where PYTHON is an interpreter that has triton-viz beside
torch and Triton. Both check every access of 1,024 programs, all of them right; kcheck also looks for races and computes
the outputs. Each kernel runs in a process of its own for each tool, which are imported before the clock starts: the
first launch, and the best of those after it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import batched_speed
import torch
import triton
import triton.language as tl

PROGRAMS = 1024
LAUNCHES = 4
LIMIT_S = 120
ROUNDS = 2


@triton.jit
def chase(starts, following, out, turns):
    """Each program follows indices through memory."""
    i = tl.program_id(0)
    at = tl.load(starts + i)
    for _ in range(0, turns):
        at = tl.load(following + at)
    tl.store(out + i, at)


def cases() -> Iterator[tuple[str, str, batched_speed.Launch]]:
    """Name, what its addresses are, launch and tensors."""
    for name, launch in batched_speed.cases(PROGRAMS):
        yield name, "data-dependent" if "gather" in name else "affine", launch
    lengths = torch.randint(1, 129, (PROGRAMS,), generator=torch.Generator().manual_seed(0))
    yield "ragged sums", "data-dependent", batched_speed.ragged_sums(lengths)
    starts, following = torch.randperm(PROGRAMS).int(), torch.randperm(PROGRAMS).int()
    out = torch.zeros(PROGRAMS, dtype=torch.int32)
    yield (
        "chase, 8 steps",
        "data-dependent",
        (
            lambda: chase[(PROGRAMS,)](starts, following, out, 8),
            {"starts": starts, "following": following, "out": out},
        ),
    )


def ours(launch: batched_speed.Launch) -> Callable[[], float]:
    """One launch with kcheck; gives its seconds."""
    batched_speed.import_kcheck()
    return lambda: batched_speed.seconds(launch, "batched")


def theirs(launch: batched_speed.Launch) -> Callable[[], float]:
    """One launch with triton-viz; gives its seconds."""
    import triton_viz

    for module in (batched_speed, sys.modules[__name__]):
        for name, value in list(vars(module).items()):
            if isinstance(value, triton.JITFunction):
                setattr(module, name, triton_viz.trace("sanitizer")(value))

    def timed() -> float:
        began = time.process_time()
        launch[0]()
        return time.process_time() - began

    return timed


def child(tool: str, wanted: str) -> None:
    torch.set_num_threads(1)
    launch = next(launch for name, _, launch in cases() if name == wanted)
    timed = {"ours": ours, "theirs": theirs}[tool](launch)
    times = [timed() for _ in range(LAUNCHES)]
    print(json.dumps([times[0], min(times[1:])]))


def asked(python: str, tool: str, name: str) -> tuple[float, float] | str:
    """Milliseconds of the first launch, and of a later one; what went wrong instead."""
    best = float("inf"), float("inf")
    for _ in range(ROUNDS):
        try:
            run = subprocess.run([python, __file__, tool, name], capture_output=True, text=True, timeout=LIMIT_S)
            first, later = json.loads(run.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            return f"> {LIMIT_S} s"
        except (IndexError, ValueError):
            return f"exit code {run.returncode}: {run.stderr.strip().splitlines()[-1:]}"
        best = min(best[0], first * 1e3), min(best[1], later * 1e3)
    return best


def main() -> None:
    if len(sys.argv) == 3:
        child(sys.argv[1], sys.argv[2])
        return
    print(f"milliseconds of CPU time for {PROGRAMS:,} programs: first launch, later launch; best of {ROUNDS} processes")
    print(f"{'kernel':<20}{'addresses':<16}{'kcheck':>18}{'triton-viz':>22}")
    for name, addresses, _ in cases():
        line = f"{name:<20}{addresses:<16}"
        for tool, python, width in (("ours", sys.executable, 18), ("theirs", sys.argv[1], 22)):
            found = asked(python, tool, name)
            line += f"{found if isinstance(found, str) else f'{found[0]:.1f}, {found[1]:.1f}':>{width}}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
