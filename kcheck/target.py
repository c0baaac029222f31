"""A target: what is tested, with its oracle, the strategy of its cases and the roles of its arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kcheck.case import Case, Role
from kcheck.errors import TargetLoadError
from kcheck.layout import LayoutKind

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

RETURNED = "return"  # in place of an argument's name: what the target returns


@dataclass(frozen=True, eq=False)
class Target:
    """What `kcheck.target` makes of a function. Calling it calls the function.

    Attributes:
        function: Launches the kernels. Its return value is compared with the oracle's, where both give tensors.
        cases: Strategy of cases; their argument names are the function's parameters.
        oracle: The same in plain PyTorch, with the same parameters; None checks layout invariance and memory only.
        kernels: Names of the kernels that must launch.
        named: Those of them that were given as strings: they need not be Triton functions.
        roles: Roles of the arguments that the target declares.
        unwritten_ok: Outputs that may keep elements unwritten.
        must_accept: Layout kinds, by argument, that the target has no right to reject.
        exact: Compare bits; NaN equals NaN.
        rtol: Relative tolerance instead of the default; only together with `atol`.
        atol: Absolute tolerance instead of the default.
        deterministic: Two runs must agree in every bit.
        name: Name in reports.
        file: Where it is defined.
        line: Line of the definition.
    """

    function: Callable[..., Any]
    cases: SearchStrategy[Case]
    oracle: Callable[..., Any] | None
    kernels: tuple[str, ...]
    roles: Mapping[str, Role]
    named: tuple[str, ...] = ()
    unwritten_ok: frozenset[str] = frozenset()
    must_accept: Mapping[str, frozenset[LayoutKind]] = field(default_factory=dict)
    exact: bool = False
    rtol: float | None = None
    atol: float | None = None
    deterministic: bool = False
    name: str = ""
    file: str = ""
    line: int = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function under test."""
        return self.function(*args, **kwargs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Arguments with role output or inout, in the order declared: what the oracle's results are matched with."""
        return tuple(name for name, role in self.roles.items() if role in (Role.OUTPUT, Role.INOUT))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameter names of the function."""
        return tuple(inspect.signature(self.function).parameters)


def target(
    *,
    cases: SearchStrategy[Case],
    oracle: Callable[..., Any] | None = None,
    kernels: Sequence[Any] = (),
    outputs: Sequence[str] = (),
    inout: Sequence[str] = (),
    scratch: Sequence[str] = (),
    unwritten_ok: Sequence[str] = (),
    must_accept: Mapping[str, Iterable[LayoutKind | str]] | None = None,
    exact: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    deterministic: bool = False,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Target]:
    """Declare a function as a target of kcheck.

    Args:
        cases: Strategy of `kcheck.Case`; the arguments of each case are passed to the function by name.
        oracle: Plain PyTorch, same parameters. It gets dense contiguous clones. What it returns is matched with
            `outputs` in order; if it returns None, its own outputs are read.
        kernels: ``@triton.jit`` functions (or their names) each of which must launch in the run, else the run proves
            nothing about them. Empty: any launch will do.
        outputs: Arguments that the target writes completely.
        inout: Arguments that the target may write in part; elements not written keep their value.
        scratch: Arguments that may be written and are never judged.
        unwritten_ok: Outputs that may keep elements unwritten; ``return`` stands for what the target returns.
        must_accept: Layout kinds by argument (``{"x": ["transposed"]}``) that must not be rejected.
        exact: Compare bits; NaN equals NaN.
        rtol: Relative tolerance; only together with `atol`.
        atol: Absolute tolerance; only together with `rtol`.
        deterministic: Two runs must agree in every bit.
        name: Name in reports; the function's name by default.

    Returns:
        A decorator that turns the function into a `Target`.

    Raises:
        TargetLoadError: The declaration contradicts itself or the function's signature.
    """

    def decorate(function: Callable[..., Any]) -> Target:
        where = f"{inspect.getsourcefile(function) or '?'}:{function.__code__.co_firstlineno}: target "
        where += repr(name or function.__name__)
        for option, names in {
            "outputs": outputs,
            "inout": inout,
            "scratch": scratch,
            "unwritten_ok": unwritten_ok,
        }.items():
            if isinstance(names, str):
                raise TargetLoadError(f"{where}: {option} is the string {names!r}; write {option}=[{names!r}]")
        roles = dict.fromkeys(outputs, Role.OUTPUT) | dict.fromkeys(inout, Role.INOUT)
        roles |= dict.fromkeys(scratch, Role.SCRATCH)
        accepted = {arg: _kinds(kinds, where) for arg, kinds in (must_accept or {}).items()}
        _check_names(function, [*roles, *accepted, *(name for name in unwritten_ok if name != RETURNED)], where)
        if len(roles) != len(outputs) + len(inout) + len(scratch):
            raise TargetLoadError(f"{where}: an argument is named twice among outputs, inout and scratch")
        if (rtol is None) != (atol is None):
            raise TargetLoadError(f"{where}: give rtol and atol together, or neither")
        for option, number in {"rtol": rtol, "atol": atol}.items():
            if number is not None and not (math.isfinite(number) and number >= 0):
                raise TargetLoadError(f"{where}: {option} is {number!r}; expected a finite number >= 0")
        if exact and rtol is not None:
            raise TargetLoadError(f"{where}: exact=True compares bits; rtol and atol cannot be given with it")
        if not hasattr(cases, "filter"):
            raise TargetLoadError(
                f"{where}: cases is a {type(cases).__name__}; expected a Hypothesis strategy (call the composite: "
                "cases=cases())"
            )
        _check_oracle(function, oracle, where)
        return Target(
            function=function,
            cases=cases,
            oracle=oracle,
            kernels=tuple(kernel_name(kernel) for kernel in kernels),
            roles=roles,
            named=tuple(kernel for kernel in kernels if isinstance(kernel, str)),
            unwritten_ok=frozenset(unwritten_ok),
            must_accept=accepted,
            exact=exact,
            rtol=rtol,
            atol=atol,
            deterministic=deterministic,
            name=name or function.__name__,
            file=inspect.getsourcefile(function) or "",
            line=function.__code__.co_firstlineno,
        )

    return decorate


def kernel_name(kernel: Any) -> str:
    """Name of a kernel given as a string, a jit function, or one wrapped by autotune or heuristics.

    Raises:
        TargetLoadError: It is none of these.
    """
    inner = kernel
    while not isinstance(inner, str) and not inspect.isfunction(inner):
        inner = getattr(inner, "fn", None)
        if inner is None:
            raise TargetLoadError(f"kernels: {kernel!r} is not a kernel; give a @triton.jit function or its name")
    return inner if isinstance(inner, str) else inner.__name__


def _kinds(kinds: Iterable[LayoutKind | str], where: str) -> frozenset[LayoutKind]:
    try:
        return frozenset(LayoutKind(kind) for kind in kinds)
    except ValueError as error:
        raise TargetLoadError(f"{where}: must_accept: {error}; kinds are {', '.join(LayoutKind)}") from None


def _check_names(function: Callable[..., Any], names: Sequence[str], where: str) -> None:
    parameters = inspect.signature(function).parameters
    for name in names:
        if name not in parameters:
            raise TargetLoadError(
                f"{where}: {name!r} is not a parameter of {function.__name__}({', '.join(parameters)})"
            )


def _check_oracle(function: Callable[..., Any], oracle: Callable[..., Any] | None, where: str) -> None:
    """The oracle is called with the function's own argument names, so it must take exactly these."""
    if oracle is None:
        return
    wanted = list(inspect.signature(function).parameters)
    try:
        signature = inspect.signature(oracle)
        signature.bind(**dict.fromkeys(wanted))
    except TypeError as error:
        raise TargetLoadError(
            f"{where}: its oracle {getattr(oracle, '__name__', oracle)!r} cannot be called with "
            f"({', '.join(wanted)}): {error}; give the oracle the target's parameters"
        ) from None
    except ValueError:  # a builtin without a signature: found out when it is called
        return
