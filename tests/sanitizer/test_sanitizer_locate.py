"""compute-sanitizer is found on PATH, in a toolkit, in the wheels; what cannot start is told in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kcheck.errors import CouldNotCheck
from kcheck.sanitizer.locate import locate

SAYS_VERSION = "#!/bin/sh\necho 'NVIDIA (R) Compute Sanitizer'; echo 'Version 2025.3.1.0 (build 1) (public-release)'\n"
LIBRARY, LAUNCHER = "libTreeLauncherTargetInjection.so", "TreeLauncherSubreaper"


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kcheck.sanitizer.locate._TOOLKIT", str(tmp_path / "no-toolkit"))
    monkeypatch.setattr(
        "kcheck.sanitizer.locate.WHEELS", ("kcheck-fake-sanitizer-api", "kcheck-fake-sanitizer-api-cu12")
    )


def executable(path: Path, text: str = SAYS_VERSION, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def wheel(site: Path, name: str, version: str, *files: str) -> None:
    for file in files:
        executable(site / file, mode=0o644)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def cu13(site: Path) -> Path:
    folder = "nvidia/cu13/compute-sanitizer"
    wheel(
        site, "kcheck-fake-sanitizer-api", "13.5.25", "nvidia/cu13/bin/compute-sanitizer",
        *(f"{folder}/{name}" for name in ("compute-sanitizer", LIBRARY, LAUNCHER)),
    )  # fmt: skip
    return site / folder


def test_where_there_is_none_one_sentence_says_what_is_missing() -> None:
    with pytest.raises(CouldNotCheck) as caught:
        locate({})
    assert str(caught.value).startswith("compute-sanitizer is missing: it is not on PATH")
    assert str(caught.value).endswith("pip install 'kcheck[sanitizer]'")


def test_path_comes_first(tmp_path: Path) -> None:
    found = executable(tmp_path / "bin/compute-sanitizer")
    executable(tmp_path / "cuda/bin/compute-sanitizer")
    sanitizer = locate({"PATH": str(found.parent), "CUDA_HOME": str(tmp_path / "cuda")})
    assert (sanitizer.path, sanitizer.origin, sanitizer.version) == (found, "PATH", "2025.3.1.0")
    assert sanitizer.injection_path is None


@pytest.mark.parametrize("name", ["CUDA_HOME", "CUDA_PATH"])
@pytest.mark.parametrize("folder", ["bin", "compute-sanitizer"])
def test_a_toolkit(name: str, folder: str, tmp_path: Path) -> None:
    found = executable(tmp_path / folder / "compute-sanitizer")
    assert (locate({name: str(tmp_path)}).path, locate({name: str(tmp_path)}).origin) == (found, name)


def test_the_wheel_gets_its_run_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cu13(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    sanitizer = locate({})
    assert sanitizer.path == folder / "compute-sanitizer"
    assert (sanitizer.origin, sanitizer.injection_path) == ("kcheck-fake-sanitizer-api 13.5.25", None)
    assert os.access(folder / LAUNCHER, os.X_OK)


def test_libraries_in_a_folder_of_their_own_need_the_injection_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("n/bin/compute-sanitizer", f"n/lib/{LIBRARY}", f"n/lib/{LAUNCHER}")
    wheel(tmp_path, "kcheck-fake-sanitizer-api-cu12", "12.9.99", *files)
    monkeypatch.syspath_prepend(tmp_path)
    assert locate({}).injection_path == tmp_path / "n/lib"


def test_a_wheel_without_the_launcher_is_passed_over_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path, "kcheck-fake-sanitizer-api-cu12", "12.9.79", "n/bin/compute-sanitizer", f"n/lib/{LIBRARY}")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CouldNotCheck, match=r"cu12 12\.9\.79 cannot start a program.*kcheck\[sanitizer\]"):
        locate({})
    folder = cu13(tmp_path)
    assert locate({}).path.parent == folder


def test_run_bits_that_may_not_be_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, mode: int) -> None:
        raise PermissionError("Operation not permitted")

    path = executable(tmp_path / "bin/compute-sanitizer", mode=0o644)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(CouldNotCheck, match=rf"not executable .* chmod \+x {path}"):
        locate({"CUDA_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#!/bin/sh\necho broken >&2; exit 3\n", "exits with 3 and names no version; it says: broken"),
        ("#!/no/such/shell\n", "does not start"),
    ],
)
def test_what_does_not_start_is_told(text: str, says: str, tmp_path: Path) -> None:
    executable(tmp_path / "bin/compute-sanitizer", text)
    with pytest.raises(CouldNotCheck, match=says):
        locate({"CUDA_HOME": str(tmp_path)})
