"""Imports files and modules of the user's as targets: in a fixed way, and with failures told in one sentence."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from kcheck.errors import TargetLoadError

PATTERN = "kcheck_*.py"  # of files with targets

_target_folders: set[str] = set()  # put in front of sys.path for a target file
_imports = 0  # of targets, that are going on


def target_folders() -> frozenset[str]:
    """Folders that are in ``sys.path`` because a file there was imported as a target file."""
    return frozenset(_target_folders)


def is_importing() -> bool:
    """Whether a target is being imported, so that what runs now was called by its file."""
    return _imports > 0


def import_module(name: str) -> ModuleType:
    """Import a module.

    Args:
        name: ``package.module``.

    Raises:
        TargetLoadError: It is broken, or there is none.
    """
    with _importing(name):
        return importlib.import_module(name)


def import_file(place: str) -> ModuleType:
    """Import a target file as pytest's prepend mode does: its folder, or its package's, comes first in ``sys.path``.

    Raises:
        TargetLoadError: It is broken, or there is none.
    """
    path = Path(place).resolve()
    if path.is_dir():
        raise TargetLoadError(f"{place} is a folder; name a file in it, or run in it without a name ({PATTERN})")
    if not path.is_file():
        raise TargetLoadError(f"{place}: no such file (current directory: {Path.cwd()})")
    if path.suffix != ".py":
        raise TargetLoadError(f"{place} is not a .py file")
    if "." in path.stem:
        raise TargetLoadError(
            f"{place}: a module's name has no dot; rename the file to {path.stem.replace('.', '_')}.py"
        )
    folder, parts = path.parent, [path.stem]
    while (folder / "__init__.py").exists():
        folder, parts = folder.parent, [folder.name, *parts]
    _forget_namesakes(folder)
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    _target_folders.add(str(folder))
    with _importing(place):
        return _execute(path, ".".join(parts))


def _execute(path: Path, name: str) -> ModuleType:
    """Run a file as a module, or return the module if it is imported already."""
    imported = sys.modules.get(name)
    if imported is not None and imported.__dict__.get("__file__") == str(path):
        return imported
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    elif imported is not None:  # a file named like an installed module: queue.py
        name = f"{name}_target"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _forget_namesakes(folder: Path) -> None:
    """Forget modules of other target folders that hide files of this one.

    ``a/kcheck_x.py`` and ``b/kcheck_x.py``, each with its own ``helpers.py``, must both load, in any order.
    """
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__") if "." not in name else None
        if not file:
            continue
        home = Path(file).parent.parent if Path(file).name == "__init__.py" else Path(file).parent
        here = (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()
        if str(home) in _target_folders and home != folder and here:
            for hiding in [other for other in sys.modules if other == name or other.startswith(f"{name}.")]:
                del sys.modules[hiding]


@contextlib.contextmanager
def _importing(place: str) -> Iterator[None]:
    """Import with stdout sent to stderr (a report may go to stdout) and with failures told in one sentence.

    Args:
        place: The file or module as the user named it.
    """
    global _imports
    _imports += 1
    stdout = os.dup(1)
    os.dup2(2, 1)  # subprocesses and C code print too
    try:
        with contextlib.redirect_stdout(sys.stderr), contextlib.redirect_stderr(sys.stderr), no_way_out():
            yield
    except (KeyboardInterrupt, TargetLoadError):
        raise
    except BaseException as error:  # SystemExit and pytest.skip are faults of the file too
        raise TargetLoadError(_explained(error, place)) from None
    finally:
        _imports -= 1
        os.dup2(stdout, 1)
        os.close(stdout)


@contextlib.contextmanager
def no_way_out() -> Iterator[None]:
    """Make an exception of `os._exit`: kcheck would end with a code that a target chooses, that of a pass too."""
    importer, leave = os.getpid(), os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() != importer:  # a child of the importing process
            leave(status)
        raise SystemExit(status)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave


def _explained(error: BaseException, place: str) -> str:
    """What happened, where, and what to do: one sentence."""
    if isinstance(error, SyntaxError) and error.filename:
        line = f": {error.text.strip()}" if error.text else ""
        return f"{_shown(Path(error.filename))}:{error.lineno or 1}: {type(error).__name__}: {error.msg}{line}"
    where, raised = _origin(error, place)
    if isinstance(error, SystemExit):
        return f"{where}: exits at import (code {error.code}); put what it runs under if __name__ == '__main__':"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f"{where}: no module named {error.name!r}{raised}; install it for {sys.executable}, or set PYTHONPATH to "
            "the folder that holds it"
        )
    text = " ".join(str(error).split())
    again = f"python {place}" if place.endswith(".py") else f'python -c "import {place}"'
    return f"{where}: {type(error).__name__}: {text}{raised}; a target must import cleanly, `{again}` shows it all"


def _origin(error: BaseException, place: str) -> tuple[str, str]:
    """``file:line`` in the user's file, and where else the exception was raised (empty if right there)."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in (__file__, importlib.__file__) and not frame.filename.startswith("<frozen importlib")
    ]
    if not frames:
        return place, ""
    mine = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    last = frames[-1]
    raised = "" if last is mine else f" (raised at {_shown(Path(last.filename))}:{last.lineno})"
    return f"{_shown(Path(mine.filename))}:{mine.lineno}", raised


def _shown(path: Path) -> str:
    """A path as the user sees it: relative if it is below the current directory."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
