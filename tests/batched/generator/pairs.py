"""Random arguments of a random kernel, and its launch in one engine or the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from kcheck.worker.backends.base import Conditions, KernelStopped, ProgramOrder, Region, Watch
from kcheck.worker.backends.batched import engine
from kcheck.worker.backends.interpret import InterpretBackend

_INPUTS = [
    torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip
_OUTPUTS = [torch.float32, torch.float32, torch.float16, torch.bfloat16]


@dataclass
class Arguments:
    """Tensors of one launch, and its scalars."""

    tensors: dict[str, torch.Tensor]
    grid: tuple[int, ...]
    block: int
    far: int

    @classmethod
    def random(cls, random: Random) -> Arguments:
        """Views in random layouts."""
        generator = torch.Generator().manual_seed(random.randrange(2**31))
        rows, columns = random.randrange(1, 16), random.randrange(1, 20)
        values = torch.randn(rows * 2 + 3, columns * 2 + 3, generator=generator)
        x = _view(random, values.to(random.choice(_INPUTS)), rows, columns)
        index = torch.randint(0, rows, (2 * rows + 60,), dtype=torch.int32, generator=generator)
        index = index[2:][:: random.choice([1, 1, 2])]
        out = _view(random, torch.zeros(rows * 2 + 3, columns * 2 + 3, dtype=random.choice(_OUTPUTS)), rows, columns)
        total = torch.zeros(64, dtype=torch.int32)
        programs = max(1, min(rows + random.randrange(-1, 3), 20))
        grid = (programs,) if random.random() < 0.7 or programs % 2 else (programs // 2, 2)
        block = 1 << max(3, (columns - 1).bit_length())
        sums = torch.zeros(64, dtype=random.choice([torch.float32] * 8 + [torch.float16]))
        block = max(block, 16)
        even = torch.randn(64, block, generator=generator)
        tensors = {"x": x, "index": index, "even": even, "out": out, "total": total, "sums": sums}
        return cls(tensors, grid, block, random.choice([3, 70_000]))

    def launch(self, kernel: Any, poison: int) -> None:
        """Launch a kernel of `make_kernels`."""
        x, index, even, out, total, sums = self.tensors.values()
        scratch = torch.empty(32 * self.block * self.block)
        scratch.view(torch.uint8).fill_(poison)
        kernel[self.grid](
            x, index, even, out, total, sums, scratch, *x.shape, *x.stride(), index.stride(0), *out.stride(), self.far,
            min(x.shape[1], 7),
            B=self.block, M=16, K=4,
        )  # fmt: skip


def _view(random: Random, backing: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    kind = random.randrange(6)
    if kind == 0:
        return backing[:rows, :columns].contiguous()
    if kind == 1:
        return backing[1 : rows + 1, 2 : columns + 2]
    if kind == 2:
        return backing[: 2 * rows : 2, : 2 * columns : 2]
    if kind == 3:
        return backing.flatten()[: rows * columns].view(columns, rows).T
    if kind == 4:
        return backing.flatten()[1 : 1 + rows * columns].view(rows, columns)
    return backing[:rows, :columns]


@dataclass
class Result:
    """What a launch did."""

    watch: Watch
    bytes: dict[str, bytes]
    error: tuple[str, str] | None

    def findings(self) -> list[str]:
        """Everything that a report could say."""
        said = [repr(fault) for fault in self.watch.faults]
        for hazard in self.watch.hazards:
            names = [name for name in hazard.__slots__ if name != "storage"]  # scratch is somewhere else each time
            said.append(repr({name: str(getattr(hazard, name)) for name in names}))
        said += [repr(hint) for hint in self.watch.hints]
        return [*said, *self.watch.gaps, repr(self.error), repr([launch.programs for launch in self.watch.launches])]


def ran_together(result: Result) -> bool:
    """Whether a launch of `Pair.run` is likely to have run batched."""
    watch = result.watch
    return not (watch.sequential or watch.hints or watch.faults or watch.hazards or result.error)


@dataclass
class Pair:
    """Arguments, and what else may vary."""

    arguments: Arguments
    order: ProgramOrder
    poison: int
    chunk: int

    @classmethod
    def random(cls, random: Random) -> Pair:
        """Everything drawn. Not in reverse: there programs take turns, which one after the other cannot."""
        order: ProgramOrder = random.choice(["forward", "shuffled"])
        return cls(Arguments.random(random), order, random.choice([0xA5, 0x5A]), random.choice([3, 8, 64]))

    def run(self, kernel: Any, engine: str) -> Result:
        """Launch a kernel in one engine; memory is put back afterwards."""
        tensors = self.arguments.tensors
        storages = {name: _storage(tensor) for name, tensor in tensors.items()}
        before = {name: storage.clone() for name, storage in storages.items()}
        regions = [
            Region(name, tensor, name in ("out", "total", "sums"), name == "out") for name, tensor in tensors.items()
        ]
        storages["out"].fill_(self.poison)
        error = None
        backend = InterpretBackend(engine=engine)
        with (
            chunks_of(self.chunk),
            backend.watch(regions, order=self.order, conditions=Conditions(self.poison)) as watch,
        ):
            try:
                self.arguments.launch(kernel, self.poison)
            except KernelStopped as stopped:
                error = type(stopped).__name__, stopped.reason
        after = {name: _plain(tensors[name], storage) for name, storage in storages.items()}
        for name, storage in storages.items():
            storage.copy_(before[name])
        return Result(watch, after, error)


def _storage(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))


def _plain(tensor: torch.Tensor, storage: torch.Tensor) -> bytes:
    """The bytes of a storage, every NaN the same."""
    whole = storage[: storage.numel() // tensor.itemsize * tensor.itemsize].clone().view(tensor.dtype)
    if tensor.dtype.is_floating_point and tensor.itemsize > 1:
        whole[whole.isnan()] = float("nan")
    plain: bytes = whole.view(torch.uint8).numpy().tobytes()
    return plain


@contextmanager
def chunks_of(programs: int) -> Iterator[None]:
    """The batched engine takes this many programs at a time."""
    saved = engine._FEWEST, engine._LANES
    engine._FEWEST, engine._LANES = programs, 1
    try:
        yield
    finally:
        engine._FEWEST, engine._LANES = saved
