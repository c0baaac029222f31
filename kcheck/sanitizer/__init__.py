"""Kernels under NVIDIA's compute-sanitizer: finding it, its command line, and what its reports prove.

`locate.locate` → `command.command` and `command.environment` → (the run) → `outcome.judge_run`.
"""
