"""How a process ends: its exit code is never that of a pass, or of a finding, where the run did not get there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent.parent / "kernels"
KCHECK = (sys.executable, "-P", "-m", "kcheck")
RIGHT = (f"{KERNELS / 'controls.py'}::in_place", "--max-examples", "5", "--seed", "1")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("arguments", [("--help",), ("list",), ("fuzz", *RIGHT), ("fuzz", *RIGHT, "--report", "json")])
def test_output_that_nobody_reads_ends_the_process_as_any_other(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """``kcheck … | head``: the code of SIGPIPE, since the run did not come to its end."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        done = subprocess.run(
            [*KCHECK, *arguments], cwd=tmp_path, stdout=nobody, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 128 + signal.SIGPIPE
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(tmp_path: Path, closed: str) -> None:
    """Nor does a file take their place, which the import of a target would then redirect."""
    bug = f"{KERNELS / 'logits_rows.py'}"
    for arguments, code in ((RIGHT, 0), ((bug, "--max-examples", "5"), 1)):
        for report in ((), ("--report", "json"), ("--report", "html=report.html")):
            done = run(tmp_path, "sh", "-c", f'"$@" {closed}', "sh", *KCHECK, "fuzz", *arguments, *report)
            assert done.returncode == code, done.stderr
            assert "Traceback" not in done.stderr
    assert (tmp_path / "report.html").read_text().rstrip().endswith("</html>")


def test_an_exit_handler_of_a_target_does_not_choose_the_exit_code(tmp_path: Path) -> None:
    handler = "import atexit, os\natexit.register(os._exit, 0)\n"
    (tmp_path / "kcheck_rows.py").write_text(handler + (KERNELS / "logits_rows.py").read_text())
    assert run(tmp_path, *KCHECK, "fuzz", "--max-examples", "5").returncode == 1


def test_ctrl_c_before_the_command_line_is_there_leaves_no_traceback(tmp_path: Path) -> None:
    """As if it came while click is imported."""
    (tmp_path / "click.py").write_text("import os, signal\n\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*KCHECK, "list"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_during_an_import_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "kcheck_slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([*KCHECK, "fuzz"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == b"here\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == b"kcheck: interrupted\n"
