"""What this machine has, and what a worker process on it needs."""

from __future__ import annotations

import os
import sys
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


def visible_gpus() -> tuple[str, ...]:
    """The GPUs that a process here may use, each as a value of ``CUDA_VISIBLE_DEVICES``; asks no driver."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return tuple(filter(None, map(str.strip, chosen.split(","))))
    return tuple(str(number) for number, _ in enumerate(Path("/dev").glob("nvidia[0-9]*")))


def worker_environment() -> dict[str, str]:
    """The environment of a worker: it must find the same modules as this process, kcheck included.

    Triton's own interpreter is not switched on there, whatever the user's tests do: workers bring theirs.
    """
    # torch must not initialise CUDA when it is asked whether there is a GPU: that forbids forks.
    own = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "PYTHONPATH": os.pathsep.join(module_places())}
    return {name: value for name, value in (os.environ | own).items() if name != "TRITON_INTERPRET"}


def module_places() -> list[str]:
    """Where this process finds modules, kcheck included."""
    root = str(Path(__file__).resolve().parent.parent)
    places = [place for place in sys.path if place]
    return places if root in places else [*places, root]
