"""Kernels under NVIDIA's compute-sanitizer: finding it, starting it, and what its reports prove."""

from kcheck.sanitizer.command import command, environment, python_module
from kcheck.sanitizer.locate import Sanitizer, locate
from kcheck.sanitizer.outcome import Outcome, Run, judge_run
from kcheck.sanitizer.places import Allocation
from kcheck.sanitizer.tool import ERROR_EXIT_CODE, Tool

__all__ = [
    "ERROR_EXIT_CODE",
    "Allocation",
    "Outcome",
    "Run",
    "Sanitizer",
    "Tool",
    "command",
    "environment",
    "judge_run",
    "locate",
    "python_module",
]
