# mypy: ignore-errors
"""Kernels that give hints about values that the test chooses."""

import triton
import triton.language as tl


@triton.jit
def about_lines(x, out, NAME: tl.constexpr, SIZE: tl.constexpr, LANES: tl.constexpr):
    """A hint about a line of values."""
    lanes = tl.arange(0, LANES)
    values = tl.load(x + lanes)
    if NAME == "multiple_of":
        values = tl.multiple_of(values, SIZE)
    elif NAME == "max_contiguous":
        values = tl.max_contiguous(values, [SIZE])
    else:
        values = tl.max_constancy(values, (SIZE,))
    tl.store(out + lanes, values)


@triton.jit
def about_tiles(x, out, NAME: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, LANES: tl.constexpr):
    """A hint about a square tile of values."""
    lanes = tl.arange(0, LANES)
    places = lanes[:, None] * LANES + lanes[None, :]
    values = tl.load(x + places)
    if NAME == "max_contiguous":
        values = tl.max_contiguous(values, [DOWN, ACROSS])
    else:
        values = tl.max_constancy(values, [DOWN, ACROSS])
    tl.store(out + places, values)


@triton.jit
def about_numbers(x, out, number, SIZE: tl.constexpr):
    """Hints about a parameter, about what is made of it, about a pointer and about a float, and one through a name."""
    number = tl.multiple_of(number, SIZE)
    tl.multiple_of(number + 1, SIZE)
    tl.multiple_of(x, SIZE)
    hint = tl.multiple_of
    value = hint(tl.load(x).to(tl.float32), 16)
    tl.store(out, number + value.to(tl.int32))


@triton.jit
def _aligned(offset, SIZE: tl.constexpr):
    return tl.multiple_of(offset, SIZE)


@triton.jit
def about_programs(out, SIZE: tl.constexpr):
    """A hint in a function, true in some programs."""
    program = tl.program_id(0)
    tl.store(out + program, _aligned(program * 3, SIZE))
