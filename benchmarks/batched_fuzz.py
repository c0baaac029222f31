"""Cases per second of ``kcheck fuzz builtin:paged_gather``, batched and one after the other, by the number of requests.

Run it with ``python benchmarks/batched_fuzz.py``. The commands, which it prints, alternate, so that a busy machine is
fair to both; the better of two counts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile

REQUESTS = (64, 256)
ENGINES = {"auto": 150, "sequential": 50}  # and cases of each run
ROUNDS = 2


def cases_per_second(requests: int, engine: str, folder: str) -> float:
    options = ["--set", f"num_requests={requests}", "--no-sweep", "--seed", "1"]
    command = ["fuzz", "builtin:paged_gather", *options, "--max-examples", str(ENGINES[engine]), "--engine", engine]
    run = subprocess.run(
        [sys.executable, "-m", "kcheck", *command], cwd=folder, capture_output=True, text=True, check=True
    )
    found = re.search(r"(\d+) cases \(.*\) in ([\d.]+) s", run.stdout)
    assert found is not None, run.stdout
    return int(found[1]) / float(found[2])


def main() -> None:
    print("kcheck fuzz builtin:paged_gather --set num_requests=N --no-sweep --seed 1 --engine ENGINE: cases/s")
    print(f"{'requests':<10}{'sequential':>12}{'batched':>10}{'ratio':>8}")
    for requests in REQUESTS:
        best = dict.fromkeys(ENGINES, 0.0)
        for _ in range(ROUNDS):
            for engine in ENGINES:
                with tempfile.TemporaryDirectory() as folder:
                    best[engine] = max(best[engine], cases_per_second(requests, engine, folder))
        together, one = best["auto"], best["sequential"]
        print(f"{requests:<10}{one:>12.2f}{together:>10.2f}{together / one:>7.1f}x", flush=True)


if __name__ == "__main__":
    main()
