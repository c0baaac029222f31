"""Finds compute-sanitizer: on PATH, in a CUDA toolkit, or in NVIDIA's wheels."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kcheck.errors import CouldNotCheck

EXECUTABLE = "compute-sanitizer"
INSTALL = "pip install 'kcheck[sanitizer]'"
WHEELS = ("nvidia-cuda-sanitizer-api", "nvidia-cuda-sanitizer-api-cu12")
_TOOLKIT = "/usr/local/cuda"
_LIBRARY = "libTreeLauncherTargetInjection.so"
# compute-sanitizer starts the program through this helper. Of the wheels only nvidia-cuda-sanitizer-api >= 13.5.25 has
# it; 13.0.85, 13.3.75, 13.4.57 and -cu12 12.9.79 fail in execve, say "couldn't find exit code" and exit with 255
# (observed with 2025.2.1, 2025.3.1, 2026.2.1).
_LAUNCHER = "TreeLauncherSubreaper"
_HELPERS = (_LAUNCHER, "TreeLauncherTargetLdPreloadHelper")
_START_TIMEOUT = 60.0  # seconds; --version takes 0.1 s


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """A compute-sanitizer that starts.

    Attributes:
        path: The executable.
        version: As it prints it, for example ``2025.3.1.0``.
        injection_path: Folder of its libraries, where it does not find them by itself.
        origin: Where it was found: ``PATH``, ``CUDA_HOME``, ``CUDA_PATH``, ``/usr/local/cuda``, or a wheel's name and
            version.
    """

    path: Path
    version: str
    injection_path: Path | None
    origin: str


def locate(environ: Mapping[str, str] = os.environ) -> Sanitizer:
    """The first compute-sanitizer that starts.

    Args:
        environ: Where PATH, CUDA_HOME and CUDA_PATH are read from.

    Raises:
        CouldNotCheck: There is none, or those that there are do not start.
    """
    problems = []
    for origin, path, is_wheel in _candidates(environ):
        try:
            return _checked(origin, path, is_wheel=is_wheel)
        except CouldNotCheck as problem:
            problems.append(problem)
    if problems:
        raise problems[0]
    raise CouldNotCheck(
        f"{EXECUTABLE} is missing: it is not on PATH, not in CUDA_HOME, CUDA_PATH or {_TOOLKIT}, and its wheel is not "
        f"installed; {INSTALL}"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path, bool]]:
    """Origin, path, and whether it is a wheel's."""
    on_path = shutil.which(EXECUTABLE, path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path), False
    for origin, root in (*((name, environ.get(name)) for name in ("CUDA_HOME", "CUDA_PATH")), (_TOOLKIT, _TOOLKIT)):
        for folder in (EXECUTABLE, "bin"):
            path = Path(root, folder, EXECUTABLE) if root else None
            if path is not None and path.is_file():
                yield origin, path, False
    for name in WHEELS:
        yield from _in_wheel(name)


def _in_wheel(name: str) -> Iterator[tuple[str, Path, bool]]:
    try:
        wheel = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return
    found = [Path(str(file.locate())) for file in wheel.files or () if file.name == EXECUTABLE]
    # 13.5.25 has the program in compute-sanitizer/ and a shell script in bin/ that calls it.
    for path in sorted(found, key=lambda path: path.parent.name != EXECUTABLE)[:1]:
        yield f"{name} {wheel.version}", path, True


def _checked(origin: str, path: Path, *, is_wheel: bool) -> Sanitizer:
    libraries = _libraries(path)
    if is_wheel and (libraries is None or not (libraries / _LAUNCHER).is_file()):
        raise CouldNotCheck(
            f"{EXECUTABLE} of {origin} cannot start a program, because that wheel lacks the helper {_LAUNCHER}; "
            f"{INSTALL}, which takes {WHEELS[0]} 13.5.25 or later"
        )
    for executable in (path, *((libraries / name for name in _HELPERS) if libraries else ())):
        _make_executable(executable)
    injection_path = libraries if libraries not in (None, path.resolve().parent) else None
    return Sanitizer(path=path, version=_version(path), injection_path=injection_path, origin=origin)


def _libraries(path: Path) -> Path | None:
    """Folder of the libraries: the executable's own, or ``lib`` beside it. None: not known, a wrapper script's say.

    With the libraries in ``lib``, 12.9.79 finds them only through ``--injection-path``: else it ends with 13 and
    "Unable to find injection library" (observed with 2025.2.1).
    """
    folder = path.resolve().parent
    return next((place for place in (folder, folder.parent / "lib") if (place / _LIBRARY).is_file()), None)


def _make_executable(path: Path) -> None:
    """Give a file its run bits: installers of wheels may drop them (observed with 12.9.79 and pip 23.2)."""
    if not path.is_file() or os.access(path, os.X_OK):
        return
    try:
        path.chmod(path.stat().st_mode | 0o111)
    except OSError as error:
        raise CouldNotCheck(
            f"{path} is not executable and kcheck may not change that ({error}); chmod +x {path}"
        ) from None


def _version(path: Path) -> str:
    try:
        answer = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_START_TIMEOUT, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CouldNotCheck(f"{path} does not start: {error}") from None
    match = re.search(r"\bVersion (\d+(?:\.\d+)+)", answer.stdout)
    if match is None:
        said = " ".join((answer.stderr or answer.stdout).split())[:200] or "nothing"
        raise CouldNotCheck(f"{path} --version exits with {answer.returncode} and names no version; it says: {said}")
    return match[1]
