"""Statements of random kernels that each use one feature of Triton, and how often each kind of statement is written."""

from __future__ import annotations

from collections.abc import Callable

import triton
import triton.language as tl

from .statements import Statements

_MATH = (
    "tl.sqrt(tl.abs({}))", "tl.log(tl.abs({}) + 1.0)", "tl.erf({})", "tl.math.rsqrt(tl.abs({}) + 0.5)",
    "tl.math.fma({0}, {0}, {0})", "tl.math.div_rn({}, 3.0)", "tl.sin({})", "tl.exp2(tl.minimum({}, 8.0))",
    "libdevice.tanh({})", "libdevice.rint({})", "libdevice.pow(tl.abs({}), 2.0)", "tl.ceil({})", "tl.fdiv({}, 7.0)",
    "({}).to(tl.float64) * 1.1",
)  # fmt: skip
_BLOCK_ATOMICS = ("add", "add", "and", "or", "xor", "max", "min")
_BITS = ("{} & 0x7fffff00", "{} ^ 1", "{} | 0")


class Features(Statements):
    """Everything that a random kernel may do."""

    def statement(self, budget: int) -> None:
        """One statement or branch, at most `budget` deep."""
        names = [name for name in _WEIGHTS if budget or name not in _DEEP]
        (name,) = self.random.choices(names, [_WEIGHTS[name] for name in names])
        method: Callable[..., None] = getattr(self, name)
        method(*(budget,) if name in _DEEP else ())

    def made(self, expression: str) -> None:
        """A new block of floats."""
        name = self.name("f")
        self.put(f"{name} = ({expression}).to(tl.float32)")
        self.floats.append(name)

    def call_helper(self) -> None:
        made = self.name("n")
        helper = self.random.choice(["pick({}, {})", "count_down({} % 9 + {} % 4)"])
        self.put(f"{made} = {helper.format(self.number(), self.number())}")
        self.numbers.append(made)

    def cumulated(self) -> None:
        reverse = self.random.choice(["True", "False"])
        name = self.random.choice(["cumsum", "cumsum", "cumprod"])
        self.made(f"tl.{name}(tl.clamp({self.value()}, -9.0, 9.0), 0, reverse={reverse})")

    def argument_of(self) -> None:
        name = self.random.choice(["argmax", "argmin"])
        self.put(f"{self.random.choice(self.floats)} += tl.{name}({self.value()}, axis=0)")

    def conditional(self) -> None:
        made = self.name("n")
        self.put(f"{made} = {self.number()} if {self.condition()} else {self.number()}")
        self.put(f"{made} = {made} + 0")
        self.numbers.append(made)

    def affine_scan(self) -> None:
        first, second = self.name("f"), self.name("f")
        self.put(f"{first}, {second} = tl.associative_scan(({self.value()}, {self.value()}), 0, affine)")
        self.floats.append(second)

    def early_return(self) -> None:
        """Some programs are done here."""
        if self.depth > 1:
            self.assign()
            return
        self.put(f"if {self.condition()}:")
        if self.random.random() < 0.5:
            self.nested(1)
        self.put("    return")

    def math(self) -> None:
        value = self.random.choice(self.floats)
        self.made(self.random.choice(_MATH).format(value))

    def descriptor(self) -> None:
        """Loads and stores through tensor descriptors, over memory that is even enough for them."""
        self.put("even_block = tl.make_tensor_descriptor(even, [64, B], [B, 1], [1, B])")
        self.made(f"tl.reshape(even_block.load([{self.number()}, {self.random.choice(['0', '4', '-4'])}]), (B,))")
        if self.random.random() < 0.5:
            row = "pid" if self.random.random() < 0.95 else "row"
            self.put("described = tl.make_tensor_descriptor(scratch, [64, B], [B, 1], [1, B])")
            self.put(f"described.store([{row}, 0], tl.reshape({self.value()}, (1, B)))")
            self.made(f"tl.reshape(described.load([pid, {self.random.choice(['0', '4', '-4'])}]), (B,))")

    def descriptor_gather(self) -> None:
        self.put("wide = tl.make_tensor_descriptor(even, [64, B], [B, 1], [1, 16])")
        self.put(f"which = ({self.number()} + tl.arange(0, 16) * {self.random.choice(['1', '3', 'width'])}) % 66")
        self.made(f"tl.sum(tl.sum(wide.gather(which, {self.random.choice(['0', '4'])}), axis=0), axis=0) + lanes")

    def descriptor_scatter(self) -> None:
        self.put("written = tl.make_tensor_descriptor(scratch, [32 * B, B], [B, 1], [1, 16])")
        rows = "pid * 16 + tl.arange(0, 16)" if self.random.random() < 0.9 else "pid * 8 + tl.arange(0, 16)"
        self.put(f"written.scatter(tl.zeros((16, 16), tl.float32) + {self.number()}, 64 + {rows}, 0)")

    def descriptor_atomic(self) -> None:
        self.put("summed = tl.make_tensor_descriptor(sums, [4, 16], [16, 1], [1, 16])")
        operation = self.random.choice(["atomic_add", "atomic_max", "atomic_min"])
        self.put(f"summed.{operation}([{self.number()}, 0], tl.zeros((1, 16), tl.float32) + {self.number()})")

    def masked_rows(self) -> None:
        """Rows that are there or not as a whole, which may overlap."""
        tile, made = self.name("w"), self.name("f")
        limit = self.random.choice([self.number(), f"({self.number()} + tl.arange(0, M) * 3) % 5"])
        self.put(f"shown = (({limit}) > {self.random.randrange(4)}) & (tl.arange(0, M) < 16)")
        step = self.random.choice(["B", "B", "B", "B // 2", "4"])
        spread = f"(pid * M + tl.arange(0, M))[:, None] * {step} + lanes[None, :]"
        if self.random.random() < 0.6:
            self.put(f"tl.store(scratch + {spread}, ({self.value()})[None, :] + pid, mask=shown[:, None])")
            other = self.random.choice(["", ", other=1.0"])
            self.put(f"{tile} = tl.load(scratch + {spread}, mask=shown[:, None]{other})")
        else:
            other = self.random.choice(["", ", other=-2.0", f", other=({self.value()})[None, :]"])
            far = self.random.choice(["0", "0", "0", "B * 63"])
            place = f"even + {far} + ((tl.arange(0, M) + {self.number()}) & 63)[:, None] * B + lanes[None, :]"
            self.put(f"{tile} = tl.load({place}, mask=shown[:, None]{other})")
        self.put(f"{made} = tl.sum({tile}, axis=0)")
        self.floats.append(made)

    def walking_pointer(self) -> None:
        made, walk, turn = self.name("f"), self.name("p"), self.name("t")
        self.put(f"{walk} = x + pid * sx0 + lanes * sx1")
        self.put(f"{made} = {self.random.choice(self.floats)} * 0.5")
        self.put(f"for {turn} in tl.range(0, {self.random.choice(['K', '3', 'pid % 3'])}, num_stages=2):")
        inside = f"(lanes + {turn} < columns) & (pid < rows)" if self.random.random() < 0.95 else "pid < rows"
        self.put(f"    {made} += tl.load({walk}, mask={inside}, other=0.0).to(tl.float32)")
        self.put(f"    {walk} += sx1")
        self.floats.append(made)

    def chased_pointer(self) -> None:
        """A loop that memory ends."""
        made = self.name("n")
        self.put(f"{made} = {self.random.choice(['row', 'pid % rows', '0'])} + 0")
        self.put(f"while tl.load(index + {made} * si) > {made}:")
        self.put(f"    {made} = tl.load(index + {made} * si)")
        self.numbers.append(made)

    def lock(self) -> None:
        """A lock that is free, or that programs may have to wait for."""
        place = "32 + pid" if self.random.random() < 0.8 else "63"
        self.put(f"while tl.atomic_cas(total + {place}, 0, 1) == 1:")
        self.put("    pass")
        self.put(f"tl.atomic_xchg(total + {place}, 0)")

    def block_atomic(self) -> None:
        operation = self.random.choice(_BLOCK_ATOMICS)
        place = self.random.choice(["lanes % 16", "lanes % 4", "(lanes + pid) % 16"])
        mask = self.random.choice(["", f", mask={self.mask()}"])
        call = f"tl.atomic_{operation}(total + 8 + {place}, {self.lanes()}{mask})"
        if self.random.random() < 0.7:
            self.put(call)
        else:
            made = self.name("i")
            self.put(f"{made} = {call}")
            self.whole.append(made)

    def rearranged(self) -> None:
        one, other = self.random.choice(self.floats), self.value()
        self.made(
            self.random.choice(
                [
                    "tl.sum(tl.join({0}, {1}), axis=1)", "tl.split(tl.join({0}, {1}))[1]",
                    "tl.max(tl.reshape(tl.interleave({0}, {1}), (2, B)), axis=0)",
                    "tl.sum(tl.reshape(tl.cat({0}, {1}, can_reorder=True), (2, B)), axis=0)",
                    "tl.gather({0}, lanes ^ 1, 0) + {1}", "tl.gather({0}, (lanes + pid) & (B - 1), 0)",
                    "tl.reshape(tl.permute(tl.reshape({0}, (2, B // 2)), (1, 0)), (B,))",
                    "tl.sum(tl.expand_dims({0}, 0) + tl.expand_dims({1}, 1), axis=0)",
                ]
            ).format(one, other)
        )  # fmt: skip

    def counted(self) -> None:
        made = self.name("n")
        bins = f"tl.histogram({self.lanes()} & 15, 16)"
        self.put(f"{made} = tl.sum({bins} * tl.arange(0, 16))")
        self.numbers.append(made)

    def largest(self) -> None:
        self.made(f"tl.sum(tl.topk({self.value()}, 8)) + lanes")

    def whole_reductions(self) -> None:
        made = self.name("n")
        self.put(f"{made} = tl.{self.random.choice(['sum', 'max', 'min', 'xor_sum'])}({self.lanes()}, axis=0) % 100")
        self.numbers.append(made)

    def both_of_maximum(self) -> None:
        value, where = self.name("v"), self.name("n")
        self.put(f"{value}, {where} = tl.max({self.value()}, axis=0, return_indices=True)")
        self.put(f"{self.random.choice(self.floats)} += {value}")
        self.numbers.append(where)

    def bits(self) -> None:
        change = self.random.choice(_BITS).format(f"({self.value()}).to(tl.int32, bitcast=True)")
        self.made(f"({change}).to(tl.float32, bitcast=True)")

    def recast_pointer(self) -> None:
        kind = self.random.choice(["int32", "int32", "float32", "int8", "int16"])
        self.put(f"recast = even.to(tl.pointer_type(tl.{kind}), bitcast=True)")
        self.made(f"tl.load(recast + pid * B + lanes).to(tl.int32) * 0 + {self.random.choice(self.floats)}")

    def chosen_pointer(self) -> None:
        pointers = "tl.where(lanes < width, x + pid * sx0 + lanes * sx1, x + lanes * sx1)"
        self.made(f"tl.load({pointers}, mask=(lanes < columns) & (pid < rows), other=1.0)")

    def scaled_product(self) -> None:
        name, made = self.name("w"), self.name("f")
        kind = self.random.choice(["bf16", "fp16", "e4m3", "e5m2"])
        element = {"bf16": "bfloat16", "fp16": "float16", "e4m3": "float8e4nv", "e5m2": "float8e5"}[kind]
        self.put("deep = tl.arange(0, 32)")
        self.put(f"{name} = (tl.arange(0, M)[:, None] * 0.25 + deep[None, :] * pid * 0.125).to(tl.{element})")
        self.put("scales = (126 + tl.arange(0, M)[:, None] % 3 + pid % 2).to(tl.uint8)")
        self.put(f"{name} = tl.dot_scaled({name}, scales, '{kind}', tl.trans({name}), scales, '{kind}')")
        self.put(f"{made} = tl.sum(tl.sum({name}, axis=1), axis=0) + lanes")
        self.floats.append(made)

    def more_random(self) -> None:
        call = self.random.choice(["tl.randn({}, {})", "tl.randint({}, {}) % 64", "tl.rand({}, {}, n_rounds=5)"])
        self.made(call.format(self.random.randrange(99), f"({self.lanes()}) + pid"))

    def block_pointer_store(self) -> None:
        self.put("there = tl.make_block_ptr(out, (rows, columns), (so0, so1), (pid, 0), (1, B), (1, 0))")
        check = "(0, 1)" if self.random.random() < 0.95 else "(0,)"
        value = f"tl.reshape({self.value()}, (1, B)).to(out.dtype.element_ty)"
        self.put(f"tl.store(there, {value}, boundary_check={check})")

    def promise(self) -> None:
        self.put(self.random.choice(["tl.assume(columns > 0)", "tl.device_assert(lanes >= 0)", "tl.debug_barrier()"]))


_WEIGHTS = {
    "assign": 7, "load": 3, "branch": 2, "loop": 2, "store": 1, "atomic": 1, "call_helper": 1, "cumulated": 1,
    "argument_of": 0.7, "conditional": 1, "square": 1, "affine_scan": 0.7, "gather": 1, "helper": 1,
    "put_by_helper": 1, "read_output": 1, "use_scratch": 1, "float_atomic": 1, "block_pointer": 0.7,
    "far_offset": 0.7, "sorted_lanes": 0.7, "random_numbers": 0.4, "integers": 1, "two_dimensional": 1, "hint": 0.7,
    "planes": 2, "early_return": 0.5, "math": 1, "descriptor": 0.7, "descriptor_gather": 0.4,
    "descriptor_scatter": 0.2, "descriptor_atomic": 0.2, "walking_pointer": 0.7, "masked_rows": 1,
    "chased_pointer": 0.7, "lock": 0.3, "block_atomic": 0.7, "rearranged": 1, "counted": 0.4, "largest": 0.4,
    "whole_reductions": 0.7, "both_of_maximum": 0.4, "bits": 0.4, "recast_pointer": 0.4, "chosen_pointer": 0.4,
    "scaled_product": 0.3, "more_random": 0.4, "block_pointer_store": 0.5, "promise": 0.4,
}  # fmt: skip
_DEEP = ("branch", "loop")

for _name, _there in (
    ("block_pointer", triton.__version__ < "3.9"),
    ("block_pointer_store", triton.__version__ < "3.9"),
    ("largest", hasattr(tl, "topk")),
):
    if not _there:
        del _WEIGHTS[_name]
