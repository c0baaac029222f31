"""The example database: whatever is wrong with its folder, no run notices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kcheck.engine.examples import MOST_BYTES, MOST_EXAMPLES, MOST_KEYS, Examples
from kcheck.events import CaseVerdict
from kcheck.store import Store

from .conftest import Ran, stray

KEY = b"key"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shared" / "examples"


def values(folder: Path) -> set[bytes]:
    return set(Examples(folder).fetch(KEY))


def only(folder: Path) -> Path:
    """The one example's file."""
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def test_what_is_saved_is_fetched_and_deleted(folder: Path) -> None:
    database = Examples(folder)
    assert values(folder) == set()
    database.save(KEY, b"one")
    database.save(KEY, b"two")
    database.save(b"other", b"three")
    assert values(folder) == {b"one", b"two"}
    database.delete(KEY, b"one")
    database.move(KEY, b"other", b"two")
    assert values(folder) == set()
    assert set(database.fetch(b"other")) == {b"two", b"three"}


def test_what_is_saved_later_is_not_read(folder: Path) -> None:
    Examples(folder).save(KEY, b"one")
    saved = only(folder).stat().st_mtime
    assert list(Examples(folder, saved + 1).fetch(KEY)) == [b"one"]
    assert list(Examples(folder, saved - 1).fetch(KEY)) == []


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def grown(path: Path) -> None:
    os.truncate(path, MOST_BYTES + 1)


def key_replaced_by_a_file(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("")


def vanished(path: Path) -> None:
    shutil.rmtree(path.parent.parent)


def replaced_by_a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGES = [
    replaced_by_a_folder,
    replaced_by_a_pipe,
    replaced_by_a_link_to_itself,
    replaced_by_a_device,
    grown,
    key_replaced_by_a_file,
    vanished,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_no_example_is_passed_over(folder: Path, damage: Callable[[Path], None]) -> None:
    database = Examples(folder)
    database.save(KEY, b"one")
    damage(only(folder))
    assert b"one" not in set(database.fetch(KEY))
    database.save(KEY, b"one")
    database.save(KEY, b"two")
    database.delete(KEY, b"one")
    database.move(KEY, b"other", b"two")


class Refusing(Examples):
    """A file system that says no to everything, as a full, locked or read-only one does to root too."""

    def _of(self, key: bytes) -> Path:
        raise PermissionError(13, "no")


def test_a_file_system_that_refuses_is_borne(folder: Path) -> None:
    database = Refusing(folder)
    database.save(KEY, b"one")
    database.delete(KEY, b"one")
    database.move(KEY, b"other", b"one")
    assert list(database.fetch(KEY)) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_leaves_no_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    Examples(folder).save(KEY, b"one")
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_examples_and_keys_are_limited(folder: Path) -> None:
    database = Examples(folder)
    for number in range(MOST_EXAMPLES + 20):
        database.save(KEY, str(number).encode())
    assert len(values(folder)) == MOST_EXAMPLES
    for number in range(MOST_KEYS + 5):
        database.save(f"key {number}".encode(), b"one")
    Examples(folder)
    assert len(list(folder.iterdir())) <= MOST_KEYS


HAMMER = """
import sys
from pathlib import Path
from kcheck.engine.examples import Examples
database = Examples(Path(sys.argv[1]))
for number in range(300):
    database.save(b"key", str(number % 40).encode())
    if number % 3 == 0:
        database.delete(b"key", str(number % 7).encode())
    if number % 5 == 0:
        database.move(b"key", b"other", str(number % 11).encode())
    assert all(value.isdigit() for value in database.fetch(b"key"))
"""


def test_processes_share_a_folder_that_is_removed_meanwhile(folder: Path) -> None:
    command = [sys.executable, "-c", HAMMER, str(folder)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    while any(process.poll() is None for process in processes):
        shutil.rmtree(folder, ignore_errors=True)
    for process in processes:
        assert process.communicate()[1] == ""
        assert process.returncode == 0


def test_a_run_reads_garbage_and_finds_what_it_would_find(run: Callable[..., Ran], tmp_path: Path, whole: Ran) -> None:
    """The files of an earlier run, overwritten one and all."""
    run(stray, sweep=False)
    files = [path for path in (tmp_path / "store" / "examples").rglob("*") if path.is_file()]
    assert files
    for number, path in enumerate(files):
        path.write_bytes([b"", b"\xff" * 50, b"\x80\x00\x7f", os.urandom(200)][number % 4])
    ran = run(stray)
    assert ran.results[0].verdict is CaseVerdict.FINDINGS
    assert [d.fingerprint for d in ran.results[0].discoveries] == [d.fingerprint for d in whole.results[0].discoveries]


def test_a_database_of_its_own_is_used(tmp_path: Path) -> None:
    assert Store(tmp_path / "a", tmp_path / "b").examples("t.py::t") == tmp_path / "b" / "t.py_t"
    assert Store(tmp_path / "a").examples("t.py::t") == tmp_path / "a" / "examples" / "t.py_t"
