"""What this machine has."""

from __future__ import annotations

from pathlib import Path


def chosen_backend(name: str) -> str:
    """The backend that ``auto`` stands for on this machine: the GPU where the driver shows one, else the CPU.

    Args:
        name: ``auto``, or a backend; both with the options of `kcheck.backend_spec`, which are for the CPU.
    """
    asked, _, options = name.partition(",")
    if asked != "auto":
        return name
    if options:
        return f"interpret,{options}"
    return "cuda" if Path("/dev/nvidiactl").exists() and any(Path("/dev").glob("nvidia[0-9]*")) else "interpret"
