"""The bounds of tiles that kernels compute for themselves, against every lane: by evaluation of their IR on the CPU."""

from __future__ import annotations

import re
from random import Random
from types import ModuleType
from typing import Any

import pytest

from kcheck.worker.backends.cuda.viewcheck import layout

TILE, WIDTH = 16, 4
SIGNATURE = {"out_ptr": "*fp32", "x_ptr": "*fp32", "count": "i32", "step": "i32", "start": "i32"}
Given = dict[str, int]


def lanes_of(name: str, given: Given) -> list[int]:
    """Elements of `x` that the lanes of a program read: what the kernel says, in Python."""
    pid, count, step, start = given["x"], given["count"], given["step"], given["start"]
    row = [pid * TILE + i for i in range(TILE)]
    if name == "row_kernel":
        return [start + lane * step for lane in row if lane < count]
    if name == "unmasked_kernel":
        return [(lane - start) * step for lane in row]
    if name == "window_kernel":
        return [(lane - start) * step for lane in row if 0 <= lane - start < count]
    if name == "tile_kernel":
        rows = [pid * 4 + i for i in range(4)]
        return [r * step + c for r in rows if r < start for c in range(TILE) if c < count]
    return [(count - 1 - lane) * step for lane in row if lane < count]


def good_name(text: str) -> str:
    """The int1 of the first access that says that no lane is bad: it is what the access's mask is made of."""
    splat = re.search(r"%kc0_\d+ = tt\.splat (%kc0_\d+) : i1 ->", text)
    assert splat is not None
    return splat[1]


@pytest.mark.parametrize("name", ["row_kernel", "unmasked_kernel", "window_kernel", "tile_kernel", "backwards_kernel"])
def test_bounds_say_what_all_lanes_say(
    name: str, compiling: ModuleType, evaluating: ModuleType, tiles: ModuleType
) -> None:
    compiled: Any = compiling.Compiled(getattr(tiles, name), SIGNATURE, {"TILE": TILE}, to="")
    text = compiled.checked.text
    good, random, verdicts = good_name(text), Random(0), [0, 0]
    base = compiling.TABLE + 8 * (layout.SLOTS + 1 * layout.SLOT)
    for _ in range(400):
        given = {
            "x": random.randrange(5),
            "count": random.randrange(60),
            "step": random.choice([1, 1, 2, 7, -1, 100]),
            "start": random.randrange(-3, 20),
        }
        before, behind = random.randrange(40), random.choice([10, 50, 100, 5000])
        words = {base + 8 * layout.READ_FIRST: -WIDTH * before, base + 8 * layout.READ_END: WIDTH * behind}
        said = bool(evaluating.Scalars(text, given, words).of(good))
        lanes = lanes_of(name, given)
        assert said == all(-before <= lane < behind for lane in lanes), given
        verdicts[said] += 1
    assert min(verdicts) > 20


@pytest.mark.parametrize(
    ("count", "step", "pid", "inside"),
    [
        (64, 1 << 28, 0, False),  # 16 lanes of 2**28 elements: the offset wraps in 32 bits
        (8, 1 << 28, 0, False),  # the mask leaves 7 · 2**28, which fits, but lies far behind the view
        (1, 1 << 30, 0, True),  # the mask leaves lane 0
    ],
)
def test_what_wraps_in_32_bits_is_never_taken_to_lie_in_the_view(
    count: int, step: int, pid: int, inside: bool, compiling: ModuleType, evaluating: ModuleType, tiles: ModuleType
) -> None:
    text = compiling.Compiled(tiles.row_kernel, SIGNATURE, {"TILE": TILE}, to="").checked.text
    base = compiling.TABLE + 8 * (layout.SLOTS + 1 * layout.SLOT)
    words = {base + 8 * layout.READ_FIRST: 0, base + 8 * layout.READ_END: 4 << 20}
    given = {"x": pid, "count": count, "step": step, "start": 0}
    assert bool(evaluating.Scalars(text, given, words).of(good_name(text))) is inside
