"""A long campaign: memory of its processes, what lies on disk, and whether it goes on after ``kill -9``.

Two parts. ``engine`` runs the engine alone, at full speed, against a stand-in for the workers. ``run`` runs ``kcheck
fuzz`` on a kernel that prints in every case, kills it again and again, and has it go on with ``--resume``.

    python benchmarks/campaign_soak.py [--cases N] [--seconds N] [--lives N]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

MIB = 1 << 20
TARGET = """
import kcheck
import torch
import triton
import triton.language as tl
from hypothesis import strategies as st
from kcheck import strategies as ks


@triton.jit
def scale_kernel(out, x, rows, columns, x_row, x_column, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * x_row + column * x_column, mask=column < columns)
    tl.store(out + row * columns + column, value * 2, mask=column < columns)


@st.composite
def cases(draw):
    rows, columns = draw(ks.dims("rows", max_value=4096)), draw(ks.dims("columns", max_value=32))
    return kcheck.Case(x=draw(ks.tensors((min(rows, 6), columns), "float32")), rows=rows)


@kcheck.target(cases=cases(), oracle=lambda x, rows: x * 2, kernels=[scale_kernel])
def scale(x, rows):
    print("x" * 2000)
    if rows % 50 == 7:
        raise ValueError(f"{rows} rows are not supported, {x.stride()}")
    out = torch.empty(x.shape, device=x.device)
    scale_kernel[(x.shape[0],)](out, x, *x.shape, *x.stride(), BLOCK=32)
    return out
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=60_000, help="of the engine alone; 0: leave it out")
    parser.add_argument("--seconds", type=float, default=240.0, help="of the real run; 0: leave it out")
    parser.add_argument("--lives", type=int, default=4, help="of the real run, each ended by kill -9 but the last")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("kcheck_soak.py").write_text(TARGET)
        if given.cases:
            soak_engine(given.cases)
        if given.seconds:
            soak_run(given.seconds, given.lives)


def soak_engine(count: int) -> None:
    """RSS of the supervisor over that many random cases."""
    from kcheck import loader
    from kcheck.client import Client
    from kcheck.engine import Campaign, Settings
    from kcheck.events import CaseDone, CaseVerdict
    from kcheck.protocol import Judgement
    from kcheck.store import Store

    class StandIn:
        case_timeout, backend, on_replaced = 20.0, "interpret", None
        versions: dict[str, str] = {}  # noqa: RUF012

        def judge(self, spec: str, case: Any, dense: Any = ()) -> Judgement:
            if case.args["rows"] % 50 == 7:
                return Judgement(CaseVerdict.REJECTED, f"{case.args['rows']} rows, {case.views['x'].layout.strides}")
            return Judgement(CaseVerdict.MATCH, launches={"scale_kernel": 1}, constant=None)

        def load(self, spec: str) -> None: ...

        def begin(self, spec: str, case: Any) -> None: ...

        def interrupt(self) -> None: ...

    selected = loader.select(("kcheck_soak.py",))
    settings = Settings(max_examples=count, max_time=1e9, seed=1)
    store = Store(Path("engine")).open()
    campaign = Campaign(selected, cast(Client, StandIn()), store, settings, "interpret")
    print("engine alone\n\n| cases | RSS MiB |\n| --- | --- |")
    cases, points, began = 0, [], time.monotonic()
    for event in campaign.run():
        cases += isinstance(event, CaseDone)
        if isinstance(event, CaseDone) and cases % 1000 == 0:
            points.append((float(cases), rss(os.getpid())))
            if cases % max(1000, count // 12 // 1000 * 1000) == 0:
                print(f"| {cases:,} | {points[-1][1]:.0f} |", flush=True)
    half = points[len(points) // 2 :]
    print(
        f"\n{cases:,} cases in {time.monotonic() - began:.0f} s; slope of the second half {1e5 * slope(half):+.1f} MiB "
        f"in 100,000 cases, between {min(m for _, m in half):.0f} and {max(m for _, m in half):.0f} MiB\n"
    )


def soak_run(seconds: float, lives: int) -> None:
    """Memory and disk of a real run, killed and taken up again."""
    print("kcheck fuzz, killed and resumed\n")
    print("| s | life | random cases | supervisor MiB | zygote and worker MiB | disk MiB | worker.log MiB | files |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    points, drawn = [], 0
    began = time.monotonic()
    for life in range(1, lives + 1):
        process = start()
        end = began + seconds * life / lives
        while time.monotonic() < end:
            time.sleep(min(10.0, max(0.0, end - time.monotonic())))
            if process.poll() is not None:
                sys.exit(f"kcheck ended with {process.returncode}: {Path('out.txt').read_text()[-2000:]}")
            now = drawn_so_far()
            if now < drawn:
                sys.exit(f"the run went back: {now} random cases after {drawn}")
            drawn = now
            children = sum(rss(pid) for pid in descendants(process.pid))
            size, files = disk(Path(".kcheck"))
            log = sum(path.stat().st_size for path in Path(".kcheck").glob("worker*.log")) / MIB
            points.append((time.monotonic() - began, rss(process.pid)))
            print(
                f"| {points[-1][0]:.0f} | {life} | {drawn:,} | {points[-1][1]:.0f} | {children:.0f} | {size:.1f} | "
                f"{log:.1f} | {files} |",
                flush=True,
            )
        below = descendants(process.pid)
        process.send_signal(signal.SIGKILL if life < lives else signal.SIGINT)
        process.wait()
        time.sleep(3.0)
        left = [pid for pid in below if Path(f"/proc/{pid}").exists()]
        if left:
            sys.exit(f"processes that outlive a killed run: {left}")
    cores = [path for path in Path().rglob("core*") if path.is_file()]
    last = json.loads(Path("report.json").read_text())
    print(f"\nat the end: {last['targets'][0]['cases']}, {len(cores)} core files; the last run's first words: ", end="")
    print(Path("out.txt").read_text().splitlines()[0])


def start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kcheck", "fuzz", "kcheck_soak.py", "--resume", "--max-time", "1e9"]
    command += ["--max-examples", "100000000", "--report", "json=report.json"]
    with open("out.txt", "wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)


def drawn_so_far() -> int:
    """Random cases, by the file that ``--resume`` reads."""
    for path in Path(".kcheck/resume").glob("*.json"):
        progress = json.loads(path.read_text())["progress"]
        return int(progress["drawn"]) if progress else 0
    return 0


def rss(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    except OSError:
        return 0.0


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that they started."""
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*children, *(below for child in children for below in descendants(child))]


def disk(folder: Path) -> tuple[float, int]:
    """MiB and files of a folder."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(sizes) / MIB, len(sizes)


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line through points, by least squares."""
    x0 = sum(x for x, _ in points) / len(points)
    y0 = sum(y for _, y in points) / len(points)
    spread = sum((x - x0) ** 2 for x, _ in points)
    return sum((x - x0) * (y - y0) for x, y in points) / spread if spread else 0.0


if __name__ == "__main__":
    main()
