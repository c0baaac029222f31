"""Source text of functions without kcheck: what a target and its oracle use, imported or copied.

A module that needs neither kcheck nor Hypothesis is imported. From others, the target's own file among them, the
statements that the functions use are copied.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import symtable
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType

from kcheck.emit.prelude import MODULES

CHECKERS = frozenset({"kcheck", "hypothesis"})
RESERVED = "the test itself"
SHARED = {name: name for name in MODULES}  # a test imports them under their own names
BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__"}


class Entangled(Exception):
    """The source cannot be separated from kcheck; the text says why, as the end of a sentence."""


class Source:
    """The text of an imported module.

    Args:
        module: The module.

    Raises:
        Entangled: It has no Python source.
    """

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        file = inspect.getsourcefile(module) if getattr(module, "__file__", None) else None
        if file is None:
            raise Entangled(f"{module.__name__} has no source")
        self.path = Path(file)
        text = self.path.read_text(encoding="utf-8")
        self.lines = text.splitlines()
        self.tree = ast.parse(text)

    @cached_property
    def bindings(self) -> dict[str, list[ast.stmt]]:
        """Statements of the module, by the names that they bind."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for name in bound_names(statement):
                found.setdefault(name, []).append(statement)
        return found

    @property
    def checks(self) -> bool:
        """The module imports kcheck or Hypothesis."""
        return any(name.partition(".")[0] in CHECKERS for node in ast.walk(self.tree) for name in _imported(node))

    @property
    def future(self) -> bool:
        """Annotations are not evaluated."""
        return "annotations" in self.bindings and any(
            isinstance(s, ast.ImportFrom) and s.module == "__future__" for s in self.bindings["annotations"]
        )

    def origin(self, statement: ast.ImportFrom) -> str:
        """The absolute name of the module that is imported from."""
        name = "." * statement.level + (statement.module or "")
        return importlib.util.resolve_name(name, self.module.__package__) if statement.level else name

    def text(self, statement: ast.stmt) -> str:
        """The lines of a statement, with the comment right above it."""
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        while first > 1 and self.lines[first - 2].startswith("#") and not self.lines[first - 2].startswith("#!"):
            first -= 1
        return "\n".join(self.lines[first - 1 : statement.end_lineno])

    def star_origin(self, name: str) -> str | None:
        """The module that a name comes from by ``from … import *``."""
        for statement in self.tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                origin = self.origin(statement)
                if hasattr(sys.modules.get(origin), name):
                    return origin
        return None


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module


def _check_inner_imports(source: Source, statement: ast.AST) -> None:
    """Raises `Entangled` where a statement imports something that a copy of it must not or could not."""
    for node in ast.walk(statement):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if any(name.partition(".")[0] in CHECKERS for name in _imported(node)):
            raise Entangled(f"{source.path.name}:{node.lineno} imports kcheck or Hypothesis")
        if isinstance(node, ast.ImportFrom) and node.level:
            raise Entangled(f"{source.path.name}:{node.lineno} imports relatively")


def bound_names(statement: ast.stmt) -> set[str]:
    """Names that a statement of a module binds; those bound inside of functions and classes are not among them."""
    table = symtable.symtable(ast.unparse(statement), "<statement>", "exec")
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}


def used_names(text: str) -> set[str]:
    """Names that code takes from its module, in nested functions too."""

    def visit(table: symtable.SymbolTable, top: bool) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from visit(child, False)

    return set(visit(symtable.symtable(text, "<code>", "exec"), True)) - BUILTINS


class Copier:
    """Gathers what functions need.

    Args:
        reserved: Names that the test has for itself.

    Attributes:
        imports: Import statements, one name each.
        taken: Names that are bound by now, with the module they come from.
        future: Some copied code counts on ``from __future__ import annotations``.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.imports: set[str] = set()
        self.taken = dict.fromkeys(reserved, RESERVED) | SHARED
        self.future = False
        self._sources: dict[str, Source] = {}
        self._copied: dict[tuple[str, int], str] = {}

    def source(self, name: str) -> Source:
        """The source of an imported module.

        Raises:
            Entangled: It has none.
        """
        if name not in self._sources:
            module = sys.modules.get(name)
            if module is None:
                raise Entangled(f"the module {name} cannot be read")
            self._sources[name] = Source(module)
        return self._sources[name]

    @property
    def pieces(self) -> list[tuple[Path, str]]:
        """Copied statements in their order, with the file each comes from; files that others use first."""
        order = {name: i for i, name in enumerate(reversed(self._sources))}
        keys = sorted(self._copied, key=lambda key: (order[key[0]], key[1]))
        return [(self._sources[name].path, self._copied[name, line]) for name, line in keys]

    def use(self, source: Source, text: str) -> None:
        """Provide what some code of a module uses.

        Raises:
            Entangled: It cannot be had without kcheck.
        """
        self.future |= source.future
        for name in sorted(used_names(text)):
            self.provide(source, name)

    def provide(self, source: Source, name: str) -> None:
        """Provide one name of a module."""
        home = source.module.__name__
        if self.taken.get(name) == home:
            return
        statements = source.bindings.get(name)
        if statements is None:
            origin = source.star_origin(name)
            if origin is not None:
                self._from(source, origin, name, name)
            return
        imports = [s for s in statements if isinstance(s, (ast.Import, ast.ImportFrom))]
        if imports:
            self._import(source, imports[-1], name)
            return
        self._take(name, home)
        for statement in statements:
            if (home, statement.lineno) not in self._copied:
                _check_inner_imports(source, statement)
                text = source.text(statement)
                self._copied[home, statement.lineno] = text
                for other in bound_names(statement):
                    self._take(other, home)
                self.use(source, text)

    def _take(self, name: str, home: str) -> None:
        if self.taken.setdefault(name, home) != home:
            raise Entangled(f"{name} means one thing in {self.taken[name]} and another in {home}")

    def _import(self, source: Source, statement: ast.Import | ast.ImportFrom, name: str) -> None:
        alias = next(a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
        if isinstance(statement, ast.ImportFrom):
            self._from(source, source.origin(statement), alias.name, name)
            return
        # `import a.b` and `import a.c` both bind `a`.
        same = [a.name for s in source.bindings[name] if isinstance(s, ast.Import) for a in s.names if not a.asname]
        for module in [alias.name] if alias.asname else [m for m in same if m.partition(".")[0] == name]:
            self._refuse(module)
            self.imports.add(f"import {module}" + (f" as {name}" if alias.asname else ""))
        self._take(name, alias.name if alias.asname else name)

    def _from(self, source: Source, origin: str, name: str, bound: str) -> None:
        if origin == "__future__":
            return
        submodule = f"{origin}.{name}"
        if isinstance(getattr(sys.modules.get(origin), name, None), ModuleType) and submodule in sys.modules:
            self._refuse(submodule)
        elif origin.partition(".")[0] in CHECKERS and not origin.startswith("kcheck.targets."):
            raise Entangled(f"{source.path.name} uses {origin}.{name}")
        elif self._needs_checker(origin):
            if bound != name:
                raise Entangled(f"{source.path.name} imports {name} of {origin}, which needs kcheck, as {bound}")
            self.provide(self.source(origin), name)
            return
        self._take(bound, f"{origin}:{name}")
        self.imports.add(f"from {origin} import {name}" + (f" as {bound}" if bound != name else ""))

    def _refuse(self, module: str) -> None:
        if module.partition(".")[0] in CHECKERS or self._needs_checker(module):
            raise Entangled(f"the code uses {module}")

    def _needs_checker(self, name: str) -> bool:
        """Whether importing a module of the user's imports kcheck or Hypothesis too."""
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if module is None or not file or not file.endswith(".py") or name.partition(".")[0] in ("torch", "triton"):
            return False
        try:
            return self.source(name).checks
        except (Entangled, OSError, SyntaxError, UnicodeDecodeError):
            return False
