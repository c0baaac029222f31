"""What the checks of the CPU backend cost: all of them on, none of them, and Triton's own interpreter without any.

Run it with ``python benchmarks/viewcheck_cost.py``. The three run the kernels of ``interpret_speed.py`` in processes of
their own, in turns, so that a busy machine is fair to all. With ``--peer PYTHON`` that interpreter's triton-viz takes
part: install it in an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import interpret_speed
import numpy as np

ROUNDS = 3
MODES = ("triton", "off", "on")


def unchecked_memory() -> None:
    """Take the checks out of the backend: what is left is the access itself, as the backend makes it."""
    from kcheck.worker.backends.interpret import overflow, scope
    from kcheck.worker.backends.interpret.lanes import active, element_index, gather, partial
    from kcheck.worker.backends.interpret.memory import Memory

    class Unchecked(Memory):
        def load(self, pointers: Any, mask: Any, other: Any, dtype: Any, volatile: bool = False) -> Any:
            argument = self.argument_of(pointers.flat[0])
            index = element_index(argument, pointers, dtype.itemsize)
            return gather(argument, index, partial(mask), other, dtype)

        def store(self, pointers: Any, values: Any, mask: Any) -> None:
            argument = self.argument_of(pointers.flat[0])
            index = element_index(argument, pointers, values.itemsize)
            places, stored = active(partial(mask), index, np.broadcast_to(values, index.shape))
            argument.backing.flat(values.dtype)[places] = stored

    scope.Memory = Unchecked
    overflow.combine = lambda *_: None


def measure(mode: str) -> dict[str, float]:
    """Best microseconds per program of each case, in this process."""
    context: Any = lambda tensors: nullcontext()  # noqa: E731
    if mode != "triton":
        from kcheck.worker.backends.base import Conditions, Region
        from kcheck.worker.backends.interpret import InterpretBackend

        if mode == "off":
            unchecked_memory()
        backend, conditions = InterpretBackend(engine="sequential"), Conditions(poison=0xA5)

        def context(tensors: Any) -> Any:
            written = ("out", "y", "c")
            regions = [Region(name, tensor, name in written, name in written) for name, tensor in tensors.items()]
            return backend.watch(regions, conditions=conditions)

    best = {}
    for name, programs, launch, tensors in interpret_speed.cases():
        times = []
        for _ in range(4):
            start = time.perf_counter()
            with context(tensors):
                launch()
            times.append(time.perf_counter() - start)
        best[name] = min(times) / programs * 1e6
    return best


def in_process(mode: str) -> dict[str, float]:
    """`measure` in a new process."""
    environment = os.environ | ({"TRITON_INTERPRET": "1"} if mode == "triton" else {})
    command = [sys.executable, __file__, "--measure", mode]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", choices=MODES)
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that has triton-viz")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)))
        return
    best: dict[str, dict[str, float]] = {mode: {} for mode in MODES}
    for _ in range(ROUNDS):
        for mode in MODES:
            for name, value in in_process(mode).items():
                best[mode][name] = min(value, best[mode].get(name, value))
    print(f"microseconds per program, best of {ROUNDS} processes")
    print(f"{'kernel':<20}{'triton':>10}{'checks off':>12}{'checks on':>12}{'on / off':>10}{'triton / on':>13}")
    for name in best["on"]:
        theirs, off, on = (best[mode][name] for mode in MODES)
        print(f"{name:<20}{theirs:>10.0f}{off:>12.0f}{on:>12.0f}{on / off:>9.2f}x{theirs / on:>12.1f}x")
    if given.peer:
        peer = Path(__file__).with_name("viewcheck_peer.py")
        subprocess.run([sys.executable, str(peer), given.peer], check=True)


if __name__ == "__main__":
    main()
