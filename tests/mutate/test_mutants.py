"""Which mutants are made, and how one takes the place of the original; no case runs here."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from kcheck import loader
from kcheck.errors import CouldNotCheck
from kcheck.mutate.mutants import mutants, sample
from kcheck.mutate.reach import reached
from kcheck.mutation import Edit, Mutant, Mutation, edited
from kcheck.worker import mutated

FILE = Path(__file__).with_name("scaled_rows.py")


@cache
def made(name: str, *kernels: str) -> tuple[Mutant, ...]:
    (one,) = loader.load(name)
    return tuple(mutants(reached(one.target, kernels)))


def changes(operator: str) -> set[tuple[str, str]]:
    """Changed lines of mutants of one operator, of the file beside this one."""
    found = [one for one in made(f"{FILE}::any_layout", "scale_kernel") if one.operator == operator]
    return {(" ".join(one.before), " ".join(one.after)) for one in found}


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("contiguous dropped", "x = x.contiguous()", "x = x"),
        ("wrong comparison", "inside = column < columns", "inside = column <= columns"),
        ("bound off by one", "inside = column < columns", "inside = column < columns - 1"),
        ("program axis", "row = tl.program_id(0)", "row = tl.program_id(1)"),
        (
            "offset dropped",
            "x + row * row_stride + column * column_stride,",
            "x + row * row_stride,",
        ),
        (
            "stride dropped",
            "x + row * row_stride + column * column_stride,",
            "x + row + column * column_stride,",
        ),
        (
            "tail dropped",
            "grid = rows, triton.cdiv(columns, 16)",
            "grid = rows, columns // 16",
        ),
        (
            "stride → shape",
            "scale_kernel[grid](out, x, columns, out.stride(0), x.stride(0), x.stride(1), BLOCK=16)",
            "scale_kernel[grid](out, x, columns, out.stride(0), x.shape[1:].numel(), x.stride(1), BLOCK=16)",
        ),
        (
            "strides swapped",
            "scale_kernel[grid](out, x, columns, out.stride(0), x.stride(0), x.stride(1), BLOCK=16)",
            "scale_kernel[grid](out, x, columns, out.stride(0), x.stride(1), x.stride(0), BLOCK=16)",
        ),
    ],
)
def test_a_bug_of_a_usual_kind_is_a_mutant(operator: str, before: str, after: str) -> None:
    assert (before, after) in changes(operator)


def test_a_dropped_mask_takes_what_stands_for_it_along() -> None:
    (load, store) = sorted(changes("mask dropped"))
    assert load[1] == "# é: bytes are not characters"
    assert "mask" in store[0]
    assert "mask" not in store[1]


def test_the_value_of_masked_lanes_matters_only_where_lanes_are_mixed() -> None:
    assert not changes("other dropped")
    lines = [one.after[0] for one in made("builtin:softmax", "softmax_kernel") if one.operator == "other dropped"]
    assert len(lines) == 1
    assert "mask" in lines[0]
    assert "other" not in lines[0]


def test_the_stride_of_a_tensor_that_the_wrapper_allocates_is_no_mistake() -> None:
    assert len(changes("stride → shape")) == 2  # of x; out comes from torch.empty


def test_what_is_computed_is_left_alone() -> None:
    found = made(f"{FILE}::any_layout", "scale_kernel")
    assert {one.mutation.qualname for one in found} == {"scale_kernel", "Scale.launch"}  # not the device function


def test_every_mutant_is_python_with_its_lines_in_place_and_no_two_are_the_same() -> None:
    for found in (made(f"{FILE}::any_layout", "scale_kernel"), made("builtin:paged_gather", "_paged_gather_kernel")):
        texts = {}
        for one in found:
            before = Path(one.file).read_bytes()
            after = edited(before, one.mutation.edits)
            assert after.count(b"\n") == before.count(b"\n")
            texts[ast.dump(ast.parse(after))] = one
        files = {ast.dump(ast.parse(Path(one.file).read_bytes())) for one in found}
        assert len(texts) == len(found)
        assert not files & texts.keys()


def test_a_sample_has_every_operator_and_is_the_same_each_time() -> None:
    found = made("builtin:paged_gather", "_paged_gather_kernel")
    operators = {one.operator for one in found}
    some = sample(found, len(operators), 0)
    assert {one.operator for one in some} == operators
    assert some == sample(found, len(operators), 0)
    assert sample(found, len(found) + 1, 0) == list(found)


def test_whatever_reads_the_source_reads_the_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mutated_by_test.py"
    text = "import triton\n\n\n@triton.jit\ndef next_row(row):\n    'é'\n    return row + 1\n"
    file.write_text(text)
    kernel = loader.module(str(file)).next_row
    at = text.encode().index(b"row + 1")
    change = Mutation("mutated_by_test", "next_row", (Edit(at, at + 7, "row + 2"),))
    monkeypatch.setattr(mutated, "_done", [])
    mutated.ensure(change, SimpleNamespace(device="cuda"))
    assert kernel.fn(5) == 7
    assert inspect.getsource(kernel.fn).splitlines()[-1] == "    return row + 2"
    assert kernel.src.splitlines()[-1] == "    return row + 2"  # what Triton compiles
    assert file.read_text() == text
    mutated.ensure(change, SimpleNamespace(device="cuda"))
    with pytest.raises(CouldNotCheck, match="another mutant"):
        mutated.ensure(None, SimpleNamespace(device="cuda"))
