"""Tries an emitted test, and has it formatted, in processes of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 300.0
SEEDS = 4  # of decoys: by chance a decoy may be the right value

# Runs a test under several seeds of its decoys until it fails, and tells how on the last line.
_DRIVER = """
import importlib.util, json, os, sys, traceback
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
path, seeds = sys.argv[1], int(sys.argv[2])
spec = importlib.util.spec_from_file_location("emitted_test", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
told = {"seed": None}
for seed in range(seeds):
    module.DECOYS = module.DECOYS + (seed > 0)
    try:
        module.main()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        called = frames[[frame.name for frame in frames].index("main") + 1 :]
        own = not called or "torch/testing" in called[0].filename
        line = (str(error).strip().splitlines() or [""])[0]
        file = frames[-1].filename.removeprefix(os.path.join(os.getcwd(), ""))
        at = f"{file}:{frames[-1].lineno}: {frames[-1].line}"
        told = {
            "seed": seed,
            "error": type(error).__name__ + (f": {line}" if line else f" at {at}"),
            "said": line or frames[-1].line,
            "asserted": isinstance(error, AssertionError) and own,
        }
        break
print(json.dumps(told))
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """How a test went.

    Attributes:
        seed: The first seed of decoys with which it fails; None if it passes with all of them.
        error: What it raises then, with the line where that has no text.
        said: The text of it, or of the line.
        asserted: By an assertion of its own.
        broken: Why it did not run at all, ``""`` if it did.
    """

    seed: int | None = None
    error: str = ""
    said: str = ""
    asserted: bool = False
    broken: str = ""


def attempt(text: str, environment: Mapping[str, str], folder: Path) -> Trial:
    """Run a test once.

    Args:
        text: The file.
        environment: Of the process; it must find the user's modules.
        folder: Where the file will lie.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "emitted_test.py"
        path.write_text(text.replace("os.path.dirname(__file__)", repr(str(folder))), encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, "-c", _DRIVER, str(path), str(SEEDS)],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                env=dict(environment),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Trial(broken=f"it did not end within {TIMEOUT_S:g} s")
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode < 0:
        return Trial(broken=f"its process was killed by signal {-done.returncode}")
    if done.returncode:
        return Trial(broken=(done.stderr.strip().splitlines() or ["it left no message"])[-1])
    return Trial(**json.loads(last))


def formatted(text: str, path: Path) -> str:
    """The file as the user's Ruff sorts its imports and formats it; as it is where there is no Ruff.

    Args:
        text: The file.
        path: Where it will lie: the project there has settings.
    """
    beside = Path(sys.executable).with_name("ruff")
    ruff = str(beside) if beside.exists() else shutil.which("ruff")
    if ruff is None:
        return text
    for options in (["check", "--select", "I", "--fix", "--quiet"], ["format"]):
        command = [ruff, *options, "--stdin-filename", str(path), "-"]
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return text
        text = done.stdout if done.returncode == 0 and done.stdout else text
    return text
