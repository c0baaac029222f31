"""All mutants of a target, each different from the original and from the others; and a sample of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import FunctionType

from kcheck.mutate import host, kernel
from kcheck.mutate.reach import Reached
from kcheck.mutate.syntax import FunctionSource
from kcheck.mutation import Mutant, Mutation


def mutants(functions: Reached) -> list[Mutant]:
    """Every mutant, in the order of the source.

    Args:
        functions: What is mutated.
    """
    found = [one for function in functions.kernels for one in _of(function, kernel)]
    return found + [one for function in functions.hosts for one in _of(function, host)]


def sample(found: Sequence[Mutant], most: int, seed: int) -> list[Mutant]:
    """At most that many, every operator represented as far as that goes, in the order of the source.

    Args:
        found: All of them.
        most: How many.
        seed: Decides which.
    """
    shuffled = random.Random(seed).sample(range(len(found)), len(found))
    rank: dict[str, int] = {}
    order: dict[int, int] = {}
    for position in shuffled:
        operator = found[position].operator
        order[position] = rank[operator] = rank.get(operator, 0) + 1
    chosen = sorted(shuffled, key=lambda position: order[position])[:most]
    return [found[position] for position in sorted(chosen)]


def _of(function: FunctionType, operators: object) -> Iterator[Mutant]:
    try:
        source = FunctionSource(function)
    except LookupError:
        return
    assert operators in (kernel, host)
    made = (kernel if operators is kernel else host).changes(source)
    known = {source.tree(())}
    found = []
    for change in made:
        tree = source.tree(change.edits)
        if tree is None or tree in known:
            continue
        known.add(tree)
        line, before, after = source.lines(change.edits)
        mutation = Mutation(function.__module__, function.__qualname__, change.edits)
        probe = replace(mutation, edits=(source.put(change.place, "(1 // 0)"),))
        found.append(Mutant(change.operator, mutation, probe, function.__code__.co_filename, line, before, after))
    yield from sorted(found, key=lambda mutant: mutant.line)
