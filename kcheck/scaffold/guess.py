"""Guesses about parameters: what each one is, by annotation, default and name; and which shapes may fit together."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

_EMPTY = inspect.Parameter.empty


class Kind(enum.Enum):
    """What a parameter is."""

    DATA = "data"
    VECTOR = "vector"  # one element a column: weights
    INDEX = "index"
    MASK = "mask"
    OUTPUT = "output"
    SCALAR = "scalar"
    OMITTED = "omitted"  # its default is left to the wrapper
    UNKNOWN = "unknown"

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return self not in (Kind.SCALAR, Kind.OMITTED, Kind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Guess:
    """One parameter.

    Attributes:
        name: Its name.
        kind: What it is.
        count: Tensors in a list; 0: it is no list.
        optional: A tensor that may be None.
        values: Code of a scalar's values, simplest first; one of them may be a size (``columns``).
        todo: What could not be known, a sentence; ``""`` if nothing.
        keyword: It can be given by name only.
        written: The wrapper writes it although its name does not say so.
        dense: The wrapper accepts contiguous layouts only.
    """

    name: str
    kind: Kind
    count: int = 0
    optional: bool = False
    values: tuple[str, ...] = ()
    todo: str = ""
    keyword: bool = False
    written: bool = False
    dense: bool = False


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes that may fit together, as names of sizes.

    Attributes:
        data: Of data tensors; the last one counts for further ones.
        vector: Of weights.
        index: Of index tensors.
        output: Of outputs.
    """

    data: tuple[tuple[str, ...], ...]
    vector: tuple[str, ...]
    index: tuple[str, ...]
    output: tuple[str, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of all sizes, in order."""
        every = [size for shape in (*self.data, self.vector, self.index, self.output) for size in shape]
        return tuple(dict.fromkeys(re.sub(r"\W|\d", "", size) for size in every))

    @property
    def bound(self) -> str:
        """What index tensors address: one for each row is a label, a column; others are rows."""
        return _C if self.index == (_R,) else self.data[0][0]

    def of(self, kind: Kind, ordinal: int) -> tuple[str, ...]:
        """The shape of a tensor; `ordinal` counts the data tensors."""
        if kind in (Kind.DATA, Kind.MASK):
            return self.data[min(ordinal, len(self.data) - 1)]
        return {Kind.VECTOR: self.vector, Kind.OUTPUT: self.output}.get(kind, self.index)


_R, _C, _COUNT = "rows", "columns", "count"
SHAPES = (
    Shapes(((_R, _C),), (_C,), (_COUNT,), (_COUNT, _C)),
    Shapes(((_R, _C),), (_C,), (_R,), (_R, _C)),
    Shapes(((_R, _C),), (_R, _C), (_R, _C), (_R, _C)),
    Shapes(((_C,),), (_C,), (_C,), (_C,)),
    Shapes(((_R, _C),), (_C,), (_R,), (_R,)),
    Shapes(((_R, _C),), (_R,), (_C,), (_R, _C)),
    Shapes(((_R, f"2 * {_C}"),), (_C,), (_R,), (_R, _C)),
    Shapes((("m", "k"), ("k", "n")), ("n",), ("m",), ("m", "n")),
    Shapes((("m", "k"), ("n", "k")), ("n",), ("m",), ("m", "n")),
    Shapes((("batch", _R, _C),), (_C,), ("batch",), ("batch", _R, _C)),
    Shapes((("batch", "heads", _R, _C),), (_C,), ("batch",), ("batch", "heads", _R, _C)),
)
DTYPES = ("float32", "bfloat16", "float16")

_OUTPUT = re.compile(r"(out|outs|output|outputs|result|res|dst|dest)(_.*)?|.*_(out|output)|[yo]")
_INDEX = re.compile(
    r".*(idx|ind|index|indices|indexes|ids|slots?|slot_mapping|perm|positions?|pos|lens?|lengths?|labels?|targets?|"
    r"block_tables?|page_tables?|offsets|cu_seqlens\w*)"
)
_VECTOR = re.compile(r"([wb]|.*(weights?|bias|gamma|beta|scales?))")
_MASK = re.compile(r".*mask")
_SCALAR = re.compile(
    r"(n|num|numel|size|dim|axis|eps\w*|epsilon|alpha|p|dropout\w*|seed|stride|offset|causal|mode|dtype|fn|func|"
    r"activation|(.*_)?(eps|mode|size|dim|dtype|stride|shape|type|fn|factor|config|callback)|n_\w+|num_\w+|is_\w+|"
    r"use_\w+|has_\w+|block_\w+)"
)
_SIZES = {
    _R: re.compile(r"m|rows|n_?rows|num_?rows|tokens|n_?tokens|num_?tokens|batch(_size)?", re.IGNORECASE),
    _C: re.compile(r"n|d|n?_?col(umn)?s|num_?col(umn)?s|dim|hidden\w*|head_dim|(\w+_)?features", re.IGNORECASE),
}


def guesses(
    parameters: Mapping[str, inspect.Parameter], *, returns: bool, borrowed: Mapping[str, Any] | None = None
) -> Iterator[Guess]:
    """A guess for each parameter.

    Args:
        parameters: Of the wrapper.
        returns: It returns something, so that a tensor called ``y`` may well be an input.
        borrowed: Defaults that parameters of these names have elsewhere.
    """
    for name, parameter in parameters.items():
        bare = parameter.annotation is _EMPTY and parameter.default is _EMPTY
        elsewhere = (borrowed or {}).get(name, _EMPTY)
        if bare and elsewhere is not _EMPTY and (elsewhere is not None or not _VECTOR.fullmatch(name.lower())):
            guess = _borrowed(name, elsewhere)
        elif bare and name == "k" and "q" in parameters:
            guess = Guess(name, Kind.DATA)
        else:
            guess = _guess(name, parameter, returns)
        yield replace(guess, keyword=parameter.kind is inspect.Parameter.KEYWORD_ONLY)


def _borrowed(name: str, default: Any) -> Guess:
    """A parameter that has a default elsewhere."""
    guess = _with_default(name, default)
    values = guess.values or ("None",)
    kind = Kind.SCALAR if guess.values else Kind.UNKNOWN
    return Guess(name, kind, values=values, todo=f"{values[0]} for {name} is the default that it has elsewhere")


def _guess(name: str, parameter: inspect.Parameter, returns: bool) -> Guess:
    annotation = parameter.annotation
    text = "" if annotation is _EMPTY else annotation if isinstance(annotation, str) else _formatted(annotation)
    optional = parameter.default is None or "None" in text or "Optional" in text
    if "Tensor" in text or (not text and _looks_like_tensor(name, parameter.default)):
        many = re.match(r"\W*(typing\.)?(Optional\[)?(list|tuple|sequence|iterable)\b", text, re.IGNORECASE) is not None
        return Guess(name, _tensor_kind(name, returns), 2 if many else 0, optional)
    if parameter.default is not _EMPTY:
        return _with_default(name, parameter.default)
    return _without_default(name, text)


def _formatted(annotation: Any) -> str:
    return inspect.formatannotation(annotation)


def _looks_like_tensor(name: str, default: Any) -> bool:
    if default is not _EMPTY:
        return default is None and any(known.fullmatch(name) for known in (_VECTOR, _OUTPUT, _MASK))
    if len(name) == 1 and name.isupper():
        return name not in "MNK"
    return _SCALAR.fullmatch(name) is None and name not in ("m", "n", "k")


def _tensor_kind(name: str, returns: bool) -> Kind:
    name = name.lower()
    if _OUTPUT.fullmatch(name) and not (returns and len(name) == 1):
        return Kind.OUTPUT
    for kind, pattern in ((Kind.MASK, _MASK), (Kind.VECTOR, _VECTOR), (Kind.INDEX, _INDEX)):
        if pattern.fullmatch(name):
            return kind
    return Kind.DATA


def _with_default(name: str, default: Any) -> Guess:
    if type(default) is bool:
        return Guess(name, Kind.SCALAR, values=(repr(default), repr(not default)))
    if type(default) in (int, float):
        return Guess(name, Kind.SCALAR, values=(repr(default),))
    if type(default) is str:
        return Guess(name, Kind.SCALAR, values=('"' + repr(default)[1:-1].replace('"', '\\"') + '"',))
    return Guess(name, Kind.OMITTED)


def _without_default(name: str, text: str) -> Guess:
    size = next((size for size, pattern in _SIZES.items() if pattern.fullmatch(name)), None)
    if "dtype" in text or name.endswith("dtype"):
        return Guess(name, Kind.SCALAR, values=("torch.float32",))
    if "bool" in text or re.fullmatch(r"(is|use|has)_\w+|causal", name):
        return Guess(name, Kind.SCALAR, values=("False", "True"))
    if re.search(r"eps", name):
        return Guess(name, Kind.SCALAR, values=("1e-06",))
    if "float" in text:
        return Guess(name, Kind.SCALAR, values=("0.5",), todo=f"0.5 for {name} is a guess")
    if "int" in text or (not text and size):
        if size:
            return Guess(name, Kind.SCALAR, values=(size,), todo=f"{name} = {size} is a guess")
        if name in ("dim", "axis"):
            return Guess(name, Kind.SCALAR, values=("-1",))
        return Guess(name, Kind.SCALAR, values=("1",), todo=f"1 for {name} is a guess")
    if "str" in text:
        return Guess(name, Kind.SCALAR, values=('""',), todo=f'"" for {name} is a guess')
    known = f", annotated {text}," if text else ""
    return Guess(name, Kind.UNKNOWN, values=("None",), todo=f"None for {name}{known} is a guess")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Everything that is guessed, tried as a whole.

    Attributes:
        guesses: Parameters.
        shapes: Of tensors.
        dtype: Of floating-point tensors.
        construct: Parameters of the constructor.
    """

    guesses: tuple[Guess, ...]
    shapes: Shapes
    dtype: str = DTYPES[0]
    construct: tuple[Guess, ...] = field(default=())

    @property
    def tensors(self) -> list[Guess]:
        """Guesses that are tensors."""
        return [guess for guess in self.guesses if guess.kind.is_tensor]

    @property
    def optional(self) -> list[Guess]:
        """Tensors that may be None."""
        return [guess for guess in self.tensors if guess.optional]

    @property
    def flags(self) -> list[Guess]:
        """Scalars with several values."""
        return [guess for guess in (*self.guesses, *self.construct) if len(guess.values) > 1]

    def changed(self, name: str, **changes: Any) -> Hypothesis:
        """The same with one parameter guessed otherwise."""

        def change(part: tuple[Guess, ...]) -> tuple[Guess, ...]:
            return tuple(replace(guess, **changes) if guess.name == name else guess for guess in part)

        return replace(self, guesses=change(self.guesses), construct=change(self.construct))


def distinct(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Hypotheses without those that make no sense for the tensors at hand, or give them an earlier one's shapes."""
    found: dict[tuple[Any, ...], Hypothesis] = {}
    for one in hypotheses:
        if _COUNT in one.shapes.sizes and not any(guess.kind is Kind.INDEX for guess in one.tensors):
            continue
        data, key = 0, []
        for guess in one.tensors:
            key.append(one.shapes.of(guess.kind, data))
            data += guess.kind is Kind.DATA
        found.setdefault((one.dtype, *key), one)
    return list(found.values())
