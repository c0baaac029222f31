"""How the console looks, and how much it tells; what replay --emit says when it cannot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent.parent / "kernels"
Run = Callable[..., subprocess.CompletedProcess[str]]
ESCAPE = "\x1b["


@pytest.fixture
def kcheck(tmp_path: Path) -> Run:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {
            name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
        }
        return subprocess.run(
            [sys.executable, "-P", "-m", "kcheck", *arguments],
            cwd=tmp_path,
            env=clean | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


CASE = {
    "schema": "kcheck.case/1",
    "backings": {"x": {"dtype": "float32", "numel": 4}},
    "args": {
        "x": {
            "view": {
                "backing": "x",
                "dtype": "float32",
                "role": "input",
                "layout": {"dims": [{"size": 2}, {"size": 1, "after": 1}]},
                "fill": {"kind": "hashed", "version": 1, "seed": 0, "low": 0, "high": 1},
            }
        }
    },
}


@pytest.mark.parametrize(
    ("options", "environment", "coloured"),
    [
        ((), {}, False),  # no terminal
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour(
    kcheck: Run, tmp_path: Path, options: tuple[str, ...], environment: dict[str, str], coloured: bool
) -> None:
    (tmp_path / "case.json").write_text(json.dumps(CASE))
    done = kcheck("show", "case.json", *options, **environment)
    assert done.returncode == 0, done.stderr
    assert (ESCAPE in done.stdout) is coloured


def test_width(kcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(json.dumps(CASE))
    for width in (50, 90):
        lines = kcheck("show", "case.json", "--width", str(width)).stdout.splitlines()
        assert max(map(len, lines)) <= width
    assert kcheck("show", "case.json", "--width", "5").returncode == 2


def test_quiet_and_verbose(kcheck: Run) -> None:
    spec = (f"{KERNELS / 'expanded_grad.py'}::wrong", "--max-examples", "3", "--seed", "1")
    usual, quiet, verbose = (kcheck("fuzz", *spec, *options) for options in ((), ("-q",), ("-v",)))
    assert usual.returncode == quiet.returncode == verbose.returncode == 1
    for done in (usual, quiet, verbose):
        assert "ERROR out-of-view-read" in done.stdout
        assert re.search(r"^FINDINGS  wrong", done.stdout, re.MULTILINE)
        assert "kcheck replay" in done.stdout
    assert "seed 1" in usual.stdout
    assert "seed 1" not in quiet.stdout
    assert "✓ match" in usual.stdout  # the matrix
    assert "✓ match" not in quiet.stdout
    cases = re.findall(r"^(?:match|findings)  (?:sweep|random|shrink), ", verbose.stdout, re.MULTILINE)
    assert len(cases) >= 10
    assert "grad=torch.empty(" in verbose.stdout
    assert "sweep, " not in usual.stdout


def test_quiet_never_hides_what_could_not_be_checked(kcheck: Run) -> None:
    done = kcheck("fuzz", f"{KERNELS / 'rejects_all.py'}::wrong", "--max-examples", "3", "--seed", "1", "-q")
    assert done.returncode == 3
    assert "COULD NOT CHECK" in done.stdout
    assert "every case was rejected" in re.sub(r"\s+", " ", done.stdout)


def test_rejections_are_told_by_verbose(kcheck: Run) -> None:
    done = kcheck(
        "fuzz", f"{KERNELS / 'rejects_all.py'}::wrong", "--max-examples", "0", "--seed", "1", "-v", "--width", "200"
    )
    assert re.search(r"^rejected  sweep, .* ValueError: x has 1 dimensions; expected 2", done.stdout, re.MULTILINE)


def test_quiet_and_verbose_contradict_each_other(kcheck: Run) -> None:
    done = kcheck("fuzz", "-q", "-v")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_an_output_without_emit_and_a_file_that_exists(kcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(json.dumps(CASE))
    (tmp_path / "mine.py").touch()
    target = ("--target", f"{KERNELS / 'mutated.py'}::wrong")
    for options, says in (
        (("-o", "new.py"), "-o and --force are for the file of --emit"),
        (("--emit", "pytest", "-o", "mine.py"), "mine.py exists"),
    ):
        done = kcheck("replay", "case.json", *target, *options)
        assert done.returncode == 2
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
