"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from kcheck.errors import UsageError
from kcheck.layout import LayoutKind
from kcheck.plan import Pin, Plan
from kcheck.store import DEFAULT_ROOT

directory: Callable[[Any], Any] = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=Path(DEFAULT_ROOT),
    show_default=True,
    help="Where findings and examples are kept.",
)
backend: Callable[[Any], Any] = click.option(
    "--backend",
    type=click.Choice(["auto", "interpret", "cuda"]),
    default="auto",
    show_default=True,
    help="Where kernels run.",
)
case_timeout: Callable[[Any], Any] = click.option(
    "--case-timeout",
    type=click.FloatRange(min=0.1),
    default=20.0,
    show_default=True,
    help="Seconds that one case may take.",
)
reports: Callable[[Any], Any] = click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT[=PATH]",
    help="console or json; repeatable. Without a path the report goes to standard output.",
)


def chosen_backend(name: str) -> str:
    """The backend that ``auto`` stands for on this machine: the GPU where the driver shows one, else the CPU."""
    if name != "auto":
        return name
    return "cuda" if Path("/dev/nvidiactl").exists() and any(Path("/dev").glob("nvidia[0-9]*")) else "interpret"


def read_plan(sets: Sequence[str], layouts: Sequence[str]) -> Plan:
    """Read ``--set NAME=VALUE`` and ``--layout ARGUMENT=KIND``.

    Raises:
        UsageError: One of them is not of that form, or names no layout kind.
    """
    pins: dict[str, Pin] = {}
    for text in sets:
        name, value = _pair("--set", text, "NAME=VALUE")
        pins[name] = int(value) if value.removeprefix("-").isdigit() else value
    kinds: dict[str, LayoutKind] = {}
    for text in layouts:
        name, value = _pair("--layout", text, "ARGUMENT=KIND")
        if value not in list(LayoutKind):
            raise UsageError(f"--layout {text}: {value!r} is not a layout kind; use one of {', '.join(LayoutKind)}")
        kinds[name] = LayoutKind(value)
    return Plan(pins, kinds)


def _pair(option: str, text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"{option} {text}: expected {form}")
    return name, value
