"""The ways in which kernels go wrong: what is changed in a kernel or a device function.

Only what decides *where* a kernel reads and writes is changed, not what it computes: names that lead to an address, a
mask or a branch are followed back to where they come from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kcheck.mutate.syntax import Change, FunctionSource

# Accesses: position of the mask among the arguments; the address is the first.
_ATOMICS = ("add", "max", "min", "and", "or", "xor", "xchg")
_ACCESSES = {"load": 1, "store": 2, "atomic_cas": 9, **{f"atomic_{name}": 2 for name in _ATOMICS}}
_POINTERS = ("make_block_ptr", "make_tensor_descriptor", "advance")
_WIDENED = {ast.Lt: ("<=", ""), ast.LtE: ("<", "+ 1"), ast.Gt: (">=", ""), ast.GtE: (">", "- 1")}
_NARROWED = {ast.Lt: "- 1", ast.Gt: "+ 1"}
_ACROSS = {"sum", "max", "min", "xor_sum", "argmax", "argmin", "reduce", "dot", "dot_scaled", "cumsum", "cumprod"}
_ACROSS |= {"associative_scan", "sort", "topk", "softmax", "histogram", "gather"}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def changes(source: FunctionSource) -> Iterator[Change]:
    """Every change of one kernel or device function.

    Args:
        source: Its source.
    """
    places = Places(source)
    for node in source.body():
        match node:
            case ast.Call():
                yield from _of_call(source, places, node)
            case ast.Compare():
                yield from _of_comparison(source, places, node)
            case ast.BinOp():
                yield from _of_operation(source, places, node)
            case ast.AugAssign(op=ast.Add() | ast.Sub()) if places.address(node.value):
                yield Change("offset dropped", (source.put(node.value, "0"),), node.value)
            case ast.If() if places.vary(node.test):
                if isinstance(node.body[-1], ast.Return):
                    yield Change("guard dropped", (source.put(node.test, "False"),), node.test)
                elif not node.orelse:
                    yield Change("guard dropped", (source.put(node.test, "True"),), node.test)
            case ast.For(iter=ast.Call() as call) if name_of(call) in ("range", "static_range"):
                yield from _of_range(source, call)


class Places:
    """Names of a function that lead to an address, a mask or a branch.

    Args:
        source: The function.

    Attributes:
        mixes_lanes: What one lane holds reaches others; else the value of a lane that is masked off goes nowhere.
    """

    def __init__(self, source: FunctionSource) -> None:
        body = list(source.body())
        assert source.node is not None
        arguments = source.node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        parameters = {one.arg for one in every}
        constants = {one.arg for one in every if one.annotation and "constexpr" in source.of(one.annotation)}
        own = parameters | {n.id for n in body if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self._varying = own - constants
        self.mixes_lanes = any(isinstance(node, ast.Call) and name_of(node) in _ACROSS for node in body)
        flows = [flow for node in body for flow in _flows(node)]
        addresses = [address for node in body for address in _addresses(node)]
        decisive = [*addresses, *(use for node in body for use in _conditions(node))]
        self._names = _sources(decisive, flows) & own
        located = _sources(addresses, flows) & own
        addresses += [value for names, value in flows if names & located]
        self._within = {part for address in addresses for part in _parts(address)}

    def decide(self, expression: ast.expr) -> bool:
        """Whether a name in it is one of these."""
        return bool(_names(expression) & self._names)

    def address(self, expression: ast.expr) -> bool:
        """Whether its value becomes part of an address."""
        return expression in self._within

    def vary(self, test: ast.expr) -> bool:
        """Whether a test compares sizes or positions; one of constants, or of None, chooses a variant of the kernel."""
        compares = [one for one in ast.walk(test) if isinstance(one, ast.Compare)]
        ordered = all(isinstance(operator, _ORDER) for one in compares for operator in one.ops)
        return bool(compares) and ordered and bool(_names(test) & self._varying)


def name_of(call: ast.Call) -> str:
    """The last name of what is called: ``load`` of ``tl.load(…)``."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _addresses(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are addresses, or parts of them."""
    match node:
        case ast.Call() if name_of(node) in _ACCESSES:
            yield from node.args[:1] or [one.value for one in node.keywords if one.arg == "pointer"]
        case ast.Call() if name_of(node) in _POINTERS:
            yield from [*node.args, *(keyword.value for keyword in node.keywords)]


def _conditions(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are masks, bounds or conditions of branches."""
    match node:
        case ast.Call() if name_of(node) in _ACCESSES:
            mask = _argument(node, "mask", _ACCESSES[name_of(node)])
            yield from [mask] if mask is not None else []
        case ast.If(test=test) | ast.While(test=test):
            yield test
        case ast.For(iter=iterated):
            yield iterated


def _flows(node: ast.AST) -> Iterator[tuple[set[str], ast.expr]]:
    """Names, and the value that they get."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield {name for target in targets for name in _names(target)}, value
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield _names(target), value
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.For(target=target, iter=value):
            yield _names(target), value


def _sources(uses: list[ast.expr], flows: list[tuple[set[str], ast.expr]]) -> set[str]:
    """Names in some expressions, and those that they come from."""
    found = {name for use in uses for name in _names(use)}
    before = -1
    while before < len(found):
        before = len(found)
        found = found.union(*(_names(value) for names, value in flows if names & found))
    return found


def _names(node: ast.AST) -> set[str]:
    """Names in an expression."""
    return {part.id for part in _parts(node) if isinstance(part, ast.Name)}


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """An expression and those in it; what is read at an address is not the address."""
    if isinstance(node, ast.Call) and name_of(node) in _ACCESSES:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _parts(child)


def _argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """An argument that is given, and is not None."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    if given is None and len(call.args) > position:
        given = call.args[position]
    return None if isinstance(given, ast.Constant) and given.value is None else given


def _of_call(source: FunctionSource, places: Places, call: ast.Call) -> Iterator[Change]:
    name = name_of(call)
    match name, call.args:
        case _ if name in _ACCESSES:
            yield from _of_access(source, places, call, name)
        case "cdiv", [above, below]:
            yield Change("tail dropped", (source.floor(call, above, below),), call)
        case "to", [ast.Attribute(attr="int64" | "uint64")] if isinstance(call.func, ast.Attribute):
            yield Change("cast dropped", (source.keep(call, call.func.value),), call)
        case "cast", [value, ast.Attribute(attr="int64" | "uint64")]:
            yield Change("cast dropped", (source.keep(call, value),), call)
        case "program_id", _:
            axis = _argument(call, "axis", 0)
            if isinstance(axis, ast.Constant) and axis.value in (0, 1, 2):
                yield Change("program axis", (source.put(axis, "1" if axis.value == 0 else "0"),), call)
        case "where", [condition, value, _] if places.decide(condition):
            yield Change("selection dropped", (source.keep(call, value),), call)
        case "maximum" | "minimum", [value, _] if places.decide(value):
            yield Change("clamp dropped", (source.keep(call, value),), call)


def _of_access(source: FunctionSource, places: Places, call: ast.Call, name: str) -> Iterator[Change]:
    mask = _argument(call, "mask", _ACCESSES[name])
    other = _argument(call, "other", 2) if name == "load" else None
    if mask is not None:
        yield Change("mask dropped", source.drop(call, [one for one in (mask, other) if one is not None]), call)
    # Lanes that are masked off read zero without it, too, in the interpreter and on the GPUs of today.
    if other is not None and places.mixes_lanes and not (isinstance(other, ast.Constant) and other.value == 0):
        yield Change("other dropped", source.drop(call, [other]), call)


def _of_comparison(source: FunctionSource, places: Places, node: ast.Compare) -> Iterator[Change]:
    if not places.decide(node):
        return
    for position, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
        symbol, wider = _WIDENED.get(type(operator), ("", ""))
        edit = source.compare(node, position, symbol) if symbol else None
        if edit is not None:
            yield Change("wrong comparison", (edit,), node)
        for shift in filter(None, (wider, _NARROWED.get(type(operator), ""))):
            yield Change("bound off by one", (source.put(right, f"{source.of(right)} {shift}"),), node)


def _of_operation(source: FunctionSource, places: Places, node: ast.BinOp) -> Iterator[Change]:
    match node.op:
        case ast.BitAnd() if places.decide(node):
            terms = node.left, node.right
            if not any(isinstance(term, ast.Constant) for term in terms):
                for term in terms:
                    yield Change("mask term dropped", (source.keep(node, term),), node)
        case ast.Add() | ast.Sub() if places.address(node):
            yield Change("offset dropped", (source.keep(node, node.left),), node)
            # What stands in front may be the pointer itself, unless it is a product or a call.
            if isinstance(node.op, ast.Add) and (_is_product(node.left) or isinstance(node.left, ast.Call)):
                yield Change("offset dropped", (source.keep(node, node.right),), node)
        case ast.Mult() if places.address(node):
            for stride, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(stride, ast.Name) and "stride" in stride.id.lower():
                    yield Change("stride dropped", (source.keep(node, other),), node)


def _of_range(source: FunctionSource, call: ast.Call) -> Iterator[Change]:
    if not call.args or any(isinstance(one, ast.Starred) for one in call.args):
        return
    stop = call.args[0] if len(call.args) == 1 else call.args[1]
    for shift in ("+ 1", "- 1"):
        yield Change("bound off by one", (source.put(stop, f"{source.of(stop)} {shift}"),), call)


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
