"""The whole file of a stand-alone test."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import kcheck
from kcheck.case import Case
from kcheck.dtypes import dtype_named
from kcheck.emit import arguments, prelude
from kcheck.emit.arguments import Names
from kcheck.emit.subject import Subject
from kcheck.errors import UsageError
from kcheck.findings import Finding, Kind, Severity
from kcheck.objects import argument_of
from kcheck.protocol import Held
from kcheck.target import RETURNED, Target

Form = Literal["pytest", "script"]
WIDTH = 88
MEMORY = frozenset({Kind.OUT_OF_VIEW_WRITE, Kind.OUT_OF_BOUNDS_WRITE, Kind.INPUT_MUTATED})
QUOTED = frozenset({Kind.TARGET_ERROR, Kind.MUST_ACCEPT})  # the finding says what was raised
RAISED = QUOTED | {Kind.DEVICE_ASSERT, Kind.COMPILE_ERROR}
SHOWN = MEMORY | RAISED | {
    Kind.VALUE_MISMATCH, Kind.LAYOUT_VARIANCE, Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_BOUNDS_READ, Kind.UNWRITTEN_OUTPUT,
    Kind.UNINITIALIZED_READ,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Regression:
    """What a test is to show.

    Attributes:
        target: What is tested.
        case: The minimal case, roles set.
        finding: What it shows.
        fingerprint: Of the finding, ``""`` if it has none.
        subject: Code of the target and its oracle.
        results: What its results are held against.
        form: ``pytest``: a test function, which without a GPU runs the file as a program; ``script``: a program alone.
        gpu_only: Why it cannot run without a GPU, ``""`` if it can.
    """

    target: Target
    case: Case
    finding: Finding
    fingerprint: str
    subject: Subject
    results: Sequence[Held]
    form: Form
    gpu_only: str = ""

    @property
    def function(self) -> str:
        """Name of the test function."""
        parts = (self.target.name, self.finding.kind.value, self.finding.argument)
        return "test_" + re.sub(r"\W+", "_", "_".join(filter(None, parts))).strip("_").lower()


def check(finding: Finding) -> None:
    """Check that a stand-alone test can show a finding.

    Raises:
        UsageError: It cannot.
    """
    why = ""
    if finding.kind not in SHOWN:
        why = f"{finding.kind} does not show in a result"
    elif finding.severity is not Severity.ERROR:
        why = "what it does has no effect on a result"
    elif finding.argument.endswith("(made by the target)"):
        why = "it lies around memory that the target makes itself, which a test cannot fill with decoys"
    if why:
        raise UsageError(f"a stand-alone test cannot show this {finding.kind}: {why}; keep it as kcheck replay")


def render(test: Regression, decoys: int = 0) -> str:
    """The file, in black's style but for copied code.

    Args:
        test: What it is to show.
        decoys: Seed of the decoys.

    Raises:
        UsageError: The case cannot be written down.
    """
    subject = test.subject
    body = "\n".join(_function(test))
    entangled = []
    if subject.entangled:
        reason = f"This test needs kcheck: {subject.entangled}."
        entangled = ["", *(f"# {line}" for line in textwrap.wrap(reason, WIDTH - 2))]
    own = _modules(test)
    parts = [
        _docstring(test),
        *(["", "from __future__ import annotations"] if subject.future else []),
        "",
        *own,
        *([prelude.HEAD.rstrip()] if not test.gpu_only else []),
        *entangled,
        "",
        *[line for line in subject.imports if line not in own],
        prelude.CONSTANTS.format(
            guard=arguments.guard(test.case, test.finding.argument, test.finding.cells), decoys=hex(0xDEC0 + decoys)
        ).rstrip(),
        *_copied(subject),
        *(["", prelude.HASHED.rstrip()]),
        *(["", prelude.FLOATS.rstrip()] if "floats(" in body else []),
        "",
        prelude.DECOYS.rstrip(),
        *(["", prelude.DENSE.rstrip()] if "dense(" in body else []),
        "\n",
        body,
        *_entry(test),
    ]
    return "\n".join(parts) + "\n"


def _modules(test: Regression) -> list[str]:
    """Imports of what the file needs for itself."""
    needed = {"torch"} if test.gpu_only else {"os", "torch"}
    if test.form == "pytest":
        needed |= {"pytest"} if test.gpu_only else {"subprocess", "sys"}
    own = [f"import {name}" for name in prelude.MODULES if name in needed]
    standard = len(own) - sum(name in needed for name in ("pytest", "torch"))
    return [*own[:standard], *([""] if standard else []), *own[standard:]]


def _entry(test: Regression) -> Iterator[str]:
    """How the file is started: by pytest, and as a program."""
    if test.form == "pytest":
        yield ""
        yield (prelude.GPU_TEST if test.gpu_only else prelude.TEST).format(function=test.function).rstrip()
    if test.form == "script" or not test.gpu_only:
        yield ""
        yield (prelude.GPU_FOOT if test.gpu_only else prelude.FOOT).rstrip()


def _docstring(test: Regression) -> str:
    finding = test.finding
    place = f"{_near(finding.file)}:{finding.line}: " if finding.file and finding.line else ""
    name = f"(finding {test.fingerprint}) " if test.fingerprint else ""
    found = (
        f"kcheck {kcheck.__version__} found this {name}by drawing tensor layouts, and shrank it to the case below. "
        "Tensors lie in memory full of decoys, so that a stray access shows. "
    )
    if test.gpu_only:
        found += f"The test needs a GPU, and has not been tried on one: {test.gpu_only}."
    else:
        found += "The test needs no GPU: without one, kernels run on Triton's interpreter."
    title = f"{test.target.name}: {finding.kind}" + (f" of {finding.argument}" if finding.argument else "") + "."
    paragraphs = [title, *textwrap.wrap(_sentence(finding.message), WIDTH)]
    if finding.source:
        paragraphs += ["", f"    {place}{finding.source.strip()}"]
    text = "\n".join([paragraphs[0], "", *paragraphs[1:], "", *textwrap.wrap(found, WIDTH)])
    return '"""' + text.replace("\\", "\\\\").replace('"""', "'''") + '\n"""'


def _near(file: str) -> str:
    """A path below the current directory; of another one only the name, for the test goes to other machines."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _copied(subject: Subject) -> Iterator[str]:
    home: Path | None = None
    block = True
    for path, text in subject.pieces:
        if block or "\n" in text:
            yield "\n"
        block = "\n" in text
        if path is not None and path != home:
            yield f"# Copied from {path.name}, which needs kcheck: a fix there must be made here too.\n"
            home = path
        yield text


def _function(test: Regression) -> Iterator[str]:
    subject, case = test.subject, test.case
    names = Names({*prelude.NAMES, *subject.names, test.function})
    for path in case.views:
        names.of(path)
    loose = {path: argument_of(path) in test.target.unwritten_ok for path in case.views}
    if RETURNED in test.target.unwritten_ok:
        raise UsageError("a stand-alone test cannot tell which elements of a returned tensor may stay unwritten")
    yield "def main():"
    lines = [
        *arguments.build(case, names, loose),
        "",
        *_expected(test, names),
        *_call(test, names),
        "",
        *_memory(test, names),
        *_compared(test, names, loose),
    ]
    if lines[0] == "":
        lines.pop(0)
    yield from ("    " + line if line else "" for line in lines)


def _expected(test: Regression, names: Names) -> Iterator[str]:
    """Lines that make what the results should be, before the target can change anything."""
    own = [held.expected for held in test.results if held.expected in test.case.views]
    for path in own:
        yield f"{names.local(f'expected_{path}')} = dense({names.of(path)})"

    def tensor(path: str) -> str:
        return names.local(f"expected_{path}") if path in own else f"dense({names.of(path)})"

    call = _called(test.subject.oracle or test.subject.call, test.case, tensor)
    returns = any(held.expected not in test.case.views for held in test.results)
    yield f"{names.local('expected')} = {call}" if returns else call


def _call(test: Regression, names: Names) -> Iterator[str]:
    call = _called(test.subject.call, test.case, names.of)
    if any(held.actual not in test.case.views for held in test.results):
        call = f"{names.local('result')} = {call}"
    if test.finding.kind in MEMORY:
        yield f"{names.local('before')} = {names.local(_memory_of(test))}.clone()"
    if _depends_on_fresh_memory(test):
        yield "torch.use_deterministic_algorithms(True, warn_only=True)  # new memory holds NaN"
        yield "try:"
        yield f"    {call}"
        yield "finally:"
        yield "    torch.use_deterministic_algorithms(False)"
    else:
        yield call


def _depends_on_fresh_memory(test: Regression) -> bool:
    """The bug shows in memory that the target takes by itself."""
    kind = test.finding.kind
    return kind is Kind.UNINITIALIZED_READ or (
        kind is Kind.UNWRITTEN_OUTPUT and test.finding.argument not in test.case.views
    )


def _called(function: str, case: Case, tensor: Callable[[str], str]) -> str:
    given = ", ".join(f"{name}={arguments.code(name, value, tensor)}" for name, value in case.args.items())
    return f"{function}({given})"


def _memory_of(test: Regression) -> str:
    argument = test.finding.argument
    if argument not in test.case.views:
        raise UsageError(f"a stand-alone test cannot watch the memory of {argument or 'no argument'}")
    return f"{test.case.views[argument].backing}_memory"


def _memory(test: Regression, names: Names) -> Iterator[str]:
    """Lines that check that nothing else than writable views has changed."""
    if test.finding.kind not in MEMORY:
        return
    backing = test.case.views[test.finding.argument].backing
    before, memory = names.local("before"), names.local(f"{backing}_memory")
    for path, view in test.case.views.items():
        if view.backing == backing and view.role.writable:
            x = names.of(path)
            yield f"{before}.as_strided({x}.shape, {x}.stride(), {x}.storage_offset()).copy_({x})"
    mutated = test.finding.kind is Kind.INPUT_MUTATED
    says = f"{test.finding.argument} was changed" if mutated else f"memory around {test.finding.argument} was written"
    yield f'assert torch.equal({memory}.view(torch.uint8), {before}.view(torch.uint8)), "{says}"'


def _compared(test: Regression, names: Names, loose: dict[str, bool]) -> Iterator[str]:
    """Lines that hold every result against what it should be."""
    views = test.case.views
    for held in test.results:
        actual = (
            names.of(held.actual) if held.actual in views else held.actual.replace("return", names.local("result"), 1)
        )
        expected = names.local(f"expected_{held.expected}")
        if held.expected not in views:
            expected = held.expected.replace("return", names.local("expected"), 1)
        if loose.get(held.actual):
            written = names.local("written")
            unused = arguments.unwritten(dtype_named(views[held.actual].dtype), loose=True)
            yield f"{written} = {actual} != {unused}"
            actual, expected = f"{actual}[{written}]", f"{expected}[{written}]"
        if held.dtype.startswith("float8"):  # torch.testing does not compare these
            actual, expected = f"{actual}.float()", f"{expected}.float()"
        options = f"rtol={_short(held.rtol)}, atol={_short(held.atol)}, equal_nan=True"
        options += "" if held.same_dtype else ", check_dtype=False"
        yield f"torch.testing.assert_close({actual}, {expected}, {options})"


def _short(tolerance: float) -> str:
    """Three digits, rounded up, so that nothing that is right fails."""
    if not tolerance:
        return "0"
    step = 10.0 ** (math.floor(math.log10(tolerance)) - 2)
    return f"{math.ceil(tolerance / step - 1e-9) * step:.3g}"
