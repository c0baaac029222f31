"""Whether a ``while`` loop can end by what another program does: whether its condition depends on memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Functions of triton.language that neither read memory nor call a function of the kernel's author.
_PURE = frozenset(
    "abs arange cast cdiv clamp exp exp2 full log log2 max maximum min minimum num_programs program_id sqrt "  # noqa: SIM905
    "sum to where zeros zeros_like".split()
)


def depends_on_memory(loop: ast.While) -> bool:
    """Whether the loop's condition, or a test that leaves its body, may depend on a value that was read in the loop.

    Every call that is not known to be pure counts as a read; where in doubt the answer is yes.
    """
    tainted: set[str] = set()
    while True:
        found = {name for target, value in _assignments(loop) if _reads(value, tainted) for name in _names(target)}
        if found <= tainted:
            break
        tainted |= found
    return any(_reads(test, tainted) for test in _tests(loop))


def _assignments(loop: ast.While) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, (ast.AugAssign, ast.NamedExpr, ast.AnnAssign)) and node.value is not None:
            yield node.target, node.value


def _tests(loop: ast.While) -> Iterator[ast.expr]:
    """The loop's condition, and those of the branches in its body, one of which may leave it or decide what it does."""
    yield loop.test
    for node in ast.walk(loop):
        if isinstance(node, (ast.If, ast.IfExp)):
            yield node.test


def _names(target: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _reads(value: ast.expr, tainted: set[str]) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id in tainted:
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _PURE:
                return True
    return False
