"""Kernels with checks compile, without a GPU, and know their accesses: lines, and where pointers come from."""

from __future__ import annotations

import linecache
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcheck.targets import paged_gather
from kcheck.worker.backends.cuda.viewcheck.instrument import Manner, instrument
from kcheck.worker.backends.cuda.viewcheck.tool import most_registers
from kcheck.worker.backends.cuda.viewcheck.ttir import UnknownText

OUT, X = (0,), (1,)
ELSEWHERE = ()
# Access, parameter, and how its source line begins; of each form but those that are stated by themselves.
Known = list[tuple[str, tuple[int, ...], str]]
COMMON: Known = [("read", X, "value = "), ("write", OUT, "tl.store(out_ptr")]
STATED: dict[str, Known] = {
    "scalar": [("read", X, "tl.store(out_ptr"), ("write", OUT, "tl.store(out_ptr")],
    "helper": [("read", X, "return tl.load("), ("write", OUT, "tl.store(out_ptr")],
    "noinline": [("write", OUT, "tl.store(out_ptr"), ("read", X, "return tl.load(")],
    "moved": [("read", X, "value = tl.load(x_ptrs"), ("write", OUT, "tl.store(out_ptrs")],
    "chosen": [("read", X, "value = tl.load(x_ptrs"), ("write", OUT, "tl.store(out_ptr")],
    "while": [("read", X, "tl.store(out_ptr"), ("write", OUT, "tl.store(out_ptr")],
    "atomic": [("atomic", X, "value = tl.atomic_add("), ("write", OUT, "tl.store(out_ptr")],
    "table": [("read", X, "address = tl.load("), ("read", ELSEWHERE, "value = "), ("write", OUT, "tl.store(out_ptr")],
}
FORMS = ["scalar", "tile", "alias", "helper", "noinline", "moved", "chosen", "early", "while", "atomic", "descriptor"]
FORMS += ["table", "tuned"]


def compiled(compiling: ModuleType, forms: ModuleType, form: str, **options: Any) -> Any:
    kernel = forms.KERNELS[form]
    signature = {"out_ptr": "*fp32", "x_ptr": "*i64" if form == "table" else "*fp32"}
    signature |= dict.fromkeys(("columns", "row_stride", "out_stride"), "i32")
    return compiling.Compiled(
        getattr(kernel, "fn", kernel) if form == "tuned" else kernel, signature, {"TILE": 8}, **options
    )


@pytest.mark.parametrize("form", FORMS)
def test_accesses_are_known_by_line_and_parameter(form: str, compiling: ModuleType, forms: ModuleType) -> None:
    checked = compiled(compiling, forms, form).checked
    found = []
    for site in checked.sites:
        file, line = site.chain[-1]
        found.append((site.access, site.slots, linecache.getline(file, line).strip()))
    wanted = STATED.get(form, COMMON)
    assert [one[:2] for one in found] == [one[:2] for one in wanted]
    assert all(one[2].startswith(other[2]) for one, other in zip(found, wanted, strict=True)), found
    assert not checked.unchecked


def test_a_call_that_is_not_inlined_is_in_the_chain(compiling: ModuleType, forms: ModuleType) -> None:
    read = next(site for site in compiled(compiling, forms, "noinline", to="").checked.sites if site.access == "read")
    assert [linecache.getline(*place).strip()[:14] for place in read.chain] == ["tl.store(out_p", "return tl.load"]


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("manner", [Manner(True), Manner(True, True), Manner(False, True), Manner(False)], ids=str)
@pytest.mark.parametrize("form", ["tile", "scalar", "moved"])
def test_all_checks_compile(form: str, manner: Manner, arch: int, compiling: ModuleType, forms: ModuleType) -> None:
    one = compiled(compiling, forms, form, arch=arch, exact=manner.exact, state=manner.state)
    assert f".target sm_{arch}" in one.stages["ptx"]


@pytest.mark.parametrize("arch", [80, 90])
def test_the_founding_kernel_compiles_and_its_tiles_have_bounds(arch: int, compiling: ModuleType) -> None:
    kernel: Any = paged_gather._paged_gather_kernel
    pointers = {"out_ptr": "*bf16", "pool_ptr": "*u8"} | dict.fromkeys(("table_ptr", "seq_lens_ptr"), "*i32")
    rest = dict.fromkeys(kernel.arg_names[5:-2], "i32")
    constants = {"gather_lens_ptr": None, "BLOCK_SIZE": 16, "TILE": 16}
    one = compiling.Compiled(kernel, pointers | rest, constants, arch=arch)
    assert f".target sm_{arch}" in one.stages["ptx"]
    assert [site.slots for site in one.checked.sites] == [(3,), (2,), (1,), (1,), (0,), (1,), (1,), (0,)]
    assert "tt.ptr_to_int" not in one.checked.text  # no lane is looked at


def test_marks_are_looked_at_as_wide_as_elements_are_stored(compiling: ModuleType) -> None:
    kernel: Any = paged_gather._paged_gather_kernel
    pointers = {"out_ptr": "*bf16", "pool_ptr": "*u8"} | dict.fromkeys(("table_ptr", "seq_lens_ptr"), "*i32")
    rest = dict.fromkeys(kernel.arg_names[5:-2], "i32") | {"out_element_stride": "constexpr"}
    constants = {"gather_lens_ptr": None, "BLOCK_SIZE": 16, "TILE": 16, "out_element_stride": 1}
    aligned = ("out_ptr", "out_request_stride", "out_row_stride")
    one = compiling.Compiled(kernel, pointers | rest, constants, aligned=aligned, state=True)
    assert "ld.global.cg.v4.b32" in one.stages["ptx"]
    assert "ld.global.cg.b16" not in one.stages["ptx"]


def test_a_loop_with_checks_is_not_pipelined(compiling: ModuleType, forms: ModuleType) -> None:
    text = compiled(compiling, forms, "moved", exact=True, to="").checked.text
    assert "tt.num_stages = 1" in text


def test_a_loop_whose_turns_all_stay_inside_runs_as_it_is_written(compiling: ModuleType, forms: ModuleType) -> None:
    one = compiled(compiling, forms, "moved", to="")
    loop = next(line for line in one.plain.splitlines() if "scf.for" in line)
    assert one.checked.text.count(loop.split(" = scf.for")[1].split(" iter_args")[0]) == 2


@pytest.mark.parametrize("text", ["", "module {\n}\n", "nonsense"])
def test_text_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(UnknownText):
        instrument(text, 0, Manner(True))


@given(st.integers(16, 255), st.sampled_from([32, 64, 128, 256, 512]))
def test_registers_are_capped_where_as_many_blocks_fit(used: int, threads: int) -> None:
    def blocks(registers: int) -> int:
        return int(65536 // (-(-registers // 8) * 8 * threads))

    if not blocks(used):
        return
    most = most_registers(used, threads)
    assert most >= used or most == 255
    assert blocks(most) == blocks(used) or most == 255
