"""The text of a first target."""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kcheck.scaffold.guess import Guess, Hypothesis, Kind
from kcheck.scaffold.wrapper import Wrapper

WIDTH = 88
LARGEST = {1: 64, 2: 64, 3: 16}  # of a size, by the dimensions of a tensor; else 8
OWN_NAMES = frozenset({"cases", "draw", "oracle", "kcheck", "ks", "made", "os", "st", "sys", "torch"})
MARK = "# TODO(kcheck):"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a target file says beside its cases.

    Attributes:
        wrapper: What is tested.
        kernels: ``(module, name)`` of kernels that must launch.
        idle: Names of kernels that the wrapper refers to and that did not launch in the trial.
        oracle: Name of a function beside the wrapper, and its parameters; None: there is none.
        search: Folder that must be in ``sys.path``; None: none.
        todo: What became of the trial, a sentence; ``""`` if it went well.
    """

    wrapper: Wrapper
    kernels: Sequence[tuple[str, str]] = ()
    idle: Sequence[str] = ()
    oracle: tuple[str, Mapping[str, inspect.Parameter]] | None = None
    search: str | None = None
    todo: str = ""


def render(parts: Parts, hypothesis: Hypothesis, file: str) -> str:
    """The file.

    Args:
        parts: What it is about.
        hypothesis: The guesses that its cases are drawn by.
        file: Its name, for the command in its head.
    """
    given = [g for g in (*hypothesis.construct, *hypothesis.guesses) if g.kind is not Kind.OMITTED]
    name = re.sub(r"\W|^(?=\d)", "_", parts.wrapper.name).lower()
    modules = _Modules({g.name for g in given} | set(hypothesis.shapes.sizes) | {name} | OWN_NAMES)
    wrapped = modules.member(parts.wrapper.module.__name__, parts.wrapper.path)
    kernels = [modules.member(module, kernel) for module, kernel in parts.kernels]
    signature = ", ".join(g.name for g in given)
    oracle, adapter, missing = _oracle(parts, [g.name for g in given], modules)
    cases = list(_cases(hypothesis, given, parts.todo))
    call = list(_call(parts.wrapper, wrapped, hypothesis))
    code = "\n".join([*cases, *call])
    lines = [
        f'"""kcheck target of {parts.wrapper.module.__name__}.{parts.wrapper.path}, begun by kcheck init.',
        "",
        f"Run it: kcheck fuzz {file}",
        "What kcheck could not know is marked TODO(kcheck).",
        '"""',
        "",
        *modules.imports(parts.search, needs_torch="torch." in code),
        "",
        "",
        *cases,
        "",
        "",
        *([f"def oracle({signature}):", f"    return {adapter}", "", ""] if adapter else []),
        *missing,
        *_idle(parts.idle),
        *_decorator(oracle, kernels, given),
        f"def {name}({signature}):",
        *call,
    ]
    return "\n".join(lines) + "\n"


class _Modules:
    """Imports of modules and of their members, under names that no variable of the file has.

    Args:
        taken: Names of variables.
    """

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._names: dict[str, str] = {}
        self._members: dict[tuple[str, str], str] = {}

    def member(self, module: str, path: str) -> str:
        """The expression of what a module has."""
        root = module.partition(".")[0]
        if _is_reached(module):
            name = f"{module.replace('.', '_')}_module" if root in self._taken else module
            return f"{self._names.setdefault(module, name)}.{path}"
        first, dot, rest = path.partition(".")
        if (module, first) not in self._members:
            further = (f"{root}_{first}_{number}" for number in itertools.count(2))
            names = itertools.chain([first, f"{root}_{first.lstrip('_')}"], further)
            self._members[module, first] = free = next(name for name in names if name not in self._taken)
            self._taken.add(free)
        return f"{self._members[module, first]}{dot}{rest}"

    def imports(self, search: str | None, *, needs_torch: bool) -> Iterator[str]:
        """Import statements."""
        if search is not None:
            yield from ("import os", "import sys", "")
        whole = {f"import {m}" + (f" as {n}" if n != m else "") for m, n in self._names.items()}
        members = {f"from {m} import {f}" + (f" as {n}" if n != f else "") for (m, f), n in self._members.items()}
        found = search is None
        yield "import kcheck"
        yield from sorted({*(whole if found else []), *(["import torch"] if needs_torch else [])})
        general = {"from hypothesis import strategies as st", "from kcheck import strategies as ks"}
        yield from sorted(general | members if found else general)
        if search is not None:
            yield ""
            yield f'sys.path.insert(0, os.path.join(os.path.dirname(__file__), "{search}"))'
            yield ""
            yield from (*sorted(whole), *sorted(members))


def _is_reached(module: str) -> bool:
    """Whether ``import a.b`` makes ``a.b`` the module, and not a function of that name that the package imports."""
    parts = module.split(".")
    for count in range(1, len(parts)):
        package = ".".join(parts[:count])
        if getattr(sys.modules.get(package), parts[count], None) is not sys.modules.get(f"{package}.{parts[count]}"):
            return False
    return True


def _cases(hypothesis: Hypothesis, given: Sequence[Guess], todo: str) -> Iterator[str]:
    """The strategy of cases."""
    lines = list(_arguments(hypothesis, given))
    used = "\n".join(lines)
    yield "@st.composite"
    yield "def cases(draw):"
    yield from _comment(todo or "these sizes were guessed, and the wrapper accepted them; are they what it is for?")
    largest = LARGEST.get(max(map(len, hypothesis.shapes.data)), 8)
    for size in hypothesis.shapes.sizes:
        if re.search(rf"\b{size}\b", used):
            yield f'    {size} = draw(ks.dims("{size}", max_value={largest}))'
    yield from _optional(hypothesis)
    yield "    return kcheck.Case("
    yield from lines
    yield "    )"


def _optional(hypothesis: Hypothesis) -> Iterator[str]:
    for guess, strategy in _strategies(hypothesis):
        if guess.optional:
            yield f"    {guess.name} = None"
            yield f'    if draw(ks.options("{guess.name}", ("none", "given"))) == "given":'
            yield f"        {guess.name} = {strategy}"


def _strategies(hypothesis: Hypothesis) -> Iterator[tuple[Guess, str]]:
    """Tensors, and the expression that draws each."""
    data = 0
    shapes = hypothesis.shapes
    for guess in hypothesis.tensors:
        sizes = shapes.of(guess.kind, data)
        data += guess.kind is Kind.DATA
        shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        kinds = ", kinds=ks.DENSE" if guess.dense else ""
        if guess.kind is Kind.INDEX:
            drawn = f"draw(ks.indices({shape}, bound={shapes.bound}{kinds}))"
        else:
            strategy = "outputs" if guess.kind is Kind.OUTPUT else "inouts" if guess.written else "tensors"
            dtype = "bool" if guess.kind is Kind.MASK else hypothesis.dtype
            drawn = f'draw(ks.{strategy}({shape}, "{dtype}"{kinds}))'
        yield guess, f"[{drawn} for _ in range({guess.count})]" if guess.count else drawn


def _arguments(hypothesis: Hypothesis, given: Sequence[Guess]) -> Iterator[str]:
    """Arguments of the case, one a line."""
    tensors = dict(_strategies(hypothesis))
    for guess in given:
        if guess.todo:
            yield from _comment(guess.todo, 8)
        if guess in tensors:
            yield f"        {guess.name}={guess.name if guess.optional else tensors[guess]},"
            continue
        values = guess.values
        plain = len(values) == 1 and (values[0] in hypothesis.shapes.sizes or values[0] in ("None", "torch.float32"))
        choices = f"({', '.join(values)}{',' if len(values) == 1 else ''})"
        value = values[0] if plain else f'draw(ks.options("{guess.name}", {choices}))'
        yield f"        {guess.name}={value},"


def _comment(sentence: str, margin: int = 4) -> Iterator[str]:
    """A marked comment, over as many lines as it takes."""
    lead = " " * margin
    yield from textwrap.wrap(f"{MARK} {sentence}", WIDTH, initial_indent=lead, subsequent_indent=f"{lead}# ")


def _oracle(parts: Parts, given: Sequence[str], modules: _Modules) -> tuple[str, str, list[str]]:
    """The oracle's expression, the body of an adapter if one is needed, and what is to be said where there is none."""
    if parts.oracle is None:
        says = "only memory and layouts are checked; give oracle=, plain PyTorch with the same parameters"
        return "", "", list(_comment(says, 0))
    name, parameters = parts.oracle
    module = parts.wrapper.module.__name__
    packed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [n for n, p in parameters.items() if p.default is p.empty and p.kind not in packed]
    if not set(needed) <= set(given):
        says = f"{module}.{name} may be the oracle, but it takes ({', '.join(parameters)}); give oracle="
        return "", "", list(_comment(says, 0))
    if set(given) <= set(parameters):
        return modules.member(module, name), "", []
    shared = [n if p.kind is not p.KEYWORD_ONLY else f"{n}={n}" for n, p in parameters.items() if n in given]
    return "oracle", f"{modules.member(module, name)}({', '.join(shared)})", []


def _decorator(oracle: str, kernels: Sequence[str], given: Sequence[Guess]) -> Iterator[str]:
    options = ["cases=cases()"]
    options += [f"oracle={oracle}"] if oracle else []
    options += [f"kernels=[{', '.join(kernels)}]"] if kernels else []
    for option, names in {
        "outputs": [g.name for g in given if g.kind is Kind.OUTPUT],
        "inout": [g.name for g in given if g.written],
    }.items():
        if names:
            quoted = ", ".join(f'"{name}"' for name in names)
            options.append(f"{option}=[{quoted}]")
    line = f"@kcheck.target({', '.join(options)})"
    if not kernels:
        yield from _comment("the wrapper's code names no kernel; say which must launch in kernels=[...]", 0)
    if len(line) <= WIDTH:
        yield line
        return
    yield "@kcheck.target("
    yield from (f"    {option}," for option in options)
    yield ")"


def _idle(names: Sequence[str]) -> Iterator[str]:
    if names:
        says = f"{', '.join(names)} did not launch; draw arguments that need it, and name it in kernels"
        yield from _comment(says, 0)


def _call(wrapper: Wrapper, wrapped: str, hypothesis: Hypothesis) -> Iterator[str]:
    """The body of the target."""
    positional, arguments = True, []
    for guess in hypothesis.guesses:
        positional = positional and guess.kind is not Kind.OMITTED and not guess.keyword
        if guess.kind is not Kind.OMITTED:
            arguments.append(guess.name if positional else f"{guess.name}={guess.name}")
    call = f"{wrapped}{wrapper.suffix}({', '.join(arguments)})"
    if wrapper.construct is not None:
        first = next((guess.name for guess in hypothesis.tensors), None)
        made = ", ".join(f"{g.name}={g.name}" for g in hypothesis.construct if g.kind is not Kind.OMITTED)
        yield "    torch.manual_seed(0)  # the module's parameters are the same in every run"
        yield f"    made = {wrapped}({made})" + (f".to({first}.device)" if first else "")
        call = f"made({', '.join(arguments)})"
    yield f"    return {call}"
