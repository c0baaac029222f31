"""Times that a user waits: ``kcheck --help``, a replaced worker, and from ``kcheck fuzz`` to the panel of the finding.

    python benchmarks/startup.py [--repeats 5]

Prints minimum, median and maximum in seconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kcheck.case import Case, Role, Tensor
from kcheck.client import Client
from kcheck.layout import Layout

KCHECK = (sys.executable, "-P", "-m", "kcheck")


def help_time() -> float:
    began = time.perf_counter()
    subprocess.run([*KCHECK, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def panel_time() -> float:
    """From the start of the process until the line with the replay command is out."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        process = subprocess.Popen(
            [*KCHECK, "fuzz", "builtin:paged_gather_shape_stride"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "kcheck replay" in line:
                break
        taken = time.perf_counter() - began
        process.send_signal(signal.SIGINT)
        process.communicate()
    return taken


def replacement_times(repeats: int) -> list[float]:
    """From the loss of a worker (killed from outside) until the next one is ready."""
    times: list[float] = []
    target = (
        "import kcheck, os\nfrom hypothesis import strategies as st\n"
        "@kcheck.target(cases=st.nothing())\ndef dies(x):\n    os._exit(1)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kcheck_dies.py"
        path.write_text(target)
        with Client("interpret", Path(folder) / "log", on_replaced=lambda _, seconds: times.append(seconds)) as client:
            client.load(f"{path}::dies")
            case = Case(x=Tensor("float32", Layout.contiguous((4,)), role=Role.INPUT))
            while len(times) < repeats:
                client.judge(f"{path}::dies", case)
    return times[:repeats]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    help_time()
    rows = {
        "kcheck --help": [help_time() for _ in range(repeats)],
        "a replaced worker": replacement_times(repeats),
        "from kcheck fuzz to the panel": [panel_time() for _ in range(repeats)],
    }
    print(f"{os.cpu_count()} processors, {repeats} repeats; seconds: minimum, median, maximum")
    for name, times in rows.items():
        print(f"{name:<32}{min(times):8.3f}{statistics.median(times):8.3f}{max(times):8.3f}")


if __name__ == "__main__":
    main()
