"""From changes of a syntax tree to edits of the text, which keep every line where it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from types import FunctionType

from kcheck.mutation import Edit, edited, source_of


@dataclass(frozen=True, slots=True)
class Change:
    """One way in which a function may be wrong.

    Attributes:
        operator: What kind of change it is.
        edits: The change.
        place: The expression that holds it.
    """

    operator: str
    edits: tuple[Edit, ...]
    place: ast.expr


class FunctionSource:
    """The text of a function in its file.

    Args:
        function: The function.

    Raises:
        LookupError: It has no source that can be read.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.text = source_of(function)
        self._starts = [0, *accumulate(len(line) + 1 for line in self.text.split(b"\n"))]
        self.node = self._find(self.text)
        if self.node is None:
            raise LookupError(f"{function.__qualname__} has no source")

    def _find(self, text: bytes) -> ast.FunctionDef | None:
        first = self.function.__code__.co_firstlineno
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return None
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == self.function.__code__.co_name:
                lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
                if min(lines) == first:
                    return node
        return None

    def body(self) -> Iterator[ast.AST]:
        """All nodes of the function's body."""
        assert self.node is not None
        for statement in self.node.body:
            yield from ast.walk(statement)

    def span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        """First byte of an expression in the file, and the byte behind it; parentheses around it do not count."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr) -> str:
        """The text of an expression."""
        start, end = self.span(node)
        return self.text[start:end].decode()

    def put(self, node: ast.expr, text: str) -> Edit:
        """Replace an expression; brackets are put around the replacement only where it needs them."""
        start, end = self.span(node)
        lines = "\n" * max(self.text[start:end].count(b"\n") - text.count("\n"), 0)
        bare, bracketed = Edit(start, end, text + lines), Edit(start, end, f"({text}{lines})")
        return bare if self.tree((bracketed,)) in (None, self.tree((bare,))) else bracketed

    def keep(self, node: ast.expr, part: ast.expr) -> Edit:
        """Replace an expression by a part of it."""
        return self.put(node, self.of(part))

    def drop(self, call: ast.Call, values: list[ast.expr]) -> tuple[Edit, ...]:
        """Leave out arguments of a call, the first never among them.

        Args:
            call: The call.
            values: Its arguments, in their order.
        """
        last = call.args[len(call.args) - sum(argument in values for argument in call.args) :]
        bracketed = any(self.text[: self.span(one)[0]].rstrip().endswith(b"(") for one in last)
        if bracketed or not all(argument in values for argument in last):  # those behind would move up
            return tuple(self.put(value, "None") for value in values)
        dropped: list[ast.expr | ast.keyword] = [
            *last,
            *(keyword for keyword in call.keywords if keyword.value in values),
        ]
        spans = sorted(self.span(one) for one in dropped)
        joined = [spans[0]]
        for start, end in spans[1:]:
            if re.fullmatch(rb",[ ]*", self.text[joined[-1][1] : start]):
                joined[-1] = joined[-1][0], end
            else:
                joined.append((start, end))
        return tuple(self._without(start, end) for start, end in joined)

    def _without(self, start: int, end: int) -> Edit:
        """Delete arguments of a call together with the comma behind them, or else with the one in front."""
        lines = "\n" * self.text[start:end].count(b"\n")
        if behind := re.match(rb"\s*,[ ]*", self.text[end:]):
            return Edit(start, end + behind.end(), lines + "\n" * behind.group().count(b"\n"))
        if front := re.search(rb",[ ]*$", self.text[:start]):
            start = front.start()
        return Edit(start, end, lines)

    def floor(self, node: ast.expr, above: ast.expr, below: ast.expr) -> Edit:
        """Replace a quotient that is rounded up by one that is rounded down."""
        divided, divisor = (
            self.of(one) if isinstance(one, (ast.Name, ast.Constant, ast.Call, ast.Attribute)) else f"({self.of(one)})"
            for one in (above, below)
        )
        return self.put(node, f"{divided} // {divisor}")

    def compare(self, node: ast.Compare, position: int, operator: str) -> Edit | None:
        """Replace the operator of a comparison.

        Args:
            node: The comparison.
            position: Which of its operators.
            operator: The new one.
        """
        left = node.comparators[position - 1] if position else node.left
        start, end = self.span(left)[1], self.span(node.comparators[position])[0]
        found = re.search(rb"[<>]=?", self.text[start:end])
        return Edit(start + found.start(), start + found.end(), operator) if found else None

    def tree(self, edits: tuple[Edit, ...]) -> str | None:
        """The function's syntax tree after a change, as text; None if there is none, or a line is not where it was."""
        text = edited(self.text, edits)
        if text.count(b"\n") != self.text.count(b"\n"):
            return None
        assert self.node is not None
        lines = text.split(b"\n")[self.function.__code__.co_firstlineno - 1 : self.node.end_lineno]
        inner = b"if True:\n" if lines[0][:1].isspace() else b""  # a method
        try:
            return ast.dump(ast.parse(inner + b"\n".join(lines)))
        except SyntaxError:
            return None

    def lines(self, edits: tuple[Edit, ...]) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        """The lines that a change is about: number of the first, before, after; common indentation removed."""
        before = self.text.decode().split("\n")
        after = edited(self.text, edits).decode().split("\n")
        changed = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        first, last = changed[0], changed[-1]
        old, new = before[first : last + 1], [line for line in after[first : last + 1] if line.strip()]
        indent = min((len(line) - len(line.lstrip()) for line in (*old, *new) if line.strip()), default=0)
        return first + 1, tuple(line[indent:] for line in old), tuple(line[indent:] for line in new)
