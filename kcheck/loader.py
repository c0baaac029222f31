"""From what the user names to targets: files, modules, built-ins, ``[tool.kcheck]`` and discovery.

The supervisor and the worker load the same spec with this module and must get the same target: what is imported
depends on the spec, the current directory and ``sys.path``, never on what was loaded before.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from kcheck import config, importing
from kcheck.errors import NoTargetError, TargetLoadError
from kcheck.importing import PATTERN
from kcheck.target import Target
from kcheck.targets import registry

BUILTIN = registry.BUILTIN
FORMS = "file.py, file.py::name, package.module, package.module:name or builtin:name"
HOW_TO_DECLARE = "decorate a function with @kcheck.target(cases=..., oracle=...)"
SKIPPED_FOLDERS = frozenset({"build", "node_modules", "__pycache__"})


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
            f"{PATTERN} below {Path.cwd()}; `kcheck list` shows {len(builtin_names())} built-in ones, as "
            f"{BUILTIN}paged_gather"
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
        return _targets(importing.import_file(place), f"{place}::", name if colons else None)
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
        return importing.import_file(place)
    if not all(part.isidentifier() for part in place.split(".")):
        raise TargetLoadError(f"{place!r} does not name a module; the forms are {FORMS}")
    return importing.import_module(place)


def _search_project() -> None:
    for folder in (config.project_folder(), Path.cwd()):
        if str(folder) not in sys.path:  # behind all else: a source tree must not hide an installed torch
            sys.path.append(str(folder))


def _is_file(place: str) -> bool:
    return place.endswith(".py") or os.sep in place or Path(place).is_file() or _is_plain_folder(place)


def builtin_names() -> list[str]:
    """Names of the built-in targets, sorted; imports none of them."""
    return sorted(registry.modules())


def builtin_file(name: str) -> Path:
    """The file that declares a built-in target.

    Args:
        name: Its name, without ``builtin:``.

    Raises:
        TargetLoadError: There is no such target.
    """
    return Path(__file__).parent.joinpath(*builtin_module(name).split(".")[1:]).with_suffix(".py")


def builtin_module(name: str) -> str:
    """The module that declares a built-in target: a pair's two share one.

    Args:
        name: Its name, without ``builtin:``.

    Raises:
        TargetLoadError: There is no such target.
    """
    known = registry.modules()
    if name not in known:
        near = " or ".join(difflib.get_close_matches(name, known))
        guess = f"did you mean {near}? " if near else ""
        raise TargetLoadError(f"no built-in target {name!r}; {guess}`kcheck list` shows all {len(known)}")
    return known[name]


def configured() -> list[str]:
    """Names under ``[tool.kcheck] targets`` in the nearest pyproject.toml, files relative to the current directory.

    Raises:
        UsageError: The file or the table is not what it should be.
    """
    return list(config.read().targets)


def discovered() -> list[str]:
    """Files ``kcheck_*.py`` below the current directory, sorted.

    Hidden folders, virtual environments and folders that cannot be read are skipped.
    """
    found: list[str] = []
    for folder, folders, files in os.walk("."):
        folders[:] = [name for name in folders if not _is_skipped(Path(folder, name))]
        found += [str(Path(folder, name)) for name in fnmatch.filter(files, PATTERN)]
    return sorted(found)


def _is_skipped(folder: Path) -> bool:
    is_environment = os.path.exists(folder / "pyvenv.cfg")  # Path.exists raises where it may not look
    return is_environment or folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS


def _load_builtin(name: str) -> LoadedTarget:
    target: Target = getattr(importing.import_module(builtin_module(name)), name)
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
