"""``kcheck init``: a first target for a wrapper."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.cli import options
from kcheck.errors import KcheckError, TargetLoadError, UsageError
from kcheck.layout import LayoutKind
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.case import Case
    from kcheck.client import Client
    from kcheck.protocol import Judgement
    from kcheck.scaffold import Guess, Hypothesis, Parts, Wrapper

_TIMEOUT_S = 10.0  # of a trial
_NOT_DENSE = (LayoutKind.STEPPED, LayoutKind.NARROWED, LayoutKind.TRANSPOSED)


@click.command("init")
@click.argument("wrapper")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; kcheck_NAME.py in the current directory if not given.",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@options.backend
@options.directory
def command(wrapper: str, output: Path | None, force: bool, backend: str, directory: Path) -> int:
    """Write a first target for WRAPPER, the function that launches your kernels.

    WRAPPER is package.module:function or path/file.py:function; the class of a torch module or of an autograd function
    will do too. Arguments are guessed from its signature and tried; what could not be known is marked TODO(kcheck).
    """
    from kcheck.client import Client

    store = Store(directory).open()
    with Client(options.chosen_backend(backend), store.log, case_timeout=_TIMEOUT_S) as client:
        from kcheck import scaffold

        found = scaffold.find(wrapper)
        path = output or Path(f"kcheck_{found.name.lower()}.py")
        if path.exists() and not force:
            raise UsageError(f"{path} exists; choose another place with -o, or overwrite it with --force")
        search = scaffold.search_path(found.module, path.absolute().parent)  # trials change sys.path
        with tempfile.TemporaryDirectory() as folder:
            best = _Trials(client, Path(folder), found).run()
    text = scaffold.render(replace(best.parts, search=search), best.hypothesis, str(path))
    _write(path, text)
    if not best.loads:
        _explain(path)
    todos = text.count("TODO(kcheck)") - 1  # the head of the file explains the mark
    click.echo(f"wrote {path}, with {todos} TODO{'' if todos == 1 else 's'}; run it: kcheck fuzz {path}")
    return 0


def _explain(path: Path) -> None:
    """Say why a file that was written cannot be imported.

    Raises:
        TargetLoadError: Always.
    """
    from kcheck import loader

    why = f"kcheck's worker cannot import it; `kcheck fuzz {path}` shows it"
    try:
        loader.load(str(path))
    except TargetLoadError as error:
        why = f"it cannot be imported: {error}"
    raise TargetLoadError(f"wrote {path}, but {why}")


def _write(path: Path, text: str) -> None:
    from kcheck.emit import formatted

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(formatted(text, path), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class _Tried:
    """A hypothesis and how it went.

    Attributes:
        rank: 3: the results match, and a kernel launched; 2: no kernel did; 1: there is a finding; 0: it did not run.
        reason: Why it did not.
        loads: The file of the trial could be imported.
    """

    parts: Parts
    hypothesis: Hypothesis
    rank: int
    judgement: Judgement | None = None
    reason: str = ""
    loads: bool = True


class _Trials:
    """Tries hypotheses on contiguous tensors, each as a target of its own.

    Args:
        client: Where they run.
        folder: For their files.
        wrapper: What is tested.
    """

    def __init__(self, client: Client, folder: Path, wrapper: Wrapper) -> None:
        from kcheck import scaffold

        self._client, self._folder, self._wrapper = client, folder, wrapper
        self._search = scaffold.search_path(wrapper.module, folder)
        self._count = 0

    def run(self) -> _Tried:
        """The best hypothesis, with what was learnt of kernels, the oracle and options."""
        from kcheck import scaffold

        parts = scaffold.Parts(self._wrapper, scaffold.kernels(self._wrapper), oracle=scaffold.oracle(self._wrapper))
        best = self._best(parts)
        if parts.oracle is not None and best.rank == 0 and best.loads:
            best = max(best, self._best(replace(parts, oracle=None)), key=lambda tried: tried.rank)
        if not best.loads:
            return replace(best, parts=replace(best.parts, todo="no sizes were tried, since this file did not import"))
        if best.rank == 0:
            reason = re.sub(r"/\S*/", "", best.reason)  # the file may go to other machines
            says = f"none of the sizes that were tried was accepted ({reason}); say which fit together"
            return replace(best, parts=replace(best.parts, todo=says))
        return self._told(self._with_dense(self._settled(best)))

    def _best(self, parts: Parts) -> _Tried:
        from kcheck import scaffold

        best: _Tried | None = None
        for dtype in scaffold.DTYPES:
            base = self._guessed()
            hypotheses = [replace(base, shapes=shapes, dtype=dtype) for shapes in scaffold.SHAPES]
            for hypothesis in scaffold.distinct(hypotheses):
                tried = self._try(parts, hypothesis)
                if best is None or tried.rank > best.rank:
                    best = tried
                if best.rank == 3 or not best.loads:
                    return best
            assert best is not None
            if best.rank:
                return best
        assert best is not None
        return best

    def _guessed(self) -> Hypothesis:
        from kcheck import scaffold

        returns = scaffold.returns(self._wrapper)
        borrowed = scaffold.defaults(self._wrapper)
        guesses = tuple(scaffold.guesses(self._wrapper.parameters, returns=returns, borrowed=borrowed))
        construct = tuple(scaffold.guesses(self._wrapper.construct or {}, returns=True))
        return scaffold.Hypothesis(guesses, scaffold.SHAPES[0], construct=construct)

    def _try(self, parts: Parts, hypothesis: Hypothesis, pins: Mapping[str, str] | None = None) -> _Tried:
        """Run one case; where it shows that a name was misleading, try again with that mended."""
        from kcheck.events import CaseVerdict
        from kcheck.findings import Kind

        try:
            judgement, case = self._judge(parts, hypothesis, pins or {})
        except TargetLoadError:
            return _Tried(parts, hypothesis, 0, loads=False)
        except KcheckError as error:
            return _Tried(parts, hypothesis, 0, reason=str(error))
        mended = _mended(hypothesis, judgement, case)
        if mended != hypothesis:
            return self._try(parts, mended, pins)
        if judgement.verdict is CaseVerdict.MATCH:
            return _Tried(parts, hypothesis, 3 if judgement.launches else 2, judgement)
        kinds = {finding.kind for finding in judgement.findings}
        failed = {Kind.TARGET_ERROR, Kind.COMPILE_ERROR, Kind.CRASH, Kind.TIMEOUT, Kind.DEVICE_ASSERT}
        if kinds and not failed & kinds:
            return _Tried(parts, hypothesis, 1, judgement)
        reason = judgement.reason or (judgement.findings[0].message if judgement.findings else "")
        return _Tried(parts, hypothesis, 0, judgement, " ".join(reason.split()))

    def _judge(
        self,
        parts: Parts,
        hypothesis: Hypothesis,
        pins: Mapping[str, str],
        layouts: Mapping[str, LayoutKind] | None = None,
    ) -> tuple[Judgement, Case]:
        from kcheck import loader, scaffold
        from kcheck.engine.draw import simplest
        from kcheck.engine.learn import learn
        from kcheck.errors import SpecError
        from kcheck.plan import Plan

        self._count += 1
        path = self._folder / f"kcheck_trial_{self._count}.py"
        text = scaffold.render(replace(parts, search=self._search), hypothesis, path.name)
        path.write_text(text, encoding="utf-8")
        (one,) = loader.load(str(path))
        self._client.load(one.spec)
        plan = Plan(pins=pins, layouts=layouts or {}, small=True)
        drawn = simplest(one.target, plan, learn(one.target, Plan()).slots) if layouts else simplest(one.target, plan)
        if drawn is None:
            raise SpecError("no case can be drawn")
        return self._client.judge(one.spec, drawn.case, () if layouts else drawn.case.views), drawn.case

    def _settled(self, best: _Tried) -> _Tried:
        """Leave out what is not accepted: optional tensors that are given, flags that are turned."""
        launched = set(best.judgement.launches if best.judgement is not None else ())
        for guess in (*best.hypothesis.optional, *best.hypothesis.flags):
            pin = "given" if guess.optional else guess.values[1]
            tried = self._try(best.parts, best.hypothesis, {guess.name: pin})
            if tried.rank >= best.rank:
                best = replace(best, hypothesis=tried.hypothesis)
                launched |= set(tried.judgement.launches if tried.judgement is not None else ())
            elif guess.optional:
                best = replace(best, hypothesis=_without(best.hypothesis, guess))
            else:
                best = replace(best, hypothesis=best.hypothesis.changed(guess.name, values=guess.values[:1]))
        return replace(best, parts=_with_kernels(best.parts, launched))

    def _with_dense(self, best: _Tried) -> _Tried:
        """Draw contiguous layouts only of what is accepted in no other."""
        hypothesis = best.hypothesis
        for guess in hypothesis.tensors:
            if self._declines(best, guess):
                todo = f"the wrapper declined {guess.name} where it was not contiguous; is that meant?"
                hypothesis = hypothesis.changed(guess.name, dense=True, todo=guess.todo or todo)
        return replace(best, hypothesis=hypothesis)

    def _declines(self, best: _Tried, guess: Guess) -> bool:
        """Whether a tensor is declined in every layout that is tried and not contiguous."""
        from kcheck.events import CaseVerdict

        path = f"{guess.name}[0]" if guess.count else guess.name
        pins = {guess.name: "given"} if guess.optional else {}
        declined = False
        for kind in _NOT_DENSE:
            try:
                judgement, case = self._judge(best.parts, best.hypothesis, pins, {path: kind})
            except KcheckError:
                continue  # the shape cannot have this layout
            if path not in case.views or case.views[path].layout.is_contiguous:
                continue
            if judgement.verdict is not CaseVerdict.REJECTED or not judgement.layout_rejected:
                return False
            declined = True
        return declined

    def _told(self, best: _Tried) -> _Tried:
        """Say what a finding may mean."""
        if best.rank > 1 or best.judgement is None:
            return best
        todo = f"check these sizes: with them, {best.judgement.findings[0].message}"
        return replace(best, parts=replace(best.parts, todo=todo))


def _with_kernels(parts: Parts, launched: Collection[str]) -> Parts:
    """Only kernels that launched must launch."""
    active = [(module, name) for module, name in parts.kernels if name in launched]
    return replace(parts, kernels=active, idle=[name for _, name in parts.kernels if name not in launched])


def _mended(hypothesis: Hypothesis, judgement: Judgement, case: Case) -> Hypothesis:
    """An input that is written is no mere input; an output of which nothing is written is none."""
    from kcheck.findings import Kind as Found
    from kcheck.scaffold import Kind

    for finding in judgement.findings:
        name = finding.argument.partition("[")[0]
        guess = next((guess for guess in hypothesis.tensors if guess.name == name), None)
        if guess is None:
            continue
        if finding.kind is Found.INPUT_MUTATED and not guess.written:
            return hypothesis.changed(name, written=True)
        every = case.views[finding.argument].layout.numel
        untouched = finding.kind is Found.UNWRITTEN_OUTPUT and finding.count == every
        if untouched and guess.kind is Kind.OUTPUT:
            return hypothesis.changed(name, kind=Kind.DATA)
    return hypothesis


def _without(hypothesis: Hypothesis, guess: Guess) -> Hypothesis:
    from kcheck.scaffold import Kind

    todo = f"a tensor for {guess.name} was not accepted in the shapes that were tried"
    return hypothesis.changed(guess.name, kind=Kind.UNKNOWN, optional=False, values=("None",), todo=todo)
