"""From what the user names to targets: files, modules, built-ins, ``[tool.kcheck]`` and discovery.

The supervisor and the worker load the same spec with this module and must get the same target: what is imported
depends on the spec, the current directory and ``sys.path``, never on what was loaded before.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from kcheck import config
from kcheck.errors import NoTargetError, TargetLoadError
from kcheck.target import Target

BUILTIN = "builtin:"
FORMS = "file.py, file.py::name, package.module, package.module:name or builtin:name"
HOW_TO_DECLARE = "decorate a function with @kcheck.target(cases=..., oracle=...)"
PATTERN = "kcheck_*.py"
SKIPPED_FOLDERS = frozenset({"build", "node_modules", "__pycache__"})

_target_folders: set[str] = set()  # put in front of sys.path for a target file
_imports = 0  # of targets, that are going on


@dataclass(frozen=True, slots=True)
class LoadedTarget:
    """A target and how to name it.

    Attributes:
        target: The target.
        spec: What loads exactly this target again: ``kcheck_gather.py::gather``, ``builtin:paged_gather``.
        is_namesake: Another target of the run has the same name.
    """

    target: Target
    spec: str
    is_namesake: bool = False

    @property
    def title(self) -> str:
        """What reports call it: no two targets of a run the same."""
        return self.spec if self.is_namesake else self.target.name


def select(specs: Sequence[str] = ()) -> list[LoadedTarget]:
    """Load what the user names; without a name what the project configures, else the files ``kcheck_*.py``.

    Args:
        specs: Names as `load` takes them.

    Returns:
        At least one target, in the order of their names, none twice.

    Raises:
        NoTargetError: Nothing is configured and there is no such file.
        UsageError: The configuration is wrong.
        TargetLoadError: A target file is broken.
    """
    found: dict[str, LoadedTarget] = {}
    here = Path.cwd()
    for spec in specs or configured() or discovered():
        found |= {loaded.spec: loaded for loaded in load(spec)}
        os.chdir(here)  # an import may go elsewhere; other targets, and reports, are named from here
    if not found:
        raise NoTargetError(
            f"no target: name one ({FORMS}), list some under [tool.kcheck] targets in pyproject.toml, or have a file "
            f"{PATTERN} below {Path.cwd()}; built-in ones: {', '.join(BUILTIN + name for name in builtin_names())}"
        )
    names = Counter(one.target.name for one in found.values())
    return [replace(one, is_namesake=names[one.target.name] > 1) for one in found.values()]


def load(spec: str) -> list[LoadedTarget]:
    """Load the targets that one name stands for.

    Args:
        spec: A file, module or built-in, in one of the forms of `FORMS`.

    Raises:
        TargetLoadError: There is no such target, or its file is broken.
    """
    if spec.startswith(BUILTIN):
        return [_load_builtin(spec.removeprefix(BUILTIN))]
    place, colons, name = spec.partition("::")
    if colons or _is_file(place):
        _search_project()
        return _targets(_import_file(place), f"{place}::", name if colons else None)
    place, colons, name = spec.partition(":")
    if place.endswith(".py") and colons:
        raise TargetLoadError(f"{spec!r}: a name in a file takes two colons: {place}::{name}")
    return _targets(module(place), f"{place}:", name if colons else None)


def module(place: str) -> ModuleType:
    """Import a file or a module of the user's, as target files see it.

    Args:
        place: ``folder/file.py`` or ``package.module``.

    Raises:
        TargetLoadError: There is none, or it is broken.
    """
    _search_project()
    if _is_file(place):
        return _import_file(place)
    if not all(part.isidentifier() for part in place.split(".")):
        raise TargetLoadError(f"{place!r} does not name a module; the forms are {FORMS}")
    with _importing(place):
        return importlib.import_module(place)


def _search_project() -> None:
    for folder in (config.project_folder(), Path.cwd()):
        if str(folder) not in sys.path:  # behind all else: a source tree must not hide an installed torch
            sys.path.append(str(folder))


def target_folders() -> frozenset[str]:
    """Folders that are in ``sys.path`` because a file there was imported as a target file."""
    return frozenset(_target_folders)


def _is_file(place: str) -> bool:
    return place.endswith(".py") or os.sep in place or Path(place).is_file() or _is_plain_folder(place)


def is_importing() -> bool:
    """Whether a target is being imported, so that what runs now was called by its file."""
    return _imports > 0


def builtin_names() -> list[str]:
    """Names of the built-in targets, each a module of `kcheck.targets`; imports none of them."""
    folder = Path(__file__).with_name("targets")
    return sorted(info.name for info in pkgutil.iter_modules([str(folder)]) if not info.name.startswith("_"))


def configured() -> list[str]:
    """Names under ``[tool.kcheck] targets`` in the nearest pyproject.toml, files relative to the current directory.

    Raises:
        UsageError: The file or the table is not what it should be.
    """
    return list(config.read().targets)


def discovered() -> list[str]:
    """Files ``kcheck_*.py`` below the current directory, sorted; hidden folders and virtual environments skipped."""
    files: list[str] = []
    for folder, folders, _ in os.walk("."):
        folders[:] = [name for name in folders if not _is_skipped(Path(folder, name))]
        files += [str(file) for file in Path(folder).glob(PATTERN)]
    return sorted(files)


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists()


def _load_builtin(name: str) -> LoadedTarget:
    names = builtin_names()
    if name not in names:
        raise TargetLoadError(f"no built-in target {name!r}; there are {', '.join(names)}")
    module = f"kcheck.targets.{name}"
    with _importing(module):
        target: Target = getattr(importlib.import_module(module), name)
    return LoadedTarget(target, BUILTIN + name)


def _targets(module: ModuleType, prefix: str, name: str | None) -> list[LoadedTarget]:
    """Targets of a module in the order of their declaration.

    Args:
        module: The imported module.
        prefix: What a spec has in front of the name: ``kcheck_gather.py::``.
        name: Variable, or name in reports, of the wanted one; None: all.
    """
    place = prefix.rstrip(":")
    found: dict[Target, str] = {}
    for variable, value in vars(module).items():
        if isinstance(value, Target):
            found.setdefault(value, variable)
    if not found:
        raise TargetLoadError(f"{place} declares no target; {HOW_TO_DECLARE}")
    wanted = [target for target, variable in found.items() if name in (None, variable)]
    wanted = wanted or [target for target in found if target.name == name]  # a spec has the variable: it comes first
    if not wanted:
        raise TargetLoadError(f"{place} has no target {name!r}; it has {', '.join(found.values())}")
    return [LoadedTarget(target, prefix + found[target]) for target in wanted]


def _is_plain_folder(place: str) -> bool:
    return place != "" and Path(place).is_dir() and not Path(place, "__init__.py").exists()


def _import_file(place: str) -> ModuleType:
    """Import a target file as pytest's prepend mode does: its folder, or its package's, comes first in ``sys.path``."""
    path = Path(place).resolve()
    if path.is_dir():
        raise TargetLoadError(f"{place} is a folder; name a file in it, or run in it without a name ({PATTERN})")
    if not path.is_file():
        raise TargetLoadError(f"{place}: no such file (current directory: {Path.cwd()})")
    if path.suffix != ".py":
        raise TargetLoadError(f"{place} is not a .py file")
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
        with contextlib.redirect_stdout(sys.stderr), contextlib.redirect_stderr(sys.stderr), _no_way_out():
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
def _no_way_out() -> Iterator[None]:
    """Make an exception of `os._exit`: kcheck would end with a code that the file chooses, that of a pass too."""
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
