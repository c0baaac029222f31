"""A set of attribute replacements that is built once and then applied and withdrawn as often as needed."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class PatchSet:
    """Replacements of attributes of modules and classes."""

    def __init__(self) -> None:
        self._new: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self._saved: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Replace ``owner.name`` by `value` whenever the set is applied."""
        self._new[id(owner), name] = (owner, name, value)

    def get(self, owner: Any, name: str) -> Any:
        """What ``owner.name`` is while the set is applied."""
        entry = self._new.get((id(owner), name))
        return getattr(owner, name) if entry is None else entry[2]

    def replacements(self) -> dict[int, Any]:
        """The new value of each replaced function, by the id of the original: for names that were imported directly.

        The originals must be in place when this is called.
        """
        found: dict[int, Any] = {}
        for owner, name, value in self._new.values():
            original = vars(owner).get(name, _MISSING)
            if original is not _MISSING and callable(original):
                found[id(original)] = value
        return found

    def apply(self) -> None:
        """Put every replacement in place."""
        for owner, name, value in self._new.values():
            self._saved.append((owner, name, vars(owner).get(name, _MISSING)))
            setattr(owner, name, value)

    def withdraw(self) -> None:
        """Put every original back."""
        while self._saved:
            owner, name, value = self._saved.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
