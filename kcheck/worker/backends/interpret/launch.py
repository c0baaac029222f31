"""Runs one launch of a kernel: binds its arguments as a GPU launch would, then runs its programs one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np
import torch

from kcheck.worker.backends.base import Launch, ProgramOrder, Unsupported, Watch
from kcheck.worker.backends.batched.engine import BatchedEngine
from kcheck.worker.backends.interpret import binding, failures, frames, hints, libdevice, runtime
from kcheck.worker.backends.interpret.arguments import Argument, Cells, match
from kcheck.worker.backends.interpret.faults import FaultLog
from kcheck.worker.backends.interpret.history import AccessHistory
from kcheck.worker.backends.interpret.memory import Memory
from kcheck.worker.backends.interpret.rewrite import Rewriter
from kcheck.worker.backends.interpret.spinning import SpinGuard
from kcheck.worker.backends.interpret.triton_seams import builder

Grid = tuple[int, int, int]


class Launcher:
    """Runs the launches of one watch.

    Args:
        watch: Where launches are recorded.
        regions: The target's tensor arguments.
        memory: Checked memory.
        faults: Told which launch is running.
        history: Told which launch and which program is running.
        spin: Told which kernel is running.
        rewriter: Prepares kernels.
        order: Order of programs.
        max_programs: Most programs to run of a launch; None for all.
        engine: Runs the launches that it can; None: every program runs by itself.
    """

    def __init__(
        self, watch: Watch, regions: list[Cells], memory: Memory, faults: FaultLog, history: AccessHistory,
        spin: SpinGuard, rewriter: Rewriter, order: ProgramOrder, max_programs: int | None,
        engine: BatchedEngine | None = None,
    ) -> None:  # fmt: skip
        self._watch = watch
        self._regions = regions
        self._memory = memory
        self._faults = faults
        self._history = history
        self._spin = spin
        self._rewriter = rewriter
        self._order = order
        self._max_programs = max_programs
        self._engine = engine

    def run(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> None:
        """Launch `kernel`, a ``JITFunction``."""
        for hook in getattr(kernel, "pre_run_hooks", ()):
            hook(*args, **kwargs)
        values = binding.bind(kernel, args, kwargs)
        extent = _grid(grid, values)
        name = kernel.fn.__name__
        launch = Launch(kernel=name, grid=extent, programs=0, frame=frames.launch_frame())
        self._watch.launches.append(launch)
        if getattr(kernel, "is_gluon", lambda: False)():
            raise Unsupported(f"kernel {name} uses Gluon, which the CPU interpreter cannot run")
        if 0 in extent:
            return
        if self._watch.partial:  # it might read what the programs left out have not written
            self._watch.partial.setdefault(name, f"kernel {name} was not run: only a part of a launch before it ran.")
            return
        tensors: list[Argument] = []

        def attach(tensor: torch.Tensor, parameter: str) -> Argument:
            argument = match(tensor, parameter, len(tensors) + 1, self._regions)
            tensors.append(argument)
            return argument

        self._name_kernel(name)
        programs = self._programs(name, extent)
        # Modes are for the target's calls of torch, not for the interpreter's.
        with failures.stopping(kernel, values), torch._C.DisableTorchFunction():
            self._execute(kernel, values, attach, tensors, launch, programs)

    def _execute(
        self, kernel: Any, values: dict[str, Any], attach: binding.Attach, tensors: list[Argument], launch: Launch,
        programs: _Programs,
    ) -> None:  # fmt: skip
        with np.errstate(all="ignore"):
            builder.set_grid_dim(*launch.grid)
            builder.grid_idx = (0, 0, 0)
            arguments = binding.device_arguments(kernel, values, attach)
            regions = {id(view) for cells in self._regions for view in (cells.view,)}
            self._faults.scratch = [one for one in tensors if id(one.views[0]) not in regions]
            self._faults.launch += 1
            self._memory.begin_launch(tensors)
            self._history.begin_launch(tensors, len(programs))
            hints.begin_launch(arguments)
            if self._engine is not None and self._engine.run(kernel, arguments, tensors, programs.numbers, launch.grid):
                launch.programs += len(programs)
                return
            run_programs(self._rewriter.rewritten(kernel.fn), arguments, programs, launch, self._history, self._spin)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of one device function from another."""
        return self._rewriter.rewritten(function.fn)(*args, **kwargs)

    def _name_kernel(self, name: str) -> None:
        self._faults.kernel = self._spin.kernel = libdevice.current.name = runtime.current.kernel = name

    def _programs(self, name: str, grid: Grid) -> _Programs:
        total = grid[0] * grid[1] * grid[2]
        numbers: Sequence[int] = range(total)
        if self._max_programs is not None and total > self._max_programs:
            numbers = _sample(grid, self._max_programs)
            self._watch.partial.setdefault(
                name,
                f"{len(numbers):,} of {total:,} programs of kernel {name} ran ({len(numbers) / total:.2%}): corners, "
                "and others evenly spread; what the rest would do, and all results, were not checked.",
            )
        if self._order == "reverse":
            numbers = numbers[::-1]
        elif self._order == "shuffled":
            numbers = Random(0).sample(numbers, len(numbers))
        return _Programs(numbers, grid)


class _Programs(Sequence[Grid]):
    """Program ids by their numbers, worked out when asked for: a grid may have millions."""

    def __init__(self, numbers: Sequence[int], grid: Grid) -> None:
        self.numbers, self._grid = numbers, grid

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, position: Any) -> Any:
        return _program(self.numbers[position], self._grid)


def run_programs(
    function: Callable[..., Any], arguments: dict[str, Any], programs: Iterable[Grid], launch: Launch,
    history: AccessHistory, spin: SpinGuard,
) -> None:  # fmt: skip
    """Run a kernel once per program. Stack frames above this one are not the kernel's; `frames` knows it by name."""
    for program in programs:
        builder.grid_idx = program
        history.begin_program(program)
        spin.changed()
        launch.programs += 1
        function(**arguments)


def _grid(grid: Any, values: dict[str, Any]) -> Grid:
    if callable(grid):
        grid = grid(values)
    sizes = [int(size) for size in grid]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid has one to three dimensions, got {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return (x, y, z)


def _program(number: int, grid: Grid) -> Grid:
    """The program of a number: the first axis runs fastest, as on a GPU."""
    rest, x = divmod(number, grid[0])
    z, y = divmod(rest, grid[1])
    return (x, y, z)


def _sample(grid: Grid, count: int) -> list[int]:
    """Numbers of about `count` programs: the corners first, then evenly spread ones; always the same."""
    total = grid[0] * grid[1] * grid[2]
    corners = {
        x + grid[0] * (y + grid[1] * z)
        for x in {0, 1 % grid[0], grid[0] - 1}
        for y in {0, grid[1] - 1}
        for z in {0, grid[2] - 1}
    }
    chosen = set(sorted(corners)[:count])
    position = 0
    stride = int(total * 0.6180339887) | 1  # the golden ratio spreads any number of points evenly
    while len(chosen) < count and position < 4 * total:
        position += 1
        chosen.add(position * stride % total)
    return sorted(chosen)
