"""The command line and the environment that a worker runs under compute-sanitizer with.

Options as `compute-sanitizer --help` of 2025.2.1 and 2026.4.0 has them; reasons for their values stand beside them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kcheck.errors import UsageError
from kcheck.sanitizer.locate import Sanitizer
from kcheck.sanitizer.tool import ERROR_EXIT_CODE, Tool

DEFAULT_PADDING = 4096  # bytes behind each allocation; without them the next allocation swallows an overrun
DEFAULT_PRINT_LIMIT = 100  # records; one takes 4 to 5 kB of XML, and one wrong launch makes more than 100,000
_KERNEL_NAME = re.compile(r"[\w$.]+")  # a symbol; a comma would start another key of the filter
_ALLOCATOR_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # the second name is torch's, from 2.9 on


def python_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with this interpreter, the current folder kept off ``sys.path``."""
    return [sys.executable, "-P", "-m", module, *arguments]


def command(
    sanitizer: Sanitizer,
    tool: Tool,
    argv: Sequence[str],
    xml: Path,
    log: Path,
    *,
    kernels: Sequence[str] = (),
    padding: int = DEFAULT_PADDING,
    print_limit: int = DEFAULT_PRINT_LIMIT,
    leak_check: bool = False,
    target_processes: str = "all",
) -> list[str]:
    """The command that runs a program under one tool.

    Args:
        sanitizer: What `locate` found.
        tool: The tool.
        argv: The program and its arguments, see `python_module`.
        xml: File that the records will be in. It is not written if the program never reaches CUDA.
        log: File that the tool's own lines will be in: the program's output stays apart.
        kernels: Check only kernels whose symbol contains one of these names; empty: all. See `filters_kernels`.
        padding: memcheck only: bytes behind each allocation.
        print_limit: Most records listed; the total is counted all the same. 0: no limit.
        leak_check: memcheck only: report allocations that were never freed.
        target_processes: ``all``, or ``application-only``, which leaves child processes alone.

    Raises:
        UsageError: A kernel's name is not a symbol.
    """
    options = [
        "--tool", tool.value,
        "--xml", "--save", _verbatim(xml),
        "--log-file", _verbatim(log),
        "--error-exitcode", str(ERROR_EXIT_CODE),
        "--strip-paths", "no",  # else files are named without their folders
        "--print-limit", str(print_limit),
        "--target-processes", target_processes,
        "--destroy-on-device-error", "context",  # `kernel` goes on and took minutes with 21 faulty launches
    ]  # fmt: skip
    if sanitizer.injection_path is not None:
        options += ["--injection-path", str(sanitizer.injection_path)]
    if tool is Tool.MEMCHECK:
        # Explicit calls only: the default became `extended` in 2026.4, which also reports what the driver logs inside.
        options += ["--padding", str(padding), "--report-api-errors", "explicit"]
        options += ["--leak-check", "full"] if leak_check else []
    if tool is Tool.RACECHECK:
        options += ["--racecheck-report", "analysis"]  # one record for a pair of lines, not one for every byte
    if filters_kernels(tool):
        options += [part for kernel in kernels for part in ("--kernel-name", _kernel_filter(kernel))]
    return [str(sanitizer.path), *options, *argv]


def filters_kernels(tool: Tool) -> bool:
    """Whether `command` hands the kernel filter on to the tool.

    Not for initcheck: what a kernel left out by the filter writes would count as never written (until 2026.4, which has
    ``--initcheck-track-filtered-global-memory``). Its records of other kernels are left out afterwards instead.
    """
    return tool is not Tool.INITCHECK


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a program that runs under compute-sanitizer.

    Args:
        base: What it inherits.
    """
    left_out = {*_ALLOCATOR_SETTINGS, "TRITON_DISABLE_LINE_INFO"}  # without line information no record has a line
    kept = {name: value for name, value in base.items() if name not in left_out}
    # torch's caching allocator, and its expandable segments, put many tensors into one allocation: an access that
    # leaves its tensor and stays in there is no error to the tools.
    return kept | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def _verbatim(path: Path) -> str:
    """A file name in which compute-sanitizer expands nothing (``%p``, ``%q{NAME}``)."""
    return str(path).replace("%", "%%")


def _kernel_filter(kernel: str) -> str:
    """A filter by substring: a C++ kernel's symbol is mangled, and Triton's ``repr=`` may put more around the name."""
    if not _KERNEL_NAME.fullmatch(kernel):
        raise UsageError(f"{kernel!r} is not the name of a kernel: letters, digits, _, $ and . only")
    return f"kernel_substring={kernel}"
