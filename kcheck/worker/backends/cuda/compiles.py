"""Compiles: which kernel was specialised anew, how long it took, and which argument caused it."""

from __future__ import annotations

from typing import Any

from kcheck.worker.backends.base import Compile


class CompileLog:
    """A Triton compilation listener; it lives as long as the worker: a cause is a difference between two cases."""

    def __init__(self) -> None:
        self.compiles: list[Compile] = []
        self._last: dict[str, dict[str, str]] = {}

    def __call__(self, *, src: Any, metadata: Any, metadata_group: Any, times: Any, cache_hit: bool) -> None:
        """Note one compile (the interface of ``triton.knobs.CompilationListener``)."""
        known = self._last.get(src.name)
        current = _specialisation(src)
        cause = "" if known is None else ", ".join(_differences(known, current))
        self._last[src.name] = current
        self.compiles.append(Compile(src.name, times.total / 1e6, cache_hit, cause))

    def take(self) -> list[Compile]:
        """The compiles since the last call."""
        taken, self.compiles = self.compiles, []
        return taken


def _specialisation(src: Any) -> dict[str, str]:
    """What a compiled kernel is specialised on, by argument, as text."""
    names = list(src.fn.arg_names)
    found = {str(name): str(kind) for name, kind in src.signature.items()}
    for path, value in src.constants.items():
        found[_argument(path, names)] = f"= {value}"
    for path, properties in src.attrs.items():
        hints = " ".join(f"{key.removeprefix('tt.')} {value}" for key, value in properties)
        found[_argument(path, names)] = f"{found.get(_argument(path, names), '')} {hints}".strip()
    return found


def _argument(path: Any, names: list[str]) -> str:
    first = path[0] if isinstance(path, tuple) else path
    return names[first] if isinstance(first, int) and first < len(names) else str(first)


def _differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [
        f"{name}: {before.get(name, 'not given')} → {after.get(name, 'not given')}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
