"""Turns the Python source of a kernel into a function that runs under the interpreter with Triton's semantics.

Python differs from the language that Triton compiles in a few places; each is rewritten to a call of `runtime`:
assigned numbers become tensors, ``a < b < c`` and ``and``/``or`` work on tensors, range variables are tensors,
``assert`` is a device assertion, a ``while`` loop reports its turns.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from kcheck.worker.backends.interpret import runtime
from kcheck.worker.backends.interpret.waiting import depends_on_memory

PREFIX = "_kcheck_"
_HELPERS: dict[str, Callable[..., Any]] = {
    PREFIX + "assign": runtime.assign,
    PREFIX + "range": runtime.device_range,
    PREFIX + "decided": runtime.decided,
    PREFIX + "combine": runtime.combine,
    PREFIX + "negate": runtime.negate,
    PREFIX + "check": runtime.check,
    PREFIX + "turn": runtime.turn,
}


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(PREFIX + name, ast.Load()), list(arguments), [])


class _KernelTransformer(ast.NodeTransformer):
    def __init__(self) -> None:
        self._temporaries = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = []
        node.returns = None
        node.args.defaults = []
        node.args.kw_defaults = [None] * len(node.args.kwonlyargs)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = ast.copy_location(_call("assign", node.value), node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        first: list[ast.expr] = [node.left]
        parts: list[ast.expr] = []
        for position, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            left = first.pop()
            if position < len(node.ops) - 1:  # used twice, evaluated once
                name = self._temporary()
                right = ast.NamedExpr(ast.Name(name, ast.Store()), right)
                first.append(ast.Name(name, ast.Load()))
            parts.append(ast.Compare(left, [operator], [right]))
        return ast.copy_location(self._chain("and", parts), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(self._chain("and" if isinstance(node.op, ast.And) else "or", node.values), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_call("negate", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        function = node.iter.func if isinstance(node.iter, ast.Call) else None
        named = isinstance(function, ast.Name) and function.id == "range"
        if named or (isinstance(function, ast.Attribute) and function.attr == "range"):
            assert isinstance(node.iter, ast.Call)
            node.iter.func = ast.copy_location(ast.Name(PREFIX + "range", ast.Load()), node.iter.func)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        waits = depends_on_memory(node)
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_call("turn", ast.Constant(waits))), node))
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        message = node.msg or ast.Constant("")
        return ast.copy_location(ast.Expr(_call("check", node.test, message)), node)

    def _chain(self, operator: str, values: list[ast.expr]) -> ast.expr:
        """``a and b``: ``t if decided("and", t := a) else combine("and", t, b)``, without short cut for tensors."""
        result = values[0]
        for value in values[1:]:
            name = self._temporary()
            test = _call("decided", ast.Constant(operator), ast.NamedExpr(ast.Name(name, ast.Store()), result))
            joined = _call("combine", ast.Constant(operator), ast.Name(name, ast.Load()), value)
            result = ast.IfExp(test, ast.Name(name, ast.Load()), joined)
        return result

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"{PREFIX}t{self._temporaries}"


def translator() -> ast.NodeTransformer:
    """Rewrites the statements and expressions of one kernel, all by the same one."""
    return _KernelTransformer()


class Rewriter:
    """Rewrites functions once each.

    Args:
        replacements: By the id of the original: Triton functions to use instead where a kernel's module imported them
            by name, out of reach of a patch of Triton's modules.
    """

    def __init__(self, replacements: dict[int, Any]) -> None:
        self._replacements = replacements
        self._done: WeakKeyDictionary[FunctionType, FunctionType] = WeakKeyDictionary()

    def rewritten(self, function: FunctionType) -> FunctionType:
        """The function to run in place of a kernel or device function."""
        new = self._done.get(function)
        if new is None:
            new = self._done[function] = self._rewrite(function)
        return new

    def _rewrite(self, function: FunctionType) -> FunctionType:
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            return function  # made by exec: it runs as it is
        # Indented source is put under an `if` instead of dedented: a string in it may reach further to the left.
        tree = ast.parse("if True:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
        node = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        _KernelTransformer().visit(node)
        given = _HELPERS | self._imported_by_name(function)
        code = _compile(node, {*function.__code__.co_freevars, *given}, first - 1, function.__code__.co_filename)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        closure = tuple(cells[name] if name in cells else CellType(given[name]) for name in code.co_freevars)
        new = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
        new.__kwdefaults__ = function.__kwdefaults__
        new.__qualname__ = function.__qualname__
        return new

    def _imported_by_name(self, function: FunctionType) -> dict[str, Any]:
        found = {}
        for name in _global_names(function.__code__):
            value = function.__globals__.get(name)
            if id(value) in self._replacements:
                found[name] = self._replacements[id(value)]
        return found


def _global_names(code: CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _compile(node: ast.FunctionDef, free: set[str], first_line: int, filename: str) -> CodeType:
    """Compile a function whose `free` names are closure variables, on its original lines."""
    arguments = ast.arguments([], [ast.arg(name) for name in sorted(free)], None, [], [], None, [])
    factory = ast.FunctionDef(PREFIX + "factory", arguments, [node], [], None)
    factory.type_params = []  # type: ignore[attr-defined, unused-ignore]  # required from Python 3.12 on
    module = ast.fix_missing_locations(ast.Module([factory], []))
    ast.increment_lineno(module, first_line - 1)
    outer = compile(module, filename, "exec", dont_inherit=True)
    for _ in range(2):
        outer = next(constant for constant in outer.co_consts if isinstance(constant, CodeType))
    return outer
