"""``[tool.kcheck]`` in pyproject.toml: the project's targets, its options, and what it changes in the profiles.

A key is an option of the command line without its dashes. The command line wins over a profile of the project, that
over the built-in profile, and that over the project's own options.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kcheck.errors import UsageError

PROFILES = ("pr", "nightly")
RANDOM_SEED = "random"
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class _Key:
    """What a key may hold."""

    expected: str
    accepts: Callable[[Any], bool]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0.1


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_SECONDS = _Key("a number of seconds, 0.1 or more", _is_seconds)
_OPTIONS = {
    "max-examples": _Key("a number, 0 or more", _is_count),
    "max-time": _SECONDS,
    "total-time": _SECONDS,
    "workers": _Key("a number, 1 or more", lambda value: _is_count(value) and value > 0),
    "case-timeout": _SECONDS,
    "seed": _Key(
        f"a number below 2**32, or {RANDOM_SEED!r}",
        lambda value: value == RANDOM_SEED or (_is_count(value) and value < 2**32),
    ),
    "sweep": _Key("true or false", lambda value: isinstance(value, bool)),
    "fail-on": _Key(f"one of {', '.join(SEVERITIES)}", lambda value: value in SEVERITIES),
    "allow-skip": _Key("a list of names of targets, or of 'all'", _are_texts),
    "baseline": _Key("the path of a file", lambda value: isinstance(value, str) and value != ""),
    "database": _Key("the path of a folder", lambda value: isinstance(value, str) and value != ""),
}
_KEYS = {
    "targets": _Key("a list of names", _are_texts),
    "profile": _Key(f"one of {', '.join(PROFILES)}, or a table of them", lambda value: value in PROFILES),
    **_OPTIONS,
}


@dataclass(frozen=True, slots=True)
class Config:
    """What the project says.

    Attributes:
        targets: Names of targets; files relative to the current directory.
        profile: Profile of a run that names none, ``""`` for none.
        options: Option → value, for every run. A path is relative to the current directory.
        profiles: Profile → option → value.
    """

    targets: tuple[str, ...] = ()
    profile: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def defaults(self, profile: str, built_in: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Options that a run has unless the command line says otherwise.

        Args:
            profile: Name of the profile, ``""`` for none.
            built_in: Profile → option → value, where the project does not say otherwise.
        """
        values = {**self.options, **built_in.get(profile, {}), **self.profiles.get(profile, {})}
        return {name: value for name, value in values.items() if (name, value) != ("seed", RANDOM_SEED)}


def problem(key: str, value: Any) -> str:
    """What is wrong with the value of an option, ``""`` if nothing."""
    return "" if _OPTIONS[key].accepts(value) else f"{value!r}; expected {_OPTIONS[key].expected}"


def project_folder() -> Path:
    """The nearest folder, from the current one upwards, with a pyproject.toml; the current one if there is none."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "pyproject.toml").is_file()), here)


def read() -> Config:
    """Read the nearest pyproject.toml.

    Raises:
        UsageError: The file or the table is not what it should be.
    """
    file = project_folder() / "pyproject.toml"
    if not file.is_file():
        return Config()
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{os.path.relpath(file)}: cannot be read: {error}") from None
    try:
        return _config(tool.get("kcheck", {}) if isinstance(tool, dict) else {}, file.parent)
    except UsageError as error:
        raise UsageError(f"{os.path.relpath(file)}: {error}") from None


def _config(table: Any, folder: Path) -> Config:
    if not isinstance(table, dict):
        raise UsageError(f"tool.kcheck is {table!r}; expected a table [tool.kcheck]")
    named = table.get("profile", {})
    profiles = named if isinstance(named, dict) else {}
    for name in profiles:
        if name not in PROFILES:
            raise UsageError(f"[tool.kcheck.profile] has no profile {name!r}; there are {', '.join(PROFILES)}")
    values = _checked({k: v for k, v in table.items() if v is not profiles}, "[tool.kcheck]", _KEYS, folder)
    return Config(
        targets=tuple(values.pop("targets", ())),
        profile=values.pop("profile", ""),
        options=values,
        profiles={
            name: _checked(own, f"[tool.kcheck.profile.{name}]", _OPTIONS, folder) for name, own in profiles.items()
        },
    )


def _checked(table: Any, where: str, keys: Mapping[str, _Key], folder: Path) -> dict[str, Any]:
    """The table, with paths relative to the current directory.

    Raises:
        UsageError: A key is unknown, or holds what it must not.
    """
    if not isinstance(table, dict):
        raise UsageError(f"{where} is {table!r}; expected a table")
    for key, value in table.items():
        if key not in keys:
            raise UsageError(f"{where} has no key {key!r}; known keys: {', '.join(keys)}")
        if not keys[key].accepts(value):
            raise UsageError(f"{where} {key} is {value!r}; expected {keys[key].expected}")
    paths = {key: os.path.relpath(folder / table[key]) for key in ("baseline", "database") if key in table}
    specs = {"targets": [_here(spec, folder) for spec in table["targets"]]} if "targets" in table else {}
    return {**table, **paths, **specs}


def _here(spec: str, folder: Path) -> str:
    return os.path.relpath(folder / spec) if spec.partition("::")[0].endswith(".py") else spec
