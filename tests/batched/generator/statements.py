"""The statements of random kernels."""

from __future__ import annotations

from .writer import Writer


class Statements(Writer):
    """Loads, stores, atomics, branches, loops, and blocks of every shape."""

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
        guard = "(lanes < columns) & (pid < rows)" if self.random.random() < 0.93 else "lanes <= columns"
        row = "pid" if self.random.random() < 0.95 else "row"
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
        if self.random.random() < 0.8:
            self.put_by_helper()
        made = self.name("f")
        row = "pid" if self.random.random() < 0.9 else self.random.choice(["row", "0"])
        guard = f"(lanes < columns) & ({row} < rows)"
        self.put(f"{made} = tl.load(out + {row} * so0 + lanes * so1, mask={guard}, other=2.0)")
        self.floats.append(made)

    def use_scratch(self) -> None:
        """Memory that the wrapper made, in pieces of a program or across."""
        made = self.name("f")
        place = "pid * B + lanes" if self.random.random() < 0.8 else "(pid * B + lanes) // 2"
        if self.random.random() < 0.9:
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
            self.put(f"{made} = {call}")
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
