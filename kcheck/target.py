"""A target: what is tested, with its oracle, the strategy of its cases and the roles of its arguments.

A function that may work in place, the output being the input in some cases::

    @st.composite
    def cases(draw):
        x = draw(ks.tensors((4, draw(ks.dims("columns", max_value=40))), kinds=ks.WRITABLE))
        out = x if draw(ks.options("in_place", (False, True))) else draw(ks.outputs(x.shape))
        return kcheck.Case(out=out, x=x)

    @kcheck.target(cases=cases(), oracle=lambda out, x: x * 2, outputs=["out"], aliases={"out": "x"})
    def double(out, x):
        torch.mul(x, 2, out=out)

Elements that must not matter: the columns from a row's length on, whatever they hold::

    def tail(x, lengths):
        return torch.arange(x.shape[1], device=x.device) >= lengths[:, None]

    @st.composite
    def cases(draw):
        x = draw(ks.tensors((3, draw(ks.dims("columns", max_value=40)))))
        return kcheck.Case(x=x, lengths=draw(ks.tensors((3,), "int32", low=0, high=x.shape[1])))

    @kcheck.target(cases=cases(), oracle=lambda x, lengths: x.masked_fill(tail(x, lengths), 0).sum(1), dead={"x": tail})
    def sums(x, lengths):
        return torch.where(tail(x, lengths), 0, x).sum(1)

Gradients as results; the case also has the gradient that comes in, in layouts of its own. An operator that keeps its
results in what it was given says so by `consumed`::

    @st.composite
    def cases(draw):
        shape = (draw(ks.dims("rows", max_value=8)), 16)
        return kcheck.Case(x=draw(ks.tensors(shape)), w=draw(ks.tensors((16,))), grad_output=draw(ks.tensors(shape)))

    @kcheck.target(cases=cases(), oracle=lambda x, w: torch.tanh(x) * w, grad=["x", "w"], consumed=["grad_output"])
    def scaled_tanh(x, w):
        return x.tanh() * w
"""

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
GRAD_OUTPUT = "grad_output"  # of a case, beside the arguments: the gradients that go into a backward pass


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
        grad: Arguments whose gradients are outputs too.
        aliases: Output → the input that it may be.
        dead: Argument → function that says which of its elements must not matter.
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
    grad: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    dead: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
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
        """Names of what a case has: the function's parameters, and ``grad_output`` for a target with gradients."""
        return (*inspect.signature(self.function).parameters, *([GRAD_OUTPUT] if self.grad else []))


def target(
    *,
    cases: SearchStrategy[Case],
    oracle: Callable[..., Any] | None = None,
    kernels: Sequence[Any] = (),
    outputs: Sequence[str] = (),
    inout: Sequence[str] = (),
    consumed: Sequence[str] = (),
    scratch: Sequence[str] = (),
    grad: Sequence[str] = (),
    aliases: Mapping[str, str] | None = None,
    dead: Mapping[str, Callable[..., Any]] | None = None,
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
        consumed: Inputs that the target may overwrite with anything: a saved activation, a gradient reused as buffer.
        scratch: Arguments that may be written and are never judged; they hold nothing of use before.
        grad: Arguments whose gradients are outputs too. The case then also has ``grad_output``: the tensor that goes
            into the backward pass, or a list of one for each returned tensor that requires a gradient; its layout is
            drawn like any other. torch differentiates the oracle.
        aliases: Outputs that may be one of the inputs: ``{"out": "x"}`` for a kernel that works in place too. Memory
            that is shared without a word here is an error of the case, not of the kernel.
        dead: Elements that must not matter, by argument: ``{"pool": unused_pages}``. The function has the target's
            parameters, gets dense values as the oracle does, and returns a mask of the argument's shape, True where an
            element is dead. Runs differ in what lies there (valid-looking values, then NaN).
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
        roles = _roles(
            where,
            {
                Role.OUTPUT: ("outputs", outputs),
                Role.INOUT: ("inout", inout),
                Role.CONSUMED: ("consumed", consumed),
                Role.SCRATCH: ("scratch", scratch),
            },
        )
        _check_strings(where, grad=grad, unwritten_ok=unwritten_ok)
        accepted = {arg: _kinds(kinds, where) for arg, kinds in (must_accept or {}).items()}
        _check_names(function, [*roles, *accepted, *(n for n in unwritten_ok if n != RETURNED)], where, bool(grad))
        _check_names(function, [*grad, *(aliases or {}).values(), *(dead or {})], where)
        _check_grad(function, grad, roles, where)
        for output in aliases or {}:
            if roles.get(output) is not Role.OUTPUT:
                raise TargetLoadError(f"{where}: aliases: {output!r} is not one of its outputs")
        for mask in (dead or {}).values():
            _check_takes(function, mask, "dead mask", where)
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
        if oracle is not None:
            _check_takes(function, oracle, "oracle", where)
        return Target(
            function=function,
            cases=cases,
            oracle=oracle,
            kernels=tuple(kernel_name(kernel) for kernel in kernels),
            roles=roles,
            named=tuple(kernel for kernel in kernels if isinstance(kernel, str)),
            grad=tuple(grad),
            aliases=dict(aliases or {}),
            dead=dict(dead or {}),
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


def _roles(where: str, named: Mapping[Role, tuple[str, Sequence[str]]]) -> dict[str, Role]:
    """Roles by argument, from the arguments given for each."""
    roles: dict[str, Role] = {}
    for role, (option, names) in named.items():
        _check_strings(where, **{option: names})
        for name in names:
            if name in roles:
                raise TargetLoadError(f"{where}: {name!r} is both {roles[name].value} and {role.value}; name it once")
            roles[name] = role
    return roles


def _check_strings(where: str, **options: Sequence[str]) -> None:
    for option, names in options.items():
        if isinstance(names, str):
            raise TargetLoadError(f"{where}: {option} is the string {names!r}; write {option}=[{names!r}]")


def _check_names(function: Callable[..., Any], names: Iterable[str], where: str, grad: bool = False) -> None:
    parameters = inspect.signature(function).parameters
    for name in names:
        if name not in parameters and not (grad and name == GRAD_OUTPUT):
            raise TargetLoadError(
                f"{where}: {name!r} is not a parameter of {function.__name__}({', '.join(parameters)})"
            )


def _check_grad(function: Callable[..., Any], grad: Sequence[str], roles: Mapping[str, Role], where: str) -> None:
    if grad and GRAD_OUTPUT in inspect.signature(function).parameters:
        raise TargetLoadError(f"{where}: with grad=[...] the case's {GRAD_OUTPUT} is kcheck's; rename the parameter")
    for name in grad:
        if roles.get(name) not in (None, Role.CONSUMED):
            raise TargetLoadError(f"{where}: {name!r} has a gradient and is {roles[name].value}; it must be an input")


def _check_takes(function: Callable[..., Any], other: Callable[..., Any], what: str, where: str) -> None:
    """The oracle, and masks, are called with the function's own argument names, so they must take exactly these."""
    wanted = list(inspect.signature(function).parameters)
    try:
        signature = inspect.signature(other)
        signature.bind(**dict.fromkeys(wanted))
    except TypeError as error:
        raise TargetLoadError(
            f"{where}: its {what} {getattr(other, '__name__', other)!r} cannot be called with "
            f"({', '.join(wanted)}): {error}; give the {what} the target's parameters"
        ) from None
    except ValueError:  # a builtin without a signature: found out when it is called
        return
