"""What statements of random kernels are written with: names that exist, and expressions of them."""

from __future__ import annotations

from random import Random


class Writer:
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

    def statement(self, budget: int) -> None:
        """One statement or branch, at most `budget` deep."""
        raise NotImplementedError

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
