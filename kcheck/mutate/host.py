"""The ways in which launches go wrong: what is changed in host code that launches kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from kcheck.mutate.kernel import name_of
from kcheck.mutate.syntax import Change, FunctionSource

_ALLOCATORS = {"empty", "zeros", "ones", "full", "new_empty", "new_zeros", "new_ones", "new_full"}


def changes(source: FunctionSource) -> Iterator[Change]:
    """Every change of one host function.

    Args:
        source: Its source.
    """
    fresh = _allocated(source)
    for node in _launching(source):
        match node:
            case ast.Subscript(value=ast.Call() as call, slice=index) if _is_stride(call) and not call.args:
                yield from _as_shape(source, fresh, node, call, index)
            case ast.Call():
                yield from _of_call(source, fresh, node)


def _launching(source: FunctionSource) -> Iterator[ast.AST]:
    """Nodes of the function, without the checks that reject arguments."""
    assert source.node is not None
    waiting: list[ast.AST] = [*source.node.body]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.Assert, ast.Raise)):
            continue
        yield node
        children = list(ast.iter_child_nodes(node))
        waiting += [child for child in children if not (isinstance(node, ast.If) and child is node.test)]


def _allocated(source: FunctionSource) -> set[str]:
    """Names of tensors that are allocated in the function, and nothing else."""
    assert source.node is not None
    given = {one.arg: {False} for one in ast.walk(source.node.args) if isinstance(one, ast.arg)}
    for node in source.body():
        if isinstance(node, ast.Assign):
            new = isinstance(node.value, ast.Call) and name_of(node.value) in _ALLOCATORS
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        given.setdefault(name.id, set()).add(new)
    return {name for name, kinds in given.items() if kinds == {True}}


def _of_call(source: FunctionSource, fresh: set[str], call: ast.Call) -> Iterator[Change]:
    match name_of(call), call.func, call.args:
        case "stride", ast.Attribute(), [index]:
            yield from _as_shape(source, fresh, call, call, index)
        case "contiguous", ast.Attribute(value=value), []:
            yield Change("contiguous dropped", (source.keep(call, value),), call)
        case "cdiv", _, [above, below]:
            yield Change("tail dropped", (source.floor(call, above, below),), call)
    for one, other in pairwise((*call.args, *(keyword.value for keyword in call.keywords))):
        if _stride_of(one) and _stride_of(one) == _stride_of(other):
            exchanged = source.put(one, source.of(other)), source.put(other, source.of(one))
            yield Change("strides swapped", exchanged, call)
    for argument in call.args:
        match argument:
            case ast.Starred(value=ast.Call(func=ast.Attribute(value=tensor, attr="stride"), args=[])):
                yield Change("strides swapped", (source.put(argument, f"{source.of(argument)}[::-1]"),), call)
                if not (isinstance(tensor, ast.Name) and tensor.id in fresh):
                    dense = f"*{source.of(tensor)}.contiguous().stride()"
                    yield Change("stride → shape", (source.put(argument, dense),), call)


def _is_stride(node: ast.expr) -> bool:
    """``x.stride(…)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stride"


def _stride_of(node: ast.expr) -> str:
    """What ``x.stride(0)`` is a stride of, ``x``; of a name that says so, what all strides have; ``""``: no stride."""
    if _is_stride(node):
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        return ast.dump(node.func.value)
    return "stride" if isinstance(node, ast.Name) and "stride" in node.id.lower() else ""


def _as_shape(
    source: FunctionSource, fresh: set[str], node: ast.expr, call: ast.Call, index: ast.expr
) -> Iterator[Change]:
    """The stride that a contiguous tensor would have: the product of the sizes behind."""
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id in fresh:
        return  # it is contiguous
    try:
        dimension = ast.literal_eval(index)
    except ValueError:
        return
    if not isinstance(dimension, int) or not isinstance(call.func, ast.Attribute):
        return
    text = "1"
    if dimension != -1:
        text = f"{source.of(call.func.value)}.shape[{dimension + 1}:].numel()"
    yield Change("stride → shape", (source.put(node, text),), node)
