"""A mutant in this process: the function gets other code in place, so that whoever refers to it runs the mutant.

Whatever reads its source (the interpreter, Triton's compiler, tracebacks) reads the mutated lines. A process has one
mutant at most: much is kept by function, and must not be taken for another one's.
"""

from __future__ import annotations

import io
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType

from kcheck.errors import CouldNotCheck
from kcheck.mutation import Mutation, edited, function_at, source_of
from kcheck.worker.backends.base import Backend

_done: list[Mutation] = []


def ensure(mutation: Mutation | None, backend: Backend) -> None:
    """Have this process run a mutant from now on.

    Args:
        mutation: The change; None: no mutant runs here.
        backend: Told to compile anew.

    Raises:
        CouldNotCheck: The change cannot be made here.
    """
    if _done == ([] if mutation is None else [mutation]):
        return
    if _done or mutation is None:
        raise CouldNotCheck("this worker already runs another mutant; please report it")
    found = function_at(mutation.module, mutation.qualname)
    if found is None:
        raise CouldNotCheck(f"{mutation.module} has no function {mutation.qualname}")
    function, holder = found
    text = edited(source_of(function), mutation.edits).decode()
    try:
        function.__code__ = _code(function, text)
    except (SyntaxError, ValueError, LookupError) as error:
        raise CouldNotCheck(f"the mutant of {mutation.qualname} does not compile: {error}") from None
    file = function.__code__.co_filename
    # Without a time of change nothing looks at the file again.
    linecache.cache[file] = len(text), None, io.StringIO(text).readlines(), file
    if backend.device == "cuda" and holder is not function:
        from kcheck.worker.backends.cuda.triton_seams import reread_source

        reread_source(holder)
    _done.append(mutation)


def _code(function: FunctionType, text: str) -> CodeType:
    """The function's code in another text of its file, with the lines where they were."""
    old = function.__code__
    module = compile(text, old.co_filename, "exec", dont_inherit=True)
    for code in _all(module):
        if code.co_qualname == old.co_qualname and code.co_firstlineno == old.co_firstlineno:
            return code
    raise LookupError(f"no function {old.co_qualname} in line {old.co_firstlineno}")


def _all(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _all(constant)
