"""A kernel's source as steps: pieces of Python without branches, and the branches between them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from weakref import WeakKeyDictionary

from kcheck.worker.backends.batched.values import NotBatched
from kcheck.worker.backends.interpret.rewrite import PREFIX, translator
from kcheck.worker.backends.interpret.waiting import depends_on_memory

_REFUSED = {
    ast.Break: "break", ast.Continue: "continue", ast.Try: "try", ast.With: "with",
    ast.FunctionDef: "a nested function", ast.Lambda: "lambda", ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension", ast.DictComp: "a comprehension", ast.GeneratorExp: "a comprehension",
    ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Delete: "del", ast.ClassDef: "a class", ast.Yield: "yield",
    ast.Raise: "raise", ast.Await: "await", ast.Import: "import", ast.ImportFrom: "import",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plain:
    """Statements without branches.

    Attributes:
        code: To be executed.
        discard: It is one call whose result nobody uses.
    """

    code: CodeType
    discard: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """``if``.

    Attributes:
        test: Expression.
        body: Steps.
        orelse: Steps.
    """

    test: CodeType
    body: Sequence[Step]
    orelse: Sequence[Step]


@dataclass(frozen=True, slots=True)
class For:
    """``for``.

    Attributes:
        target: Code that assigns ``_kcheck_item`` to the loop variable.
        values: Expression: a `Range`, or any iterable.
        body: Steps.
    """

    target: CodeType
    values: CodeType
    body: Sequence[Step]


@dataclass(frozen=True, slots=True)
class While:
    """``while``.

    Attributes:
        test: Expression.
        body: Steps.
        waits: Memory decides when it ends, so that another program can end it.
    """

    test: CodeType
    body: Sequence[Step]
    waits: bool


@dataclass(frozen=True, slots=True)
class Return:
    """``return``; `value` is an expression."""

    value: CodeType | None


Step = Plain | If | For | While | Return
ITEM = PREFIX + "item"


@dataclass(slots=True, eq=False)
class Source:
    """A function in steps.

    Attributes:
        steps: Its body.
        signature: Its parameters.
        refused: What in it cannot be run here; ``""`` if nothing.
    """

    steps: Sequence[Step]
    signature: inspect.Signature
    refused: str = ""


_known: WeakKeyDictionary[FunctionType, Source] = WeakKeyDictionary()


def source_of(function: FunctionType) -> Source:
    """The steps of a kernel or device function.

    Raises:
        NotBatched: It has a construct that cannot be run here.
    """
    found = _known.get(function)
    if found is None:
        found = _known[function] = _read(function)
    if found.refused:
        raise NotBatched(found.refused)
    return found


def _read(function: FunctionType) -> Source:
    signature = inspect.signature(function)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return Source((), signature, "a function without source")
    tree = ast.parse("if True:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
    node = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    ast.increment_lineno(node, first - 2)
    try:
        return Source(_Reader(function.__code__.co_filename).block(node.body), signature)
    except NotBatched as reason:
        return Source((), signature, reason.reason)


class _Reader:
    def __init__(self, filename: str) -> None:
        self._filename = filename
        self._transformer = translator()
        self._conditional = 0

    def block(self, statements: Sequence[ast.stmt]) -> tuple[Step, ...]:
        """The steps of some statements; neighbours without branches become one."""
        steps: list[Step] = []
        plain: list[ast.stmt] = []

        def flush() -> None:
            if plain:
                steps.append(Plain(self._statements(plain)))
                plain.clear()

        for statement in statements:
            parts = [*self._hoisted(statement), statement]
            for part in parts:
                step = self._step(part)
                if step is None:
                    if not isinstance(part, ast.Pass) and not _is_text(part):
                        plain.append(part)
                else:
                    flush()
                    steps.append(step)
        flush()
        return tuple(steps)

    def _step(self, node: ast.stmt) -> Step | None:
        """The step of a statement; None if it can be joined with its neighbours."""
        if isinstance(node, ast.If):
            return If(self._expression(node.test), self.block(node.body), self.block(node.orelse))
        if isinstance(node, ast.While):
            if node.orelse or any(isinstance(one, ast.IfExp) for one in ast.walk(node.test)):
                raise NotBatched("this while loop")
            waits = depends_on_memory(node)
            return While(self._expression(node.test), self.block(node.body), waits)
        if isinstance(node, ast.For):
            if node.orelse:
                raise NotBatched("for ... else")
            return self._loop(node)
        if isinstance(node, ast.Return):
            return Return(None if node.value is None else self._expression(node.value))
        for part in ast.walk(node):
            if type(part) in _REFUSED:
                raise NotBatched(_REFUSED[type(part)])
        self._check_targets(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _is_atomic(node.value):
            inner = (part for argument in node.value.args for part in ast.walk(argument))
            return Plain(self._statements([node]), discard=not any(map(_is_atomic, inner)))
        return None

    def _loop(self, node: ast.For) -> For:
        values = node.iter
        function = values.func if isinstance(values, ast.Call) else None
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if isinstance(values, ast.Call) and name in ("range", "static_range"):
            values.func = ast.copy_location(ast.Name(PREFIX + name, ast.Load()), values.func)
        assign = ast.Assign([node.target], ast.Name(ITEM, ast.Load()))
        ast.copy_location(assign, node)
        self._check_targets(assign)
        return For(self._compiled([assign]), self._expression(values), self.block(node.body))

    def _hoisted(self, statement: ast.stmt) -> list[ast.stmt]:
        """Conditional expressions of a statement as branches in front of it, which leave names in their place."""
        if isinstance(statement, (ast.For, ast.While)):
            return []
        root = statement.test if isinstance(statement, ast.If) else statement
        found = [node for node in ast.walk(root) if isinstance(node, ast.IfExp)]
        if not found:
            return []
        _check_order(root, found)
        before: list[ast.stmt] = []

        reader = self
        direct = statement.value if isinstance(statement, ast.Assign) else None

        class Hoist(ast.NodeTransformer):
            def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
                reader._conditional += 1
                name = f"{PREFIX}c{reader._conditional}"
                sides = [ast.Assign([ast.Name(name, ast.Store())], side) for side in (node.body, node.orelse)]
                branch = ast.If(node.test, [sides[0]], [sides[1]])
                for made in (*sides, branch):
                    ast.copy_location(made, node)
                for side in sides if node is not direct else ():
                    setattr(side, _KEEP, True)
                before.append(ast.fix_missing_locations(branch))
                return ast.copy_location(ast.Name(name, ast.Load()), node)

        if isinstance(statement, ast.If):
            statement.test = Hoist().visit(statement.test)
        else:
            Hoist().visit(statement)
        return before

    def _check_targets(self, node: ast.stmt) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for part in ast.walk(target) if target is not None else ():
                if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
                    raise NotBatched("an assignment to a part of an object")

    def _expression(self, node: ast.expr) -> CodeType:
        for part in ast.walk(node):
            if type(part) in _REFUSED:
                raise NotBatched(_REFUSED[type(part)])
        changed = self._transformer.visit(node)
        tree = ast.fix_missing_locations(ast.Expression(changed))
        return compile(tree, self._filename, "eval", dont_inherit=True)

    def _statements(self, nodes: Sequence[ast.stmt]) -> CodeType:
        return self._compiled([self._changed(node) for node in nodes])

    def _changed(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.AnnAssign):
            if node.value is None:
                return ast.copy_location(ast.Pass(), node)
            value = self._transformer.visit(node.value)
            return ast.copy_location(ast.Assign([node.target], value), node)
        if isinstance(node, ast.Assign) and hasattr(node, _KEEP):
            node.value = self._transformer.visit(node.value)
            return node
        changed: ast.stmt = self._transformer.visit(node)
        return changed

    def _compiled(self, nodes: Sequence[ast.stmt]) -> CodeType:
        module = ast.fix_missing_locations(ast.Module(list(nodes), []))
        return compile(module, self._filename, "exec", dont_inherit=True)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_atomic(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("atomic")


_KEEP = "_kcheck_keeps_numbers"  # an assignment that does not turn numbers into tensors


_HARMLESS = frozenset(("abs", "float", "int", "isinstance", "len", "max", "min", "range"))


def _check_order(root: ast.AST, found: Sequence[ast.IfExp]) -> None:
    """Refuse conditional expressions that would be evaluated too early in front of their statement."""
    inside = {id(part) for node in found for part in ast.walk(node)}
    reads = any(isinstance(part, ast.Call) for node in found for part in ast.walk(node))
    for node in ast.walk(root):
        if isinstance(node, ast.BoolOp) and any(one in found for value in node.values[1:] for one in ast.walk(value)):
            raise NotBatched("a conditional expression behind and/or")
        if id(node) in inside or not isinstance(node, ast.Call) or not reads:
            continue
        name = getattr(node.func, "id", "")
        if _is_atomic(node) or (not isinstance(node.func, ast.Attribute) and name not in _HARMLESS):
            raise NotBatched("a conditional expression beside calls")
