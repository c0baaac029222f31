"""From which parameters of a kernel a pointer may come: followed through every operation of its IR."""

from __future__ import annotations

import re

from kcheck.worker.backends.cuda.viewcheck.ttir import Function, Module, Op, Value, calls

Origin = frozenset[int]
UNKNOWN: Origin = frozenset({-1})  # a pointer read from memory, or made of an integer
# Operations whose result points where their first operands do. The others make a pointer of something else.
_THROUGH = frozenset(
    {
        "tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.bitcast", "tt.reshape", "tt.trans", "tt.unsplat",
        "ttg.convert_layout", "tt.join", "tt.cat", "tt.split", "tt.gather", "builtin.unrealized_conversion_cast",
    }
)  # fmt: skip
_POINTS = re.compile(r"!tt\.ptr<")


class Origins:
    """Origins of all values of a module, by fixed point.

    Args:
        module: After inlining.
    """

    def __init__(self, module: Module) -> None:
        self._of: dict[Value, Origin] = {}
        entry = module.entry
        for number, value in enumerate(entry.parameters):
            self._of[value] = frozenset({number})
        self._changed = True
        while self._changed:
            self._changed = False
            for op, callee in calls(module):
                for given, parameter in zip(op.operands, callee.parameters, strict=False):
                    self._join(parameter, given)
            for function in module.functions.values():
                self._follow(function)

    def of(self, value: Value) -> Origin:
        """Numbers of the kernel's parameters that a pointer may come from; -1 among them: from elsewhere too."""
        return self._of.get(value) or UNKNOWN

    def _join(self, value: Value, *sources: Value) -> None:
        known = self._of.get(value, frozenset())
        joined = known.union(*(self._of.get(source, frozenset()) for source in sources))
        if joined != known:
            self._of[value] = joined
            self._changed = True

    def _follow(self, function: Function) -> None:
        for label, given in function.branches:
            for parameter, value in zip(function.blocks.get(label, []), given, strict=False):
                self._join(parameter, value)
        for op in function.ops:
            if op.name == "scf.for":
                self._loop(op.arguments[1:], op.initial, op.results, [end.operands for end in op.ends])
            elif op.name == "scf.while":
                self._while(op)
            elif op.name == "scf.if":
                for end in op.ends:
                    for result, value in zip(op.results, end.operands, strict=False):
                        self._join(result, value)
            elif op.name == "arith.select":
                self._join(op.results[0], *op.operands[1:3])
            elif op.name in _THROUGH:
                pointers = op.operands[:1] if op.name in ("tt.addptr", "tt.gather") else op.operands
                for result in op.results:
                    self._join(result, *pointers)
            elif op.results and _POINTS.search(op.body) and op.name in ("tt.load", "tt.int_to_ptr", "tt.call"):
                for result in op.results:
                    if result not in self._of:
                        self._of[result] = UNKNOWN
                        self._changed = True

    def _loop(
        self, arguments: list[Value], initial: list[Value], results: list[Value], ends: list[list[Value]]
    ) -> None:
        for number, argument in enumerate(arguments):
            sources = [initial[number], *(end[number] for end in ends if number < len(end))]
            self._join(argument, *sources)
            self._join(results[number], *sources)

    def _while(self, op: Op) -> None:
        count = len(op.initial)
        before, after = op.arguments[:count], op.arguments[count:]
        for end in op.ends:
            if end.name == "scf.condition":
                for passed, argument, result in zip(end.operands[1:], after, op.results, strict=False):
                    self._join(argument, passed)
                    self._join(result, passed)
            else:
                for passed, argument in zip(end.operands, before, strict=False):
                    self._join(argument, passed)
        for value, argument in zip(op.initial, before, strict=False):
            self._join(argument, value)
