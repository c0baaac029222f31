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

# Runs a test function under several seeds of its decoys until it fails, and tells how on the last line.
_DRIVER = """
import importlib.util, json, sys, traceback

path, function, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
spec = importlib.util.spec_from_file_location("emitted_test", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
told = {"seed": None, "error": "", "asserted": False}
for seed in range(seeds):
    module.DECOYS = module.DECOYS + (seed > 0)
    try:
        getattr(module, function)()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = frames[-1].filename == path or any("torch/testing" in frame.filename for frame in frames)
        line = (str(error).strip().splitlines() or [""])[0]
        told = {
            "seed": seed,
            "error": f"{type(error).__name__}: {line}",
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
        error: What it raises then.
        asserted: By an assertion of its own.
        broken: Why it did not run at all, ``""`` if it did.
    """

    seed: int | None = None
    error: str = ""
    asserted: bool = False
    broken: str = ""


def attempt(text: str, function: str, environment: Mapping[str, str], folder: Path) -> Trial:
    """Run a test once.

    Args:
        text: The file.
        function: Its test function.
        environment: Of the process; it must find the user's modules.
        folder: Where the file will lie.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "emitted_test.py"
        path.write_text(text.replace("os.path.dirname(__file__)", repr(str(folder))), encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, "-c", _DRIVER, str(path), function, str(SEEDS)],
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
