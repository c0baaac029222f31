"""What a program costs, by how many run together and by how much they differ.

Run it with ``python benchmarks/batched_cost.py [PLOT]``: two tables, and a plot, which needs matplotlib and is written
to PLOT (an SVG file). Microseconds of CPU time, the best of several launches; the view and race checks are on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from batched_speed import cases, ragged_sums, seconds

COUNTS = [4**power for power in range(7)]  # 1 to 4,096
SEQUENTIAL_UP_TO = 256  # it costs the same for each
ROUNDS = 5
RAGGED = 512  # programs

Costs = dict[str, dict[str, list[float]]]  # by engine and kernel, for each of `COUNTS`


def by_programs() -> Costs:
    """Microseconds per program."""
    costs: Costs = {"batched": {}, "sequential": {}}
    for count in COUNTS:
        for name, launch in cases(count):
            for engine, found in costs.items():
                rounds = ROUNDS if count <= SEQUENTIAL_UP_TO or engine == "batched" else 0
                took = [seconds(launch, engine) for _ in range(rounds)]
                found.setdefault(name, []).append(min(took, default=float("nan")) / count * 1e6)
    return costs


def print_costs(costs: Costs) -> None:
    print("microseconds per program, sequential and batched")
    print(f"{'programs':<10}" + "".join(f"{name:>24}" for name in costs["batched"]))
    for at, count in enumerate(COUNTS):
        pairs = ((costs["sequential"][name][at], found[at]) for name, found in costs["batched"].items())
        print(f"{count:<10}" + "".join(f"{one:>14.0f}{together:>10.1f}" for one, together in pairs))


def print_divergence() -> None:
    random = torch.Generator().manual_seed(0)
    print(f"\nragged sums of {RAGGED} programs, 64 elements a turn: microseconds per turn and program")
    print(f"{'lengths':<26}{'turns':>8}{'sequential':>12}{'batched':>10}")
    for text, lengths in (
        ("all 1,024", torch.full((RAGGED,), 1024)),
        ("960 to 1,024", torch.randint(960, 1025, (RAGGED,), generator=random)),
        ("1 to 2,048", torch.randint(1, 2049, (RAGGED,), generator=random)),
        ("a tenth 8,192, others 64", torch.where(torch.arange(RAGGED) % 10 == 0, 8192, 64)),
        ("one 65,536, others 64", torch.where(torch.arange(RAGGED) == 0, 65536, 64)),
    ):
        launch = ragged_sums(lengths)
        turns = int(((lengths + 63) // 64).sum())
        one, together = (min(seconds(launch, engine) for _ in range(3)) / turns for engine in ("sequential", "batched"))
        print(f"{text:<26}{turns:>8,}{one * 1e6:>12.1f}{together * 1e6:>10.2f}")


def plot(costs: Costs, path: Path) -> None:
    """Draw the cost per program against the number of programs."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kcheck"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name, found in costs["batched"].items():
        (line,) = axes.loglog(COUNTS, found, marker="o", label=name)
        axes.loglog(COUNTS, costs["sequential"][name], linestyle=":", color=line.get_color())
    axes.set_xticks(COUNTS, [f"{count:,}" for count in COUNTS])
    axes.set_xlabel("programs of a launch")
    axes.set_ylabel("microseconds per program")
    axes.set_title("Batched (lines) and one after the other (dots)")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    torch.set_num_threads(1)
    costs = by_programs()
    print_costs(costs)
    print_divergence()
    if len(sys.argv) == 2:
        plot(costs, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
