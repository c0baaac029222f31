"""Walks through a JSON document; a value that is not what it should be is refused by its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from kcheck.case import Case
from kcheck.document import case_from_json
from kcheck.errors import InvalidDocument, UsageError
from kcheck.fill import Number, number_from_json

E = TypeVar("E", bound=StrEnum)
MOST_INTEGER = 1 << 63
MOST_SECONDS = 10**10  # three centuries
MOST_BYTES = 1 << 28  # of a document; a device has no end


def read_node(path: Path, what: str) -> Node:
    """Read a document.

    Args:
        path: The file.
        what: What it is, for errors: ``report``.

    Raises:
        UsageError: The file cannot be read.
        InvalidDocument: It is not strict JSON.
    """
    try:
        return Node(json.loads(_text(path), parse_constant=_refuse_constant), "")
    except OSError as error:
        raise UsageError(f"the {what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidDocument(str(path), f"is not UTF-8 text; expected a JSON {what}") from None
    except InvalidDocument as error:
        raise InvalidDocument(f"{path}: {error.where}", error.problem) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError
        raise InvalidDocument(str(path), f"is not JSON: {error}") from None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InvalidDocument("document", f"is larger than {MOST_BYTES >> 20} MiB")
    return data.decode()


def _refuse_constant(name: str) -> Any:
    raise InvalidDocument("document", f"contains {name}, which is not JSON; write it as a string")


class Node:
    """One value of a document, and its place.

    Args:
        value: The value.
        where: Its place, ``targets[0].name``.
    """

    def __init__(self, value: Any, where: str) -> None:
        self.value = value
        self.where = where or "document"
        self._prefix = f"{where}." if where else ""

    def _as(self, kind: type, article: str) -> Any:
        if type(self.value) is not kind:
            raise InvalidDocument(self.where, f"is {self.value!r:.60}; expected {article}")
        return self.value

    def get(self, key: str) -> Node:
        """The entry of an object."""
        fields = self._as(dict, "an object")
        if key not in fields:
            raise InvalidDocument(self.where, f"has no {key!r}")
        return Node(fields[key], f"{self._prefix}{key}")

    def entries(self) -> Iterator[tuple[str, Node]]:
        """All entries of an object."""
        for key, value in self._as(dict, "an object").items():
            yield key, Node(value, f"{self._prefix}{key}")

    def items(self) -> list[Node]:
        """The items of a list."""
        return [Node(value, f"{self.where}[{i}]") for i, value in enumerate(self._as(list, "a list"))]

    def text(self) -> str:
        """A string."""
        return str(self._as(str, "a string"))

    def texts(self) -> tuple[str, ...]:
        """A list of strings."""
        return tuple(item.text() for item in self.items())

    def integer(self) -> int:
        """An integer."""
        value = int(self._as(int, "an integer"))
        if abs(value) >= MOST_INTEGER:
            raise InvalidDocument(self.where, "is beyond 64 bits; expected an integer")
        return value

    def integers(self) -> tuple[int, ...]:
        """A list of integers."""
        return tuple(item.integer() for item in self.items())

    def count(self) -> int:
        """An integer that is not negative."""
        if self.integer() < 0:
            raise InvalidDocument(self.where, f"is {self.value}; expected an integer >= 0")
        return self.integer()

    def number(self) -> Number:
        """A number, or ``"nan"``, ``"inf"``, ``"-inf"``."""
        return number_from_json(self.value, self.where)

    def seconds(self) -> float:
        """A number of seconds."""
        value = self.number()
        if not 0 <= value <= MOST_SECONDS:
            raise InvalidDocument(self.where, f"is {self.value!r:.60}; expected seconds from 0 to {MOST_SECONDS:,}")
        return value

    def boolean(self) -> bool:
        """True or false."""
        return bool(self._as(bool, "true or false"))

    def case(self) -> Case:
        """A case."""
        try:
            return case_from_json(self.value)
        except InvalidDocument as error:
            raise InvalidDocument(f"{self.where}.{error.where}", error.problem) from None

    def member(self, enum: type[E]) -> E:
        """The value of an enumeration."""
        known = [member.value for member in enum]
        if self.value not in known:
            raise InvalidDocument(self.where, f"is {self.value!r:.60}; expected one of {', '.join(known)}")
        return enum(self.value)
