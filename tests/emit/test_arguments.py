"""The code of a case makes the tensors that the arena makes: values to the bit, strides, offsets, sharing."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kcheck import Case
from kcheck import strategies as ks
from kcheck.case import Role
from kcheck.dtypes import DTYPES
from kcheck.emit import arguments, prelude
from kcheck.emit.arguments import Names
from kcheck.errors import UsageError
from kcheck.fill import Fill
from kcheck.layout import Dim, Layout
from kcheck.worker.arena import dense_values

QUICK = settings(max_examples=200, database=None, deadline=None)
SHAPES = st.lists(st.sampled_from((0, 1, 2, 3, 8)), max_size=3).map(tuple)


def made(case: Case) -> dict[str, Any]:
    """Run the code of a case."""
    lines = arguments.build(case, Names({"torch"}), {})
    head = prelude.CONSTANTS.format(guard=512, decoys=0xDEC0)
    head += prelude.HASHED + prelude.FLOATS + prelude.DECOYS
    space: dict[str, Any] = {"torch": torch}
    exec(textwrap.dedent(head) + "\n".join(lines), space)
    return space


@QUICK
@given(st.data(), SHAPES, st.sampled_from(sorted(DTYPES)))
def test_tensors_are_those_of_the_arena(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    case = Case(x=data.draw(ks.tensors(shape, dtype)), y=data.draw(ks.inouts(shape, dtype)))
    space, expected = made(case), dense_values(case)
    for name, view in case.views.items():
        tensor = space[name]
        assert str(tensor.dtype) == f"torch.{dtype}"
        assert tensor.shape == view.layout.shape
        if view.layout.numel:
            assert tensor.stride() == view.layout.strides
            assert tensor.storage_offset() == 512 + view.layout.first
        assert torch.equal(tensor.double(), expected[name].double())


@QUICK
@given(st.data())
def test_planes_share_their_memory(data: st.DataObject) -> None:
    k, v = data.draw(ks.planes((3, 4), "float16", role=Role.INOUT))
    case = Case(k=k, v=v)
    space, expected = made(case), dense_values(case)
    assert space["k"].untyped_storage().data_ptr() == space["v"].untyped_storage().data_ptr()
    assert torch.equal(space["k"], expected["k"])
    assert torch.equal(space["v"], expected["v"])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0**-140, 1.1, 3])
def test_given_values_are_exact(value: float) -> None:
    x = ks.tensors((2,), "float64", fill=Fill.of([value, 0.1]))
    case = Case(x=_drawn(x))
    assert torch.equal(made(case)["x"].view(torch.int64), dense_values(case)["x"].view(torch.int64))


def _drawn(strategy: st.SearchStrategy[Any]) -> Any:
    from random import Random

    from hypothesis import find

    return find(strategy, lambda _: True, random=Random(0), settings=QUICK)


def test_decoys_lie_in_gaps_and_guards_and_look_valid() -> None:
    from kcheck.case import Tensor

    layout = Layout((Dim(4), Dim(2, after=3)))
    case = Case(x=Tensor("int64", layout, Fill.of([0] * 8), Role.INDEX, bound=7))
    memory = made(case)["x_memory"]
    assert memory.numel() == 20 + 2 * 512
    assert set(memory.tolist()) == set(range(7))


def test_names_are_valid_and_distinct() -> None:
    names = Names({"torch", "x"})
    assert names.of("caches[0]") == "caches_0"
    assert names.of("caches[0]") == "caches_0"
    assert names.of("x") == "x_"
    assert names.of("torch") == "torch_"
    assert names.of("result") != names.local("result")  # an argument of that name


def test_scalars_are_code() -> None:
    case = Case(a=[1, (2.5, float("inf"))], b='it\'s "x"\n', c=torch.bfloat16, d=None, e=(True,))
    read = {n: eval(arguments.code(n, v, str), {"torch": torch}) for n, v in case.args.items()}
    assert read == {"a": [1, (2.5, float("inf"))], "b": 'it\'s "x"\n', "c": torch.bfloat16, "d": None, "e": (True,)}


def test_memory_that_is_too_large_is_one_sentence() -> None:
    from kcheck.case import Tensor

    case = Case(x=Tensor("int8", Layout((Dim(2, step=2**31),))))
    with pytest.raises(UsageError, match=re.escape("x lies in 2,048 MiB; a stand-alone test makes all of its memory")):
        list(arguments.build(case, Names(set()), {}))


def test_the_guard_covers_the_accesses_that_were_seen() -> None:
    from kcheck.case import Tensor

    case = Case(x=Tensor("int8", Layout((Dim(10),))))
    assert arguments.guard(case, "x", (10, 11)) == 512
    assert arguments.guard(case, "x", (-3000,)) >= 3000
    with pytest.raises(UsageError, match="a stand-alone test could only crash on it"):
        arguments.guard(case, "x", (2**30,))


def test_many_given_values_stay_on_one_line_for_ruff(tmp_path: Path) -> None:
    case = Case(x=_drawn(ks.tensors((40,), "int32", fill=Fill.of(range(40)))))
    lines = list(arguments.build(case, Names(set()), {}))
    path = tmp_path / "x.py"
    path.write_text("\n".join(line for line in lines if line) + "\n")
    run = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", str(path)]
    assert subprocess.run(run, capture_output=True, check=False).returncode == 0
    assert "38, 39])" in path.read_text()
