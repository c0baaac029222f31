"""What a test calls: the function of a target and its oracle, as source text."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from kcheck.emit import prelude
from kcheck.emit.copied import Copier, Entangled, Source
from kcheck.loader import BUILTIN, LoadedTarget, builtin_module

ORACLE = "reference"


@dataclass(frozen=True, slots=True)
class Subject:
    """Code for the head of a test.

    Attributes:
        call: Expression of the function under test.
        oracle: Expression of the oracle; ``""`` without one.
        imports: Import statements.
        names: Names that the code binds.
        pieces: Further statements, each with the file that it is copied from; None: made here.
        future: The code counts on ``from __future__ import annotations``.
        entangled: Why it needs kcheck, as the end of a sentence; ``""`` if it does not.
    """

    call: str
    oracle: str
    imports: tuple[str, ...]
    names: frozenset[str]
    pieces: tuple[tuple[Path | None, str], ...] = ()
    future: bool = False
    entangled: str = ""


def subject(loaded: LoadedTarget, home: Path) -> Subject:
    """The code of a target.

    Args:
        loaded: The target.
        home: Folder of the test to be written.
    """
    try:
        return _separated(loaded)
    except Entangled as reason:
        return _imported(loaded, home, str(reason))


def _separated(loaded: LoadedTarget) -> Subject:
    target = loaded.target
    copier = Copier(prelude.NAMES)
    source = copier.source(target.function.__module__)
    name = target.function.__name__
    definition, keywords = _definition(copier, source, name, target.line)
    pieces: list[tuple[Path | None, str]] = []
    copier.future |= source.future
    _claim(copier, name)
    copier.use(source, definition)
    oracle = ""
    if target.oracle is not None:
        if "oracle" not in keywords:
            raise Entangled(f"where {name} gets its oracle cannot be seen")
        home, expression = keywords["oracle"]
        oracle, text = _oracle(expression)
        if text:
            _claim(copier, oracle)
            copier.use(home, text)
            pieces.append((None, text))
        else:
            copier.provide(home, oracle)
    pieces.append((source.path, definition))
    names = frozenset(copier.taken)
    return Subject(name, oracle, tuple(sorted(copier.imports)), names, (*copier.pieces, *pieces), copier.future)


def _claim(copier: Copier, name: str) -> None:
    if copier.taken.setdefault(name, "test") != "test":
        raise Entangled(f"the name {name} is used twice")


def _definition(copier: Copier, source: Source, name: str, line: int) -> tuple[str, dict[str, tuple[Source, ast.expr]]]:
    """The function without the decorator that makes it a target, and that one's keywords."""
    for node in source.bindings.get(name, []):
        if isinstance(node, ast.FunctionDef) and node.lineno <= (node.end_lineno or 0) and _spans(node, line):
            for decorator in node.decorator_list:
                keywords = _keywords(copier, source, decorator)
                if "cases" in keywords:
                    return _without(source, node, decorator), keywords
    raise Entangled(f"{name} is not a function of {source.path.name} that is decorated there")


def _spans(node: ast.FunctionDef, line: int) -> bool:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first <= line <= (node.end_lineno or first)


def _without(source: Source, node: ast.FunctionDef, decorator: ast.expr) -> str:
    """The text of a function, with its other decorators."""
    others = [f"@{ast.unparse(other)}" for other in node.decorator_list if other is not decorator]
    return "\n".join([*others, *source.lines[node.lineno - 1 : node.end_lineno]])


def _keywords(copier: Copier, source: Source, node: ast.expr) -> dict[str, tuple[Source, ast.expr]]:
    """Keyword arguments of a call, through variables that hold what an earlier call made, in other modules too."""
    if isinstance(node, ast.Call):
        given = {keyword.arg: (source, keyword.value) for keyword in node.keywords if keyword.arg}
        return _keywords(copier, source, node.func) | given
    if not isinstance(node, ast.Name):
        return {}
    for statement in source.bindings.get(node.id, []):
        if isinstance(statement, ast.Assign):
            return _keywords(copier, source, statement.value)
        if isinstance(statement, ast.ImportFrom) and source.origin(statement) in sys.modules:
            alias = next(a for a in statement.names if (a.asname or a.name) == node.id)
            return _keywords(copier, copier.source(source.origin(statement)), ast.Name(alias.name))
    return {}


def _oracle(expression: ast.expr) -> tuple[str, str]:
    """The oracle's name, and the statement that defines it; ``""`` where the name is all."""
    if isinstance(expression, ast.Name):
        return expression.id, ""
    if isinstance(expression, ast.Lambda):
        arguments, body = ast.unparse(expression.args), ast.unparse(expression.body)
        return ORACLE, f"def {ORACLE}({arguments}):\n    return {body}"
    return ORACLE, f"{ORACLE} = {ast.unparse(expression)}"


def _imported(loaded: LoadedTarget, home: Path, reason: str) -> Subject:
    """The target as kcheck has it."""
    place, _, name = loaded.spec.rpartition(":")
    oracle = f"{name}.oracle" if loaded.target.oracle is not None else ""
    call = f"{name}.function"
    if loaded.spec.startswith(BUILTIN):
        return Subject(
            call, oracle, (f"from {builtin_module(name)} import {name}",), frozenset({name}), entangled=reason
        )
    place = place.rstrip(":")
    if not place.endswith(".py"):
        return Subject(call, oracle, (f"from {place} import {name}",), frozenset({name}), entangled=reason)
    module = inspect.getmodule(loaded.target.function)
    dotted = module.__name__ if module is not None else Path(place).stem
    folder = Path(place).resolve().parents[dotted.count(".")]
    lines = [f"from {dotted} import {name}"]
    if folder != home.resolve():
        relative = os.path.relpath(folder, home)
        lines = ["import sys", f'sys.path.insert(0, os.path.join(os.path.dirname(__file__), "{relative}"))', *lines]
    return Subject(call, oracle, tuple(lines), frozenset({name}), entangled=reason)
