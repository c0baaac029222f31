"""The text of a Triton module, read as far as the view check needs it: operations, what they use, and where they stand.

Triton prints its IR in MLIR's textual form (https://mlir.llvm.org/docs/LangRef/). Names of values may be used again in
sibling regions; here each value is an object of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_RESULTS = re.compile(r"^\s*(%[\w$.\-]+)(?::(\d+))? = ")
_OPCODE = re.compile(r'"?([a-z_]+\.[\w.]+)"?')
_LOC = re.compile(r"\s*loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_LINE_LOC = re.compile(r"loc\((#loc\d*)\)\s*$")
_PARAMETER = re.compile(r"(%[\w$.\-]+): ")
_FOR = re.compile(r"scf\.for (?:unsigned )?(%\S+) = (%\S+) to (%\S+) step (%\S+)(?: iter_args\((.*?)\) ->)?")
_PAIR = re.compile(r"(%[\w$.\-]+) = (%[\w$.\-]+(?:#\d+)?)")
_BLOCK = re.compile(r"^\s*(\^\w+)(?:\((.*)\))?:")
_SUCCESSOR = re.compile(r"(\^\w+)(?:\(([^:]*) : [^)]*\))?")


class UnknownText(Exception):
    """The text has a form that is not known here."""


@dataclass(eq=False, slots=True)
class Value:
    """One SSA value.

    Attributes:
        text: How it is written where it is defined.
        maker: The operation that defines it; None for the parameter of a function or block.
    """

    text: str
    maker: Op | None = None


@dataclass(eq=False, slots=True)
class Op:
    """One operation.

    Attributes:
        name: For example ``tt.load``.
        line: Number of its line in the text, from 0.
        last: Of an operation with regions: number of its last line.
        body: Its text, without results and location.
        operands: Values that it uses, in the order of the text.
        results: Values that it defines.
        location: Its location's name in the text, ``""`` if it has none.
        parent: The operation whose region it stands in.
        arguments: Of a loop: what its body's parameters are.
        initial: Of a loop: what they begin with.
        ends: What its regions end with: ``scf.yield``, ``scf.condition``.
    """

    name: str
    line: int
    body: str
    operands: list[Value]
    results: list[Value]
    location: str
    parent: Op | None
    last: int = 0
    arguments: list[Value] = field(default_factory=list)
    initial: list[Value] = field(default_factory=list)
    ends: list[Op] = field(default_factory=list)

    def inside(self, other: Op) -> bool:
        """Whether it stands in a region of `other`."""
        parent = self.parent
        while parent is not None and parent is not other:
            parent = parent.parent
        return parent is other


@dataclass(eq=False, slots=True)
class Function:
    """One function of a module.

    Attributes:
        name: Its symbol.
        parameters: Values that are its parameters.
        types: Their types.
        hints: What the compiler is told of each, as text.
        op: The operation that it is.
        ops: All operations in it, in the order of the text.
        blocks: Parameters of its basic blocks, by label.
        branches: Labels with the values given to their parameters.
    """

    name: str
    parameters: list[Value]
    types: list[str]
    hints: list[str]
    op: Op
    ops: list[Op] = field(default_factory=list)
    blocks: dict[str, list[Value]] = field(default_factory=dict)
    branches: list[tuple[str, list[Value]]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Module:
    """A module.

    Attributes:
        lines: Its text.
        functions: By symbol.
        locations: Definitions of locations, by name.
    """

    lines: list[str]
    functions: dict[str, Function] = field(default_factory=dict)
    locations: dict[str, str] = field(default_factory=dict)

    @property
    def entry(self) -> Function:
        """The kernel.

        Raises:
            UnknownText: There is not exactly one.
        """
        public = [function for function in self.functions.values() if " public " in function.op.body]
        if len(public) != 1:
            raise UnknownText(f"{len(public)} public functions")
        return public[0]


class _Scopes:
    """Values by name, region by region."""

    def __init__(self) -> None:
        self._stack: list[dict[str, Value]] = [{}]

    def open(self) -> None:
        self._stack.append({})

    def close(self) -> None:
        self._stack.pop()

    def define(self, name: str, count: int = 0, maker: Op | None = None) -> list[Value]:
        names = [f"{name}#{i}" for i in range(count)] if count else [name]
        values = [Value(text, maker) for text in names]
        self._stack[-1].update(zip(names, values, strict=True))
        if count == 1:
            self._stack[-1][name] = values[0]
        return values

    def get(self, name: str) -> Value:
        for scope in reversed(self._stack):
            if name in scope:
                return scope[name]
        raise UnknownText(f"{name} is not defined")


def parse(text: str) -> Module:
    """Read a module's text, printed with locations.

    Raises:
        UnknownText: It has a form that is not known here.
    """
    return _Parser(text).module


class _Parser:
    def __init__(self, text: str) -> None:
        self.module = Module(text.splitlines())
        self._scopes = _Scopes()
        self._open: list[Op] = []
        self._function: Function | None = None
        for line in self.module.lines:
            if line.startswith("#loc"):
                name, _, definition = line.partition(" = ")
                self.module.locations[name] = definition
        for number, line in enumerate(self.module.lines):
            self._read(number, line)

    def _read(self, number: int, line: str) -> None:
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "//", "module", "}) {")):
            if stripped.startswith("module"):
                self._open.append(Op("module", number, stripped, [], [], "", None))
            return
        if stripped.startswith("}"):
            self._close(number, line, stripped)
            return
        block = _BLOCK.match(line)
        if block:
            self._block(block[1], block[2] or "")
            return
        self._operation(number, line)

    def _close(self, number: int, line: str, stripped: str) -> None:
        self._scopes.close()
        if stripped.endswith("{"):  # } else {, } do {, }, {
            self._scopes.open()
            return
        done = self._open.pop()
        found = _LINE_LOC.search(line)
        done.location = found[1] if found else done.location
        done.last = number
        if done.name == "tt.func":
            self._function = None

    def _block(self, label: str, text: str) -> None:
        function, op = self._function, self._open[-1]
        assert function is not None
        values = [value for name in _PARAMETER.findall(text) for value in self._scopes.define(name)]
        if op is function.op:
            function.blocks[label] = values
        elif op.name == "scf.while":
            op.arguments = [*op.arguments, *values]

    def _operation(self, number: int, line: str) -> None:
        opens = line.rstrip().endswith("{")
        found = _LINE_LOC.search(line)
        location = found[1] if found else ""
        head = _RESULTS.match(line)
        body = _LOC.sub("", line[head.end() if head else 0 :]).strip()
        opcode = _OPCODE.match(body)
        if opcode is None:
            raise UnknownText(line.strip())
        op = Op(opcode[1], number, body, [], [], location, self._open[-1] if self._open else None)
        if op.name == "tt.func":
            self._enter_function(op)
            return
        pairs = _loop_pairs(op)
        own = {name for name, _ in pairs}
        op.operands = [self._scopes.get(name) for name in _VALUE.findall(body) if name not in own]
        if head:
            op.results = self._scopes.define(head[1], int(head[2] or 0), op)
        if self._function is None:
            raise UnknownText(line.strip())
        self._function.ops.append(op)
        self._note(op)
        if opens:
            op.initial = [self._scopes.get(name) for _, name in pairs if name]
            self._open.append(op)
            self._scopes.open()
            op.arguments = [value for name, _ in pairs for value in self._scopes.define(name)]

    def _note(self, op: Op) -> None:
        function = self._function
        assert function is not None
        if op.name in ("scf.yield", "scf.condition") and op.parent is not None:
            op.parent.ends.append(op)
        elif op.name in ("cf.br", "cf.cond_br"):
            for label, names in _SUCCESSOR.findall(op.body):
                values = [self._scopes.get(name) for name in _VALUE.findall(names)]
                function.branches.append((label, values))

    def _enter_function(self, op: Op) -> None:
        name = re.search(r"@(?:\"([^\"]+)\"|([\w$.\-]+))\(", op.body)
        if name is None:
            raise UnknownText(op.body)
        if not op.body.endswith("{"):
            return  # a declaration
        self._open.append(op)
        self._scopes.open()
        parameters = re.findall(r"(%[\w$.\-]+): ([^,{)]*)(\{[^}]*\})?", op.body)
        values = [value for parameter, *_ in parameters for value in self._scopes.define(parameter)]
        types = [kind.strip() for _, kind, _ in parameters]
        hints = [hint for *_, hint in parameters]
        self._function = Function(name[1] or name[2], values, types, hints, op)
        self.module.functions[self._function.name] = self._function


def _loop_pairs(op: Op) -> list[tuple[str, str]]:
    """Parameters of a loop's body, with what they begin with (``""`` for the counter)."""
    if op.name == "scf.for":
        found = _FOR.search(op.body)
        if found is None:
            raise UnknownText(op.body)
        return [(found[1], ""), *_PAIR.findall(found[5] or "")]
    if op.name == "scf.while":
        return _PAIR.findall(op.body.split(" : ")[0])
    return []


def calls(module: Module) -> Iterator[tuple[Op, Function]]:
    """Calls that are left, with what they call."""
    for function in module.functions.values():
        for op in function.ops:
            if op.name == "tt.call":
                name = re.search(r"@(?:\"([^\"]+)\"|([\w$.\-]+))\(", op.body)
                callee = module.functions.get((name[1] or name[2]) if name else "")
                if callee is not None:
                    yield op, callee
