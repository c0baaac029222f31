"""The command line of compute-sanitizer, and the environment of the worker under it."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from kcheck.errors import UsageError
from kcheck.sanitizer.command import command, environment, python_module
from kcheck.sanitizer.locate import Sanitizer
from kcheck.sanitizer.tool import Tool

SANITIZER = Sanitizer(Path("/opt/compute-sanitizer"), "2025.3.1.0", None, "PATH")
PROGRAM = python_module("kcheck.worker", "--fd", "3")


def built(
    tool: Tool, *, sanitizer: Sanitizer = SANITIZER, kernels: tuple[str, ...] = (), leaks: bool = False
) -> list[str]:
    xml, log = Path("/run/a%b.xml"), Path("/run/a.log")
    return command(sanitizer, tool, PROGRAM, xml, log, kernels=kernels, leak_check=leaks)


def value(line: list[str], option: str) -> list[str]:
    return [after for before, after in pairwise(line) if before == option]


def test_the_program_comes_last_and_is_this_interpreter() -> None:
    line = built(Tool.MEMCHECK)
    assert line[0] == "/opt/compute-sanitizer"
    assert line[-6:] == [sys.executable, "-P", "-m", "kcheck.worker", "--fd", "3"]


@pytest.mark.parametrize("tool", Tool)
def test_options_of_every_tool(tool: Tool) -> None:
    line = built(tool)
    assert value(line, "--tool") == [tool.value]
    assert value(line, "--error-exitcode") == ["86"]
    assert value(line, "--strip-paths") == ["no"]
    assert value(line, "--destroy-on-device-error") == ["context"]
    assert value(line, "--log-file") == ["/run/a.log"]
    assert value(line, "--print-limit") == ["100"]
    assert "--xml" in line


def test_nothing_in_a_file_name_is_expanded() -> None:
    assert value(built(Tool.MEMCHECK), "--save") == ["/run/a%%b.xml"]


def test_options_of_memcheck_are_its_own() -> None:
    assert value(built(Tool.MEMCHECK), "--padding") == ["4096"]
    assert value(built(Tool.MEMCHECK, leaks=True), "--leak-check") == ["full"]
    assert "--leak-check" not in built(Tool.MEMCHECK)
    for tool in (Tool.RACECHECK, Tool.INITCHECK, Tool.SYNCCHECK):
        assert not {"--padding", "--leak-check", "--report-api-errors"} & set(built(tool, leaks=True))


def test_one_filter_for_each_kernel() -> None:
    line = built(Tool.RACECHECK, kernels=("_gather", "scatter"))
    assert value(line, "--kernel-name") == ["kernel_substring=_gather", "kernel_substring=scatter"]


def test_initcheck_sees_all_kernels_because_each_may_initialise_memory() -> None:
    assert "--kernel-name" not in built(Tool.INITCHECK, kernels=("_gather",))


@pytest.mark.parametrize("name", ["", "a,kne=b", "a b", "a*"])
def test_what_is_no_name_would_be_another_filter(name: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a kernel"):
        built(Tool.MEMCHECK, kernels=(name,))


def test_the_injection_path_where_it_is_needed() -> None:
    sanitizer = Sanitizer(Path("/w/bin/compute-sanitizer"), "2025.2.1.0", Path("/w/lib"), "a wheel")
    assert value(built(Tool.MEMCHECK, sanitizer=sanitizer), "--injection-path") == ["/w/lib"]


def test_the_allocator_gives_every_tensor_its_own_allocation() -> None:
    base = {
        "HOME": "/h",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "0",
        "TRITON_DISABLE_LINE_INFO": "1",
    }
    assert environment(base) == {"HOME": "/h", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    assert base["TRITON_DISABLE_LINE_INFO"] == "1"
