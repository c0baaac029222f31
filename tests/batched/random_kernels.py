"""Random Triton kernels and random views: what two engines have to agree on."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import torch
import triton

from kcheck.worker.backends.base import Conditions, KernelStopped, ProgramOrder, Region, Watch
from kcheck.worker.backends.batched import engine
from kcheck.worker.backends.interpret import InterpretBackend

_HEADER = '''"""Made by a generator."""
import triton
import triton.language as tl


@triton.jit
def pick(v, limit):
    if v > limit:
        return limit
    return v


@triton.jit
def count_down(v):
    turns = 0
    while v > 1:
        if v % 2 == 0:
            v = v // 2
        else:
            v = v - 3
        turns += 1
    return turns


@triton.jit
def halves(v, limit):
    if limit > 2:
        return v, limit + 1
    else:
        return v * 0.5, limit - 1


@triton.jit
def put(pointer, value, mask):
    tl.store(pointer, value, mask=mask)


@triton.jit
def larger(a, b):
    if a > b:
        return a
    else:
        return b


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2
'''

_PARAMETERS = (
    "x, index, out, total, sums, scratch, rows, columns, sx0, sx1, si, so0, so1, far, width, B: tl.constexpr, "
    "M: tl.constexpr, K: tl.constexpr"
)


class _Writer:
    """Writes the body of one kernel."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.depth = 1
        self.numbers = ["pid", "width"]
        self.whole = ["lanes"]
        self.floats: list[str] = []
        self.count = 0

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def number(self) -> str:
        """A scalar integer."""
        kind = self.random.randrange(6)
        if kind < 2:
            return self.random.choice(self.numbers)
        if kind == 2:
            return str(self.random.randrange(5))
        left, right = self.random.choice(self.numbers), self.random.choice([*self.numbers, "1", "2", "3"])
        return f"({left} {self.random.choice(['+', '-', '*'])} {right})"

    def lanes(self) -> str:
        """A block of integers."""
        kind = self.random.randrange(5)
        left = self.random.choice(self.whole)
        if kind < 2:
            return left
        if kind == 2:
            return f"({left} {self.random.choice(['+', '-', '*'])} {self.number()})"
        if kind == 3:
            return f"({left} {self.random.choice(['//', '%'])} {self.random.choice(['2', '3', 'width', '5'])})"
        return f"({left} {self.random.choice(['+', '-'])} {self.random.choice(self.whole)})"

    def value(self) -> str:
        """A block of floats."""
        kind = self.random.randrange(10)
        left, right = self.random.choice(self.floats), self.random.choice(self.floats)
        if kind < 3:
            return f"{left} {self.random.choice(['+', '-', '*'])} {right}"
        if kind == 3:
            return f"{self.random.choice(['tl.exp', 'tl.abs', 'tl.sigmoid', 'tl.floor'])}(tl.minimum({left}, 4.0))"
        if kind == 4:
            return f"tl.where({self.mask()}, {left}, {right})"
        if kind == 5:
            return f"tl.{self.random.choice(['maximum', 'minimum'])}({left}, {right})"
        if kind == 6:
            kind_name = self.random.choice(["bfloat16", "float16", "float8e4nv", "float8e5", "int32", "int8"])
            return f"tl.clamp({left}, -100.0, 100.0).to(tl.{kind_name}).to(tl.float32)"
        if kind == 7:
            return f"{self.lanes()}.to(tl.float32) + {left}"
        if kind == 8:
            return f"{left} / ({right} * {right} + 1.0)"
        return f"{left} + {self.random.choice(['tl.sum', 'tl.max', 'tl.min'])}({right}, axis=0)"

    def mask(self) -> str:
        """A block of bools."""
        compare = self.random.choice(["<", "<=", ">", "==", "!=", ">="])
        kind = self.random.randrange(5)
        if kind == 0 and self.floats:
            return f"({self.random.choice(self.floats)} {compare} 0.5)"
        if kind == 1:
            return f"(({self.lanes()} {compare} {self.number()}) & (lanes < width))"
        if kind == 2:
            return f"(({self.lanes()} {compare} {self.lanes()}) | (lanes < {self.number()}))"
        return f"({self.lanes()} {compare} {self.number()})"

    def condition(self) -> str:
        """A scalar condition."""
        compare = self.random.choice(["<", ">", "==", "!=", ">="])
        plain = f"{self.number()} {compare} {self.number()}"
        kind = self.random.randrange(5)
        if kind == 0:
            return f"{plain} {self.random.choice(['and', 'or'])} {self.number()} > 2"
        if kind == 1:
            return f"0 < {self.number()} < {self.number()}"
        if kind == 2:
            return f"not ({plain})"
        return plain

    def load(self) -> None:
        """A load of floats."""
        made = self.name("f")
        row = self.random.choice(["pid", "row", "row", "0"])
        column = self.random.choice(["lanes", "lanes", "lanes", "(lanes + 1) % columns", "width - 1 - lanes"])
        mask = self.random.choice(
            ["(lanes < columns) & (row < rows)", "(lanes < columns) & (pid < rows)", f"(lanes < width) & {self.mask()}",
             "lanes < columns"]
        )  # fmt: skip
        if self.random.random() < 0.93:
            mask = f"({mask}) & ({column} >= 0) & ({column} < columns) & ({row} < rows) & ({row} >= 0)"
        other = self.random.choice(["", ", other=0.0", ", other=-1.5"])
        self.put(f"{made} = tl.load(x + {row} * sx0 + ({column}) * sx1, mask={mask}{other}).to(tl.float32)")
        self.floats.append(made)

    def statement(self, budget: int) -> None:
        """One statement or branch, at most `budget` deep."""
        kind = self.random.randrange(34)
        if kind < 5:
            self.assign()
        elif kind < 8:
            self.load()
        elif kind == 8 and budget:
            self.branch(budget)
        elif kind in (9, 10) and budget:
            self.loop(budget)
        elif kind == 11:
            self.store()
        elif kind == 12:
            self.atomic()
        elif kind == 13:
            made = self.name("n")
            helper = self.random.choice(["pick({}, {})", "count_down({} % 9 + {} % 4)"])
            self.put(f"{made} = {helper.format(self.number(), self.number())}")
            self.numbers.append(made)
        elif kind == 14:
            made = self.name("f")
            self.put(f"{made} = tl.cumsum({self.value()}, 0, reverse={self.random.choice(['True', 'False'])})")
            self.floats.append(made)
        elif kind == 15:
            self.put(f"{self.random.choice(self.floats)} += tl.argmax({self.value()}, axis=0)")
        elif kind == 16:
            made = self.name("n")
            self.put(f"{made} = {self.number()} if {self.condition()} else {self.number()}")
            self.put(f"{made} = {made} + 0")
            self.numbers.append(made)
        elif kind == 17:
            self.square()
        elif kind == 18:
            first, second = self.name("f"), self.name("f")
            self.put(f"{first}, {second} = tl.associative_scan(({self.value()}, {self.value()}), 0, affine)")
            self.floats.append(second)
        elif kind == 19:
            self.gather()
        elif kind in _MORE:
            _MORE[kind](self)
        else:
            self.assign()

    def assign(self) -> None:
        kind = self.random.randrange(4)
        if kind == 0:
            made = self.name("n")
            self.put(f"{made} = {self.number()} + 0")
            self.numbers.append(made)
        elif kind == 1:
            made = self.name("i")
            self.put(f"{made} = {self.lanes()}")
            self.whole.append(made)
        elif kind == 2:
            made = self.name("f")
            self.put(f"{made} = {self.value()}")
            self.floats.append(made)
        else:
            self.put(f"{self.random.choice(self.floats)} {self.random.choice(['+=', '-=', '*='])} {self.value()}")

    def gather(self) -> None:
        made = self.name("f")
        bound = "columns" if self.random.random() < 0.95 else "columns + 1"
        self.put(f"at = tl.load(index + {self.random.choice(['pid', 'row'])} * si)")
        self.put(f"where = (lanes + at) % ({bound})")
        self.put(f"{made} = tl.load(x + at * sx0 + where * sx1).to(tl.float32)")
        self.floats.append(made)

    def square(self) -> None:
        """A block of two dimensions and what becomes of it."""
        wide, made = self.name("w"), self.name("f")
        self.put(f"{wide} = {self.random.choice(self.floats)}[None, :] + tl.arange(0, M)[:, None] * {self.number()}")
        if self.random.random() < 0.4:
            self.put(f"{wide} = tl.dot(tl.trans({wide}), {wide})")
            self.put(f"{made} = tl.sum({wide}, axis={self.random.randrange(2)})")
        else:
            self.put(f"{made} = {self.random.choice(['tl.sum', 'tl.max', 'tl.min'])}({wide}, axis=0)")
        self.floats.append(made)

    def nested(self, budget: int) -> None:
        """A body whose new names are not seen outside."""
        names = [list(pool) for pool in (self.numbers, self.whole, self.floats)]
        self.depth += 1
        for _ in range(self.random.randrange(1, 4)):
            self.statement(budget - 1)
        self.depth -= 1
        self.numbers, self.whole, self.floats = names

    def branch(self, budget: int) -> None:
        self.put(f"if {self.condition()}:")
        self.nested(budget)
        if self.random.random() < 0.5:
            self.put("else:")
            self.nested(budget)

    def loop(self, budget: int) -> None:
        kind = self.random.randrange(4)
        if kind == 0:
            turn = self.name("t")
            self.put(f"for {turn} in range({self.number()} % 4):")
        elif kind == 1:
            turn = self.name("t")
            self.put(f"for {turn} in range({self.random.randrange(3)}, K, 2):")
        elif kind == 2:
            turn = self.name("t")
            self.put(f"for {turn} in tl.static_range(2):")
        else:
            turn = self.name("n")
            self.put(f"{turn} = {self.number()} % 5")
            self.put(f"while {turn} > 0:")
            self.put(f"    {turn} -= 1")
        self.numbers.append(turn)
        self.nested(budget)
        self.numbers.remove(turn)

    def store(self) -> None:
        column = self.random.choice(["lanes", "lanes", "lanes", "width - 1 - lanes"])
        guard = "(lanes < columns) & (pid < rows)" if self.random.random() < 0.95 else "lanes <= columns"
        row = "pid" if self.random.random() < 0.93 else "row"
        if column != "lanes":
            guard += f" & ({column} >= 0) & ({column} < columns)"
        self.put(f"tl.store(out + {row} * so0 + ({column}) * so1, {self.value()}, mask={guard})")

    def atomic(self) -> None:
        operation = self.random.choice(["add", "add", "max", "min", "or", "xchg", "cas"])
        where = self.random.choice(["pid % 4", "pid % 4", "pid % 7", "0", "pid"])
        if operation == "cas":
            call = f"tl.atomic_cas(total + {where}, {self.number()}, {self.number()})"
        else:
            call = f"tl.atomic_{operation}(total + {where}, {self.number()})"
        if self.random.random() < 0.3:
            made = self.name("n")
            self.put(f"{made} = {call}")
            self.numbers.append(made)
        else:
            self.put(call)

    def helper(self) -> None:
        made, number = self.name("f"), self.name("n")
        self.put(f"{made}, {number} = halves({self.value()}, {self.number()})")
        self.floats.append(made)
        self.numbers.append(number)

    def put_by_helper(self) -> None:
        self.put(f"put(out + pid * so0 + lanes * so1, {self.value()}, (lanes < columns) & (pid < rows))")

    def read_output(self) -> None:
        """A read of what may have been written or not, by this program or another one."""
        made = self.name("f")
        row = "pid" if self.random.random() < 0.85 else self.random.choice(["row", "0"])
        guard = f"(lanes < columns) & ({row} < rows)"
        self.put(f"{made} = tl.load(out + {row} * so0 + lanes * so1, mask={guard}, other=2.0)")
        self.floats.append(made)

    def use_scratch(self) -> None:
        """Memory that the wrapper made, in pieces of a program or across."""
        made = self.name("f")
        place = "pid * B + lanes" if self.random.random() < 0.8 else "(pid * B + lanes) // 2"
        if self.random.random() < 0.8:
            self.put(f"tl.store(scratch + {place}, {self.value()})")
        self.put(f"{made} = tl.load(scratch + {place})")
        self.floats.append(made)

    def float_atomic(self) -> None:
        place = self.random.choice(["lanes", "lanes", "lanes % 8", "(lanes + pid) % 32", "pid % 8 + lanes * 0"])
        mask = self.random.choice(["", f", mask={self.mask()}"])
        operation = self.random.choice(["add", "add", "add", "max"])
        call = f"tl.atomic_{operation}(sums + {place}, {self.value()}{mask})"
        if self.random.random() < 0.2:
            made = self.name("f")
            self.put(f"{made} = {call.replace(mask, '')}")  # lanes that are masked off would yield anything
            self.floats.append(made)
        else:
            self.put(call)

    def block_pointer(self) -> None:
        made = self.name("f")
        start, first = self.random.choice(["pid", "row", "0"]), self.random.choice(["0", "1", "row"])
        self.put(f"block = tl.make_block_ptr(x, (rows, columns), (sx0, sx1), ({start}, {first}), (1, B), (1, 0))")
        if self.random.random() < 0.5:
            self.put("block = tl.advance(block, (0, 1))")
        check = "(0, 1)" if self.random.random() < 0.9 else "(1,)"
        self.put(
            f"{made} = tl.reshape(tl.load(block, boundary_check={check}, padding_option='zero'), (B,)).to(tl.float32)"
        )
        self.floats.append(made)

    def far_offset(self) -> None:
        """An offset that does not fit in 32 bits, sometimes."""
        made = self.name("f")
        self.put(f"big = (pid * far) * {self.random.choice(['far', '2', 'width'])}")
        self.put(f"{made} = tl.load(x + ((pid + big) - big) * sx0 + lanes * sx1, mask=(lanes < columns) & (pid < rows))"
                 ".to(tl.float32)")  # fmt: skip
        self.floats.append(made)

    def sorted_lanes(self) -> None:
        made = self.name("f")
        call = self.random.choice(["tl.sort({})", "tl.flip({}, 0)", "tl.reduce({}, 0, larger) + lanes.to(tl.float32)"])
        self.put(f"{made} = {call.format(self.value())}")
        self.floats.append(made)

    def random_numbers(self) -> None:
        made = self.name("f")
        self.put(f"{made} = tl.rand({self.random.randrange(99)}, {self.lanes()} + pid)")
        self.floats.append(made)

    def integers(self) -> None:
        """Narrow and unsigned types, and bits."""
        made = self.name("i")
        kind = self.random.choice(["int8", "int16", "uint8", "uint32", "int64"])
        operation = self.random.choice(["+ 100", "* 3", "& 13", "^ 5", "| 8", ">> 1", "<< 2", "// 3", "% 5"])
        self.put(f"{made} = ({self.lanes()}.to(tl.{kind}) {operation}).to(tl.int32)")
        self.whole.append(made)

    def hint(self) -> None:
        made, value = self.name("i"), self.random.choice(["lanes", "lanes * 2", "lanes + pid * 16", "lanes // 4"])
        name = self.random.choice(["multiple_of", "max_contiguous", "max_constancy"])
        self.put(f"{made} = tl.{name}({value}, {self.random.choice([1, 1, 2, 4, 16])})")
        self.whole.append(made)

    def planes(self) -> None:
        """Blocks of two and three dimensions, turned and stretched: numpy's sums depend on how they lie in memory."""
        wide, made = self.name("w"), self.name("f")
        first = self.random.choice(
            [
                f"({self.value()})[:, None] * ({self.value()})[None, :]",
                f"tl.broadcast_to(({self.value()})[:, None], (B, B))",
                f"tl.broadcast_to(({self.value()})[None, :], (B, B)) + pid",
                f"tl.full((B, B), 0.1, tl.float32) * {self.number()} + ({self.value()})[:, None]",
            ]
        )
        self.put(f"{wide} = {first}")
        for _ in range(self.random.randrange(3)):
            change = self.random.choice(
                [
                    "tl.trans({0})", "{0} + tl.trans({0})", "tl.cumsum({0}, axis=0)", "tl.cumsum({0}, axis=1)",
                    "tl.exp(-tl.abs({0}))", "{0}.to(tl.float16).to(tl.float32)", "tl.reshape({0}, (B, B))",
                    "tl.dot({0}, tl.trans({0}))", "tl.dot({0}.to(tl.bfloat16), {0}.to(tl.bfloat16))",
                    "tl.reshape(tl.trans(tl.reshape({0}, (B, B // 2, 2)), (1, 0, 2)), (B, B))",
                    "tl.softmax({0})", "tl.where({0} > 0, {0}, tl.trans({0}))",
                ]
            )  # fmt: skip
            self.put(f"{wide} = tl.clamp({change.format(wide)}, -1000.0, 1000.0)")
        last = self.random.choice(
            [
                "tl.sum({0}, axis=0)", "tl.sum({0}, axis=1)", "tl.sum(tl.trans({0}), axis=1)", "tl.max({0}, axis=1)",
                "tl.sum({0}, axis=0) + tl.sum({0})", "tl.sum(tl.sum(tl.reshape({0}, (B, 2, B // 2)), axis=2), axis=1)",
                "tl.sum(tl.sum(tl.reshape({0}, (2, B // 2, B)), axis=0), axis=0)",
                "tl.reduce({0}, 1, larger)",
            ]
        )  # fmt: skip
        self.put(f"{made} = {last.format(wide)}")
        self.floats.append(made)

    def two_dimensional(self) -> None:
        """A tile of x, by rows of this program and the next ones."""
        made = self.name("f")
        self.put("tall = (pid + tl.arange(0, M))[:, None]")
        guard = "(tall < rows) & (lanes[None, :] < columns)" if self.random.random() < 0.95 else "(tall < rows + 1)"
        self.put(f"tile = tl.load(x + tall * sx0 + lanes[None, :] * sx1, mask={guard}, other=0.0).to(tl.float32)")
        self.put(f"{made} = tl.{self.random.choice(['sum', 'max'])}(tile, axis=0)")
        self.floats.append(made)


_MORE = {
    20: _Writer.helper, 21: _Writer.put_by_helper, 22: _Writer.read_output, 23: _Writer.use_scratch,
    24: _Writer.float_atomic, 26: _Writer.far_offset, 27: _Writer.sorted_lanes,
    28: _Writer.random_numbers, 29: _Writer.integers, 30: _Writer.two_dimensional, 31: _Writer.hint,
    32: _Writer.planes, 33: _Writer.planes,
}  # fmt: skip
if triton.__version__ < "3.9":  # which has no block pointers
    _MORE[25] = _Writer.block_pointer


def kernel_source(name: str, random: Random) -> str:
    """The source of a random kernel."""
    writer = _Writer(random)
    writer.put("pid = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)")
    writer.put("lanes = tl.arange(0, B)")
    if random.random() < 0.4:
        writer.put(f"if pid >= {random.choice(['rows', 'rows', 'rows - 1'])}:")
        writer.put("    return")
    writer.put("row = tl.load(index + pid * si)" if random.random() < 0.9 else "row = pid + 0")
    writer.numbers.append("row")
    writer.load()
    for _ in range(random.randrange(2, 9)):
        writer.statement(2)
    writer.store()
    return f"\n\n@triton.jit\ndef {name}({_PARAMETERS}):\n" + "\n".join(writer.lines) + "\n"


def make_kernels(folder: Path, seed: int, count: int) -> ModuleType:
    """A module with kernels ``kernel0`` to ``kernel<count - 1>``, imported from a file in `folder`."""
    random = Random(seed)
    text = _HEADER + "".join(kernel_source(f"kernel{number}", random) for number in range(count))
    path = folder / f"random_kernels_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"kcheck_random_kernels_{seed}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        rows, columns = random.randrange(1, 24), random.randrange(1, 20)
        dtype = random.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])
        x = _view(random, torch.randn(rows * 2 + 3, columns * 2 + 3, generator=generator).to(dtype), rows, columns)
        index = torch.randint(0, rows, (2 * rows + 60,), dtype=torch.int32, generator=generator)
        index = index[2:][:: random.choice([1, 1, 2])]
        out = _view(random, torch.zeros(rows * 2 + 3, columns * 2 + 3), rows, columns)
        total = torch.zeros(64, dtype=torch.int32)
        programs = max(1, min(rows + random.randrange(-1, 3), 28))
        grid = (programs,) if random.random() < 0.7 or programs % 2 else (programs // 2, 2)
        block = 1 << max(3, (columns - 1).bit_length())
        sums = torch.zeros(64, dtype=random.choice([torch.float32] * 8 + [torch.float16]))
        tensors = {"x": x, "index": index, "out": out, "total": total, "sums": sums}
        return cls(tensors, grid, max(block, 16), random.choice([3, 70_000]))

    def launch(self, kernel: Any, poison: int) -> None:
        """Launch a kernel of `make_kernels`."""
        x, index, out, total, sums = self.tensors.values()
        scratch = torch.empty(64 * self.block)
        scratch.view(torch.uint8).fill_(poison)
        kernel[self.grid](
            x, index, out, total, sums, scratch, *x.shape, *x.stride(), index.stride(0), *out.stride(), self.far,
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
        """Everything drawn."""
        order: ProgramOrder = random.choice(["forward", "reverse", "shuffled"])
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
    if tensor.dtype.is_floating_point:
        whole[whole.isnan()] = float("nan")
    plain: bytes = whole.view(torch.uint8).numpy().tobytes()
    return plain


@contextmanager
def chunks_of(programs: int) -> Iterator[None]:
    """The batched engine takes this many programs at a time."""
    saved = engine._FIRST, engine._LANES
    engine._FIRST, engine._LANES = programs, 1
    try:
        yield
    finally:
        engine._FIRST, engine._LANES = saved
