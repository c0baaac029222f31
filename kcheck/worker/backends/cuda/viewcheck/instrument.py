"""Puts checks into a kernel's IR: every access is looked at, and lanes that must not be made are masked off.

There are two forms. *Exact* checks look at every lane and record the bad ones. The other form costs next to nothing:
bounds and hulls of tiles are held against views without gaps, and where that does not do, the kernel only says that it
suspects a lane; then the same is run again with exact checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kcheck.worker.backends.base import AccessKind
from kcheck.worker.backends.cuda.viewcheck import layout, places
from kcheck.worker.backends.cuda.viewcheck.access import SIZES, Checked, Limits, lanes_of, width_of, within
from kcheck.worker.backends.cuda.viewcheck.bounds import Bounds, Loops, owners
from kcheck.worker.backends.cuda.viewcheck.code import Code
from kcheck.worker.backends.cuda.viewcheck.exact import Access
from kcheck.worker.backends.cuda.viewcheck.origins import Origins
from kcheck.worker.backends.cuda.viewcheck.ttir import Function, Module, Op, UnknownText, calls, parse

_KIND: dict[str, AccessKind] = {
    "tt.load": "read",
    "tt.store": "write",
    "tt.atomic_rmw": "atomic",
    "tt.atomic_cas": "atomic",
}
# What reads or writes memory in a way that this module does not know.
_OPAQUE = ("tt.descriptor", "tt.experimental_descriptor", "tt.elementwise_inline_asm")


@dataclass(frozen=True, slots=True)
class Site:
    """One access in the source.

    Attributes:
        access: What it does.
        chain: ``(file, line)`` from the kernel's own line down to it.
        slots: Numbers of the kernel's parameters that its pointer may come from; empty: from elsewhere.
        width: Bytes of a lane.
    """

    access: AccessKind
    chain: tuple[tuple[str, int], ...]
    slots: tuple[int, ...]
    width: int

    @staticmethod
    def read(plain: Mapping[str, Any]) -> Site:
        """Read what `plain` gives."""
        chain = tuple((str(file), int(line)) for file, line in plain["chain"])
        return Site(plain["access"], chain, tuple(plain["slots"]), plain["width"])

    def plain(self) -> dict[str, object]:
        """As JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A module with checks.

    Attributes:
        text: Its IR.
        sites: Its accesses, by number.
        parameters: How many parameters the kernel has in the IR.
        unchecked: Operations that may touch memory and are not checked.
        granule: Bytes of memory that are one to the check of races; 0: they are not looked for.
        also_read: Some access reads what the kernel writes.
    """

    text: str
    sites: tuple[Site, ...]
    parameters: int
    unchecked: tuple[str, ...]
    granule: int
    also_read: bool


@dataclass(frozen=True, slots=True)
class Manner:
    """How kernels are checked.

    Attributes:
        exact: Look at every lane, and record those that are bad.
        state: Look for races, too; if exact, also for reads of what nobody wrote.
        registers: Most that a thread may have; 0: as many as the compiler wants.
    """

    exact: bool
    state: bool = False
    registers: int = 0


def instrument(text: str, table: int, manner: Manner) -> Instrumented:
    """Put checks into a module.

    Args:
        text: Its IR after inlining, with locations.
        table: Address of the table.
        manner: What to check.

    Raises:
        UnknownText: The IR has a form that is not known here.
    """
    if manner.registers:
        text = text.replace("\nmodule {", f"\nmodule attributes {{ttg.maxnreg = {manner.registers} : i32}} {{", 1)
    return _Instrumenter(parse(text), table, manner).done()


class _Instrumenter:
    """Writes a module anew."""

    def __init__(self, module: Module, table: int, manner: Manner) -> None:
        self._module = module
        self._exact = manner.exact
        self._state = manner.state
        self._entry = module.entry
        if len(self._entry.parameters) > layout.MAX_SLOTS:
            raise UnknownText(f"a kernel with {len(self._entry.parameters)} parameters")
        self._origins = Origins(module)
        self._granule, self._written = self._raced() if manner.state else (0, frozenset())
        loads = [op for f in module.functions.values() for op in f.ops if op.name == "tt.load"]
        self._also_read = any(self._origins.of(op.operands[0]) & self._written for op in loads)
        self._limits = Limits(table)
        self._sites: list[Site] = []
        self._lines: dict[int, list[str]] = {}

    def done(self) -> Instrumented:
        """The module with checks."""
        unchecked = set()
        for function in self._module.functions.values():
            loops = owners(function)
            for op in function.ops:
                if op.name in _KIND:
                    self._check(function, op, loops)
                elif op.name == "scf.for":
                    self._unpipelined(op)
                elif op.name.startswith(_OPAQUE):
                    unchecked.add(op.name)
        if not self._exact:
            loops = owners(self._entry)
            for op in self._entry.ops:
                if op.name == "scf.for":
                    self._version(op, loops)
        entry = self._entry.op.line
        self._lines[entry] = [self._module.lines[entry], *self._limits.code.lines]
        text = "\n".join(self._text(0, len(self._module.lines))) + "\n"
        return Instrumented(
            text, tuple(self._sites), len(self._entry.parameters), tuple(sorted(unchecked)), self._granule,
            self._also_read,
        )  # fmt: skip

    def _raced(self) -> tuple[int, frozenset[int]]:
        """Bytes of a granule, 0 if races are not looked for; and the parameters that the kernel writes through."""
        ops = [op for function in self._module.functions.values() for op in function.ops]
        accesses = [op for op in ops if op.name in _KIND]
        ordered = any(op.name.startswith("tt.atomic") and "relaxed" not in op.body for op in accesses)
        if not accesses or ordered or any("isVolatile = true" in op.body for op in accesses):
            return 0, frozenset()
        written: frozenset[int] = frozenset()
        for op in accesses:
            if op.name != "tt.load":
                written |= self._origins.of(op.operands[0])
        # An exact check also looks at parameters that are not written, for they may lead to the same memory.
        raced = [op for op in accesses if self._exact or self._origins.of(op.operands[0]) & written]
        return min((width_of(lanes_of(op)[1]) for op in raced), default=0), written

    def _text(self, first: int, end: int) -> list[str]:
        """Lines of the module as they are to be."""
        return [new for number in range(first, end) for new in self._lines.get(number, [self._module.lines[number]])]

    def _access(self, op: Op, site: int = 0) -> tuple[Access, str]:
        """What is known of an access, and the type of an element."""
        origin = self._origins.of(op.operands[0])
        lanes, element = lanes_of(op)
        slots = () if -1 in origin else tuple(sorted(origin))
        return Access(site, lanes, width_of(element), op.name != "tt.load", slots), element

    def _check(self, function: Function, op: Op, loops: Loops) -> None:
        """Write an access with its check."""
        access, element = self._access(op, len(self._sites))
        chain = (*self._callers(function), *places.chain(op.location, self._module.locations))
        self._sites.append(Site(_KIND[op.name], chain, access.slots, access.width))
        quick = function is self._entry and len(access.slots) == 1
        line = self._module.lines[op.line]
        one = len(access.slots) == 1 and len(self._sites) < layout.MAX_SITES
        raced = one and (self._exact or access.slots[0] in self._written)
        checked = Checked(
            function, loops, op, access, element, line, self._limits, quick,
            granule=self._granule if raced else 0, also_read=self._also_read, state=self._state and one,
        )  # fmt: skip
        self._lines[op.line] = checked.lines(every_lane=self._exact)

    def _callers(self, function: Function) -> list[places.Line]:
        """Lines on the way to a function that was not inlined, where there is one way only."""
        found = [call for call, callee in calls(self._module) if callee is function]
        around = [f for f in self._module.functions.values() for op in f.ops if op in found]
        if len(found) != 1 or around[0] is function:
            return []
        return [*self._callers(around[0]), *places.chain(found[0].location, self._module.locations)]

    def _unpipelined(self, loop: Op) -> None:
        """Have a loop run as it is written: a pipeline would make checks of turns that never come."""
        line = self._module.lines[loop.last]
        attributes = re.match(r"\s*\}(?: \{(.*?)\})?", line)
        others = re.split(r", (?=tt\.)", attributes[1]) if attributes and attributes[1] else []
        kept = [one for one in others if not one.startswith(("tt.num_stages", "tt.warp_specialize"))]
        text = ", ".join(["tt.num_stages = 1 : i32", *kept])
        self._lines[loop.last] = [f"}} {{{text}}} loc({loop.location or 'unknown'})"]

    def _version(self, loop: Op, loops: Loops) -> None:
        """Have an innermost loop in two versions: where bounds hold for all of its turns, it runs as it is written."""
        inside = [op for op in self._entry.ops if op.inside(loop)]
        accesses = [op for op in inside if op.name in _KIND]
        if not accesses or any(op.name in ("scf.for", "scf.while") for op in inside):
            return
        code, all_within = Code(f"kcv{loop.line}"), ""
        for op in accesses:
            access, _ = self._access(op)
            if self._granule and self._written & set(access.slots):
                return
            good = within(access, op, Bounds(code, self._entry, loops, SIZES, loop), self._limits)
            if good is None:
                return
            all_within = code.both(all_within, good) if all_within else good
        self._put_versions(loop, code, all_within)

    def _put_versions(self, loop: Op, code: Code, all_within: str) -> None:
        found = re.search(r"-> \((.*)\) +: i\d+ \{$", loop.body)
        kinds = _split(found[1]) if found else []
        plain = self._module.lines[loop.line : loop.last + 1]
        checked = self._text(loop.line, loop.last + 1)
        name = loop.results[0].text.split("#")[0] if loop.results else ""
        head = f"{name}{f':{len(kinds)}' if len(kinds) > 1 else ''} = " if kinds else ""
        code.put(f"{head}scf.if {all_within}{f' -> ({found[1]})' if found else ''} {{")
        for version, end in ((plain, "} else {"), (checked, "}")):
            if kinds:
                inner = code.name()
                version[0] = re.sub(r"^\s*%[\w$.\-]+", inner, version[0])
                results = [f"{inner}#{i}" if len(kinds) > 1 else inner for i in range(len(kinds))]
            code.lines += version
            if kinds:
                code.give(results, kinds)
            code.put(end)
        for number in range(loop.line, loop.last + 1):
            self._lines[number] = []
        self._lines[loop.line] = code.lines


def _split(kinds: str) -> list[str]:
    """Types that stand in a row."""
    return re.findall(r"(?:[^,<>]|<(?:[^<>]|<[^<>]*>)*>)+", kinds.replace(", ", ","))
