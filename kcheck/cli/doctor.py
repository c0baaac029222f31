"""``kcheck doctor``: what this machine has, and what can be checked on it."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from pathlib import Path

import click

from kcheck.cli import options
from kcheck.errors import KcheckError
from kcheck.store import Store

_PACKAGES = ("torch", "triton", "numpy", "hypothesis", "click", "rich")
_KNOWN_PAIR = "torch 2.13.0 with triton 3.7.1, the pair that CI runs"


@click.command("doctor")
@options.directory
def command(directory: Path) -> int:
    """Say what can be checked on this machine. Exit code 3 if kernels cannot run here at all."""
    click.echo(f"python      {platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in _PACKAGES:
        click.echo(f"{name:<11} {_version(name)}")
    click.echo(f"pair        {_pair(_version('torch'), _version('triton'), _asked())}")
    click.echo(f"GPU         {_gpu()}")
    has_tool, tool = _sanitizer()
    click.echo(f"sanitizer   {tool}")
    answers = {name: _backend(name, directory) for name in ("interpret", "cuda")}
    for name, (_, sentence) in answers.items():
        click.echo(f"{name:<11} {sentence}")
    click.echo("")
    click.echo(f"fuzz on the CPU interpreter with the view check: {'yes' if answers['interpret'][0] else 'no'}")
    click.echo(f"fuzz on a GPU: {'yes' if answers['cuda'][0] else 'no'}")
    click.echo(f"sanitize on the CPU (--tool viewcheck): {'yes' if answers['interpret'][0] else 'no'}")
    click.echo(f"sanitize under compute-sanitizer: {'yes' if has_tool and answers['cuda'][0] else 'no'}")
    return 0 if any(works for works, _ in answers.values()) else 3


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _asked() -> str:
    """What the installed torch asks of Triton, such as ``==3.7.1``; ``""`` for nothing, as builds for the CPU do."""
    try:
        needed = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    found = (re.match(r"triton\b(?!-)[ (]*([^;)]*)", line) for line in needed)
    return next((one[1].replace(" ", "") for one in found if one), "")


def _pair(torch: str, triton: str, asked: str) -> str:
    """Whether the installed versions of torch and Triton go together.

    Args:
        torch: Version, or that it is not installed.
        triton: The same.
        asked: What torch asks of Triton, such as ``==3.7.1``.
    """
    if not asked:
        return f"this build of torch asks for no triton; known: {_KNOWN_PAIR}"
    pinned = re.fullmatch(r"===?([\w.]+)", asked)
    if pinned is None:
        return f"torch {torch} asks for triton {asked}"
    if triton.partition("+")[0] == pinned[1]:
        return f"triton {triton} is what torch {torch} asks for"
    known = f"known: {_KNOWN_PAIR}"
    return f"torch {torch} asks for triton {asked}, and here it is {triton}: install triton{asked}; {known}"


def _gpu() -> str:
    try:
        import torch
    except ImportError as error:
        return f"unknown: torch cannot be imported ({error})"
    if not torch.cuda.is_available():
        return "none that torch can use"
    count = torch.cuda.device_count()
    return (
        f"{torch.cuda.get_device_name(0)}, sm_{''.join(map(str, torch.cuda.get_device_capability(0)))}, {count} in all"
    )


def _sanitizer() -> tuple[bool, str]:
    from kcheck.sanitizer.locate import locate

    try:
        found = locate()
    except KcheckError as error:
        return False, str(error)
    return True, f"compute-sanitizer {found.version}, {found.path}"


def _backend(name: str, directory: Path) -> tuple[bool, str]:
    """Start a worker, as fuzz does.

    Returns:
        Whether kernels can run on this backend, and a sentence.
    """
    from kcheck.client import Client

    if name == "cuda" and options.chosen_backend("auto") != "cuda":
        return False, "this machine has no NVIDIA driver"
    try:
        store = Store(directory).open()
        with Client(name, store.log) as client:
            versions = client.versions
    except KcheckError as error:
        return False, str(error)
    return True, f"works with triton {versions['triton']} and torch {versions['torch']}"
