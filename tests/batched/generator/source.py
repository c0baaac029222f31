"""A module of random kernels."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType

from .features import Features

_HEADER = '''"""Made by a generator."""
import triton
import triton.language as tl
from triton.language.extra import libdevice


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
    "x, index, even, out, total, sums, scratch, rows, columns, sx0, sx1, si, so0, so1, far, width, B: tl.constexpr, "
    "M: tl.constexpr, K: tl.constexpr"
)


def kernel_source(name: str, random: Random) -> str:
    """The source of a random kernel."""
    writer = Features(random)
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
