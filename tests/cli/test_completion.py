"""Completion as a shell asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = shutil.which("bash")
KCHECK = Path(sys.executable).with_name("kcheck")
TARGET = """
import kcheck
import triton


@triton.jit
def kernel(ptr):
    pass


@kcheck.target(cases=None)
def doubled(x, table):
    pass
"""
# What the terminal does at a press of the tab key.
PRESS = """
eval "$(kcheck completion bash)"
compopt() { :; }
COMP_LINE=$1
COMP_POINT=${#1}
_kcheck_completion kcheck
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kcheck_scale.py").write_text(TARGET)
    findings = tmp_path / ".kcheck" / "findings"
    findings.mkdir(parents=True)
    (findings / "1b170b4089f4.json").touch()
    (findings / "d700be26f53c.json").touch()
    return tmp_path


@pytest.mark.skipif(BASH is None or not KCHECK.exists(), reason="needs bash and the kcheck command")
@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("kcheck fu", ["fuzz"]),
        ("kcheck fuzz kch", ["kcheck_scale.py"]),
        # Bash takes `builtin:` and `x=` for words of their own: only the rest is to be filled in.
        ("kcheck fuzz builtin:paged_gather_s", ["paged_gather_shape_stride"]),
        ("kcheck fuzz kcheck_scale.py::", ["doubled"]),
        ("kcheck fuzz kcheck_scale.py --layout ", ["x=", "table="]),
        ("kcheck fuzz kcheck_scale.py --layout x=n", ["narrowed"]),
        ("kcheck fuzz builtin:paged_gather --layout block_t", ["block_table="]),
        ("kcheck replay ", ["1b170b4089f4", "d700be26f53c"]),
        ("kcheck show d7", ["d700be26f53c"]),
        ("kcheck completion z", ["zsh"]),
        ("kcheck show nothing", [""]),  # files are the shell's business
    ],
)
def test_bash(project: Path, line: str, offers: list[str]) -> None:
    done = subprocess.run(
        [str(BASH), "-c", PRESS, "bash", line],
        cwd=project,
        env=os.environ | {"PATH": f"{KCHECK.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.removesuffix("\n").split("\n") == offers


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_use_clicks_script(project: Path, shell: str) -> None:
    run = [sys.executable, "-P", "-m", "kcheck"]
    script = subprocess.run([*run, "completion", shell], cwd=project, capture_output=True, text=True, check=True)
    assert f"_KCHECK_COMPLETE={shell}_complete" in script.stdout
    words = {
        "COMP_WORDS": "kcheck fuzz builtin:paged_gather_s",
        "COMP_CWORD": "2" if shell == "zsh" else "builtin:paged_gather_s",
    }
    asked = os.environ | words | {"_KCHECK_COMPLETE": f"{shell}_complete"}
    done = subprocess.run(run, cwd=project, env=asked, capture_output=True, text=True, check=True)
    assert "builtin:paged_gather_shape_stride" in done.stdout.replace("\\", "")


def test_completing_loads_nothing_heavy(project: Path) -> None:
    code = (
        "import os, sys\n"
        "os.environ.update(_KCHECK_COMPLETE='bash_complete', COMP_LINE='kcheck fuzz x --layout ', COMP_POINT='23')\n"
        "import kcheck.cli\n"
        "try: kcheck.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'hypothesis', 'rich', 'numpy', 'triton'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, capture_output=True)
