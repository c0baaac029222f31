"""The command line from outside: real processes, exit codes, one sentence for every error."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent.parent / "kernels"
Run = Callable[..., subprocess.CompletedProcess[str]]
KCHECK = (sys.executable, "-P", "-m", "kcheck")
QUICK = ("--max-examples", "10", "--seed", "1")


@pytest.fixture
def kcheck(tmp_path: Path) -> Run:
    def run(*arguments: str, timeout: float = 240, **options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*KCHECK, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"} | options,
            check=False,
        )

    return run


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The only thing on stderr: one line, no traceback."""
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stderr.startswith("kcheck: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, kcheck.cli; sys.argv = ['kcheck', '--help']\n"
        "try: kcheck.cli.main()\n"
        "except SystemExit as e: assert e.code == 0\n"
        "heavy = {'torch', 'hypothesis', 'rich', 'numpy', 'triton'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_founding_bug_from_fuzz_to_replay_to_show(kcheck: Run, tmp_path: Path) -> None:
    done = kcheck(
        "fuzz", "builtin:paged_gather_shape_stride", "--max-time", "20", *QUICK, "--report", "json=report.json"
    )
    assert done.returncode == 1, done.stderr
    assert "block_table" in done.stdout
    assert re.search(r"\[:, :\d\]", done.stdout)
    assert "page = tl.load(table_ptr" in done.stdout
    (command,) = re.findall(r"^ +(kcheck replay [0-9a-f]{12})$", done.stdout, re.MULTILINE)
    again = kcheck(*command.split()[1:])
    assert again.returncode == 1
    assert "page = tl.load(table_ptr" in again.stdout
    fixed = kcheck(*command.split()[1:], "--target", "builtin:paged_gather")
    assert fixed.returncode == 0
    assert "gone" in fixed.stdout
    shown = kcheck("show", command.split()[-1])
    assert shown.returncode == 0
    assert "block_table" in shown.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["schema"] == "kcheck.report/1"
    (finding,) = report["targets"][0]["findings"]
    assert finding["kind"] == "out-of-view-read"
    assert finding["argument"] == "block_table"
    assert finding["replay"] == command


def test_a_layout_and_a_size_can_be_pinned(kcheck: Run) -> None:
    spec = f"{KERNELS / 'two_bugs.py'}::table_stride"
    clean = kcheck("fuzz", spec, *QUICK, "--layout", "table=contiguous")
    assert clean.returncode == 0, clean.stdout
    one = kcheck("fuzz", spec, *QUICK, "--set", "requests=1", "--layout", "table=narrowed")
    assert one.returncode == 0, one.stdout
    two = kcheck("fuzz", spec, *QUICK, "--set", "requests=2", "--layout", "table=narrowed")
    assert two.returncode == 1


@pytest.mark.parametrize(
    ("file", "code", "says"),
    [
        ("fallback.py::wrong", 3, "double_kernel never launched"),
        ("rejects_all.py::wrong", 3, "every case was rejected: ValueError: x has 1 dimensions; expected 2"),
        ("oracle_raises.py::wrong", 3, "the oracle raised KeyError: 'torch.float32'"),
        ("weak_oracle.py::wrong", 3, "the oracle is weak: every result is 0.0"),
        ("empty_strategy.py::wrong", 3, "yields nothing"),
    ],
)
def test_what_proves_nothing_ends_with_3(kcheck: Run, file: str, code: int, says: str) -> None:
    done = kcheck("fuzz", str(KERNELS / file), *QUICK)
    assert done.returncode == code
    assert says in re.sub(r"\s+", " ", done.stdout)
    assert "COULD NOT CHECK" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_missing_oracle_argument_is_one_sentence(kcheck: Run) -> None:
    done = kcheck("fuzz", str(KERNELS / "missing_oracle_argument.py"))
    assert done.returncode == 2
    assert "missing_oracle_argument.py:" in sentence(done)


def test_a_syntax_error_is_one_sentence_with_its_line(kcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "kcheck_broken.py").write_text("import torch\n\ndef f(:\n    pass\n")
    done = kcheck("fuzz", "kcheck_broken.py")
    assert done.returncode == 2
    assert "kcheck_broken.py:3" in sentence(done)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("fuzz", "gone.py"), 2, "gone.py"),
        (("fuzz", "builtin:nothing"), 2, "nothing"),
        (("fuzz",), 5, "no target"),
        (("fuzz", "builtin:paged_gather", "--set", "rows"), 2, "--set rows: expected NAME=VALUE"),
        (("fuzz", "builtin:paged_gather", "--set", "num_requsts=4"), 2, "no target has the choice 'num_requsts'"),
        (("fuzz", "builtin:paged_gather", "--set", "num_requests=1000"), 2, "num_requests=1000 is outside 1 … 256"),
        (("fuzz", "builtin:paged_gather", "--set", "lengths=long"), 2, "lengths=long is not one of"),
        (("fuzz", "builtin:paged_gather", "--layout", "pool=transposed"), 2, "cannot have what is pinned"),
        (("fuzz", "builtin:paged_gather", "--cuda-graph", "--backend", "interpret"), 2, "needs --backend cuda"),
        (("fuzz", "builtin:paged_gather", "--layout", "pool=curly"), 2, "'curly' is not a layout kind"),
        (("fuzz", "builtin:paged_gather", "--layout", "tabel=narrowed"), 2, "no target has the argument 'tabel'"),
        (("fuzz", "builtin:paged_gather", "--report", "xml"), 2, "'xml' is not a report format"),
        (("replay", "abcdef"), 2, "no finding or file 'abcdef'"),
        (("show", "abcdef"), 2, "no finding or file 'abcdef'"),
    ],
)
def test_bad_input_is_one_sentence(kcheck: Run, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = kcheck(*arguments)
    assert done.returncode == code
    assert says in sentence(done)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "kcheck.case/99"}', '{"schema": "kcheck.finding/1"}'])
def test_a_malformed_case_file_is_one_sentence(kcheck: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "case.json").write_text(text)
    for command in (("show", "case.json"), ("replay", "case.json", "--target", "builtin:paged_gather")):
        done = kcheck(*command)
        assert done.returncode == 2
        assert "case.json" in sentence(done)


def test_a_case_file_does_not_choose_the_code_that_runs(kcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    case = {"schema": "kcheck.case/1", "backings": {}, "args": {}}
    (tmp_path / "case.json").write_text(
        json.dumps({"schema": "kcheck.finding/1", "target": "evil.py::x", "case": case})
    )
    done = kcheck("replay", "case.json")
    assert done.returncode == 2
    assert "--target" in sentence(done)
    assert not (tmp_path / "ran").exists()


def test_json_on_stdout_is_json_alone(kcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "kcheck_talk.py").write_text(
        "print('hello from the target file')\n" + (KERNELS / "controls.py").read_text()
    )
    done = kcheck("fuzz", "kcheck_talk.py::in_place", *QUICK, "--report", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["targets"][0]["verdict"] == "match"
    assert "MATCH" in done.stderr


def test_targets_are_discovered_and_listed(kcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "kcheck_controls.py").write_text((KERNELS / "controls.py").read_text())
    listed = kcheck("list")
    assert "kcheck_controls.py::any_stride_copy(out, x)" in listed.stdout
    assert "builtin:paged_gather_shape_stride" in listed.stdout
    assert kcheck("fuzz", *QUICK).returncode == 3  # one of the controls declines every strided layout


def test_doctor_says_what_can_be_checked(kcheck: Run) -> None:
    done = kcheck("doctor")
    assert done.returncode == 0
    assert "fuzz on the CPU interpreter with the view check: yes" in done.stdout
    assert "fuzz on a GPU: " in done.stdout


def test_the_case_is_on_disk_before_it_runs_and_findings_survive_kill_9(tmp_path: Path) -> None:
    slow = textwrap.dedent(
        """
        import time
        import torch
        import kcheck
        from hypothesis import strategies as st
        from kcheck import strategies as ks

        @kcheck.target(cases=st.builds(kcheck.Case, x=ks.tensors((4,), "float32")), oracle=lambda x: x)
        def slow(x):
            time.sleep(30)
            return x
        """
    )
    (tmp_path / "kcheck_slow.py").write_text(slow)
    process = subprocess.Popen([*KCHECK, "fuzz", "kcheck_slow.py"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    running = tmp_path / ".kcheck" / "running.json"
    end = time.monotonic() + 60
    while not running.exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)
    process.kill()
    process.wait()
    assert json.loads(running.read_text())["case"]["args"]["x"]["view"]["dtype"] == "float32"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_found(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*KCHECK, "fuzz", str(KERNELS / "logits_rows.py"), "--max-examples", "100000", "--report", "json=report.json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "kcheck replay" in line:
            break
    process.send_signal(number)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in rest + errors
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["targets"][0]["findings"][0]["argument"] == "logits"
    assert list((tmp_path / ".kcheck" / "findings").glob("*.json"))


def test_an_unwritable_directory_is_one_sentence(kcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = kcheck("fuzz", "builtin:paged_gather", "--dir", "file/below")
    assert done.returncode == 2
    assert "choose another place with --dir" in sentence(done)


def test_the_readme_example_finds_its_bug_and_passes_when_it_is_fixed(kcheck: Run, tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (example,) = re.findall(r"```python\n(# kcheck_scale\.py\n.*?)```", readme, re.DOTALL)
    file = tmp_path / "kcheck_scale.py"
    file.write_text(example)
    wrong = kcheck("fuzz", *QUICK)
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert "out-of-view-read · x · kernel scale_kernel" in wrong.stdout
    pinned = kcheck("fuzz", *QUICK, "--set", "rows=64", "--layout", "x=transposed")
    assert pinned.returncode == 1, pinned.stdout + pinned.stderr
    fixed = example.replace("columns, columns, x.stride(1)", "columns, x.stride(0), x.stride(1)")
    assert fixed != example
    file.write_text(fixed)
    right = kcheck("fuzz", *QUICK)
    assert right.returncode == 0, right.stdout + right.stderr


def test_no_gpu_is_one_sentence(kcheck: Run) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = kcheck("fuzz", "builtin:paged_gather", "--backend", "cuda")
    assert done.returncode == 3
    assert "sees no CUDA GPU here" in sentence(done)


HOSTILE = {
    "changes the directory": "import os; os.chdir('/')",
    "leaves a thread": "import threading, time; threading.Thread(target=time.sleep, args=(1e6,)).start()",
    "deletes what kcheck keeps": "import shutil; shutil.rmtree('.kcheck', ignore_errors=True)",
    "prints without end": "print('x' * 3_000_000)",
    "has children that end": "import os; os.fork() or os._exit(0)",
    "takes the output away": "import sys; sys.stdout = sys.stderr = None",
    "closes standard streams": "import os; os.closerange(0, 3)",
    "ignores signals": "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_a_target_does_at_its_import_does_not_end_the_run(kcheck: Run, tmp_path: Path, what: str) -> None:
    (tmp_path / "kcheck_hostile.py").write_text(f"{HOSTILE[what]}\n" + (KERNELS / "controls.py").read_text())
    done = kcheck("fuzz", "kcheck_hostile.py::in_place", *QUICK, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_full_disk_under_standard_output_is_one_sentence(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*KCHECK, "fuzz", f"{KERNELS / 'controls.py'}::in_place", *QUICK],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
