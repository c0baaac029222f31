"""Options that several commands share, gathered into one object for each group, and how their values are read."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kcheck import config
from kcheck.backend_spec import DEFAULT_ENGINE, ENGINES, BackendSpec
from kcheck.cli import completion
from kcheck.errors import UsageError
from kcheck.gpus import DEFAULT, GPUS
from kcheck.layout import LayoutKind
from kcheck.machine import chosen_backend as chosen_backend
from kcheck.plan import Pin, Plan
from kcheck.store import DEFAULT_ROOT

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Profiles = Mapping[str, Mapping[str, Any]]

directory: Decorator = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=Path(DEFAULT_ROOT),
    show_default=True,
    help="Where findings and examples are kept.",
)


database: Decorator = click.option(
    "--database",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of examples that runs, and machines, share; in --dir if not given.",
)


def _case_timeout(default: float = 20.0, help_text: str = "Seconds that one case may take.") -> Decorator:
    return click.option(
        "--case-timeout", type=click.FloatRange(min=0.1), default=default, show_default=True, help=help_text
    )


case_timeout: Decorator = _case_timeout()


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """Which cases to run.

    Attributes:
        max_examples: Random cases a target.
        seed: Of all that is drawn at random.
        plan: What is pinned.
        sweep: Also run the sweep's cases.
        case_timeout: Seconds that one case may take.
        is_seed_drawn: Nobody asked for this seed.
    """

    max_examples: int
    seed: int
    plan: Plan
    sweep: bool
    case_timeout: float
    is_seed_drawn: bool = False


def cases(
    *,
    max_examples: int,
    examples_help: str,
    seed_help: str = "Seed of the whole run; drawn and shown if not given.",
    case_timeout: float = 20.0,
    timeout_help: str = "Seconds that one case may take.",
) -> Decorator:
    """The options that `CaseOptions` holds; the command gets them as ``cases``.

    Args:
        max_examples: Default of ``--max-examples``.
        examples_help: Its help.
        seed_help: Help of ``--seed``.
        case_timeout: Default of ``--case-timeout``.
        timeout_help: Its help.
    """

    def gather(sets: Sequence[str], layouts: Sequence[str], seed: int | None, **rest: Any) -> CaseOptions:
        drawn = random.SystemRandom().getrandbits(32) if seed is None else seed
        return CaseOptions(seed=drawn, plan=read_plan(sets, layouts), is_seed_drawn=seed is None, **rest)

    return group(
        "cases",
        gather,
        max_examples=click.option(
            "--max-examples", type=click.IntRange(min=0), default=max_examples, show_default=True, help=examples_help
        ),
        seed=click.option("--seed", type=click.IntRange(0, 2**32 - 1), help=seed_help),
        sets=click.option(
            "--set", "sets", multiple=True, metavar="NAME=VALUE", help="Pin a dimension or an option; repeatable."
        ),
        layouts=click.option(
            "--layout",
            "layouts",
            multiple=True,
            metavar="ARGUMENT=KIND",
            shell_complete=completion.layouts,
            help="Pin a layout kind; repeatable.",
        ),
        sweep=click.option("--sweep/--no-sweep", default=True, help="Walk through layouts and boundary sizes first."),
        case_timeout=_case_timeout(case_timeout, timeout_help),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingOptions:
    """When a run fails, and where it is told.

    Attributes:
        fail_on: Mildest severity that gives exit code 1.
        allow_skip: Targets that may be left unchecked, by name, or ``all``.
        baseline: File of known findings.
        write_baseline: File that the findings of the run are written to.
        reports: Reports, each ``FORMAT`` or ``FORMAT=PATH``.
        report_dir: Folder of reports.
    """

    fail_on: str
    allow_skip: tuple[str, ...]
    baseline: Path | None
    write_baseline: Path | None
    reports: tuple[str, ...]
    report_dir: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(JudgingOptions):
    """How long a run takes, when it fails, and where it is told.

    Attributes:
        max_time: Seconds a target.
        total_time: Seconds for all targets.
    """

    max_time: float
    total_time: float


_JUDGING: Mapping[str, Decorator] = {
    "fail_on": click.option(
        "--fail-on",
        type=click.Choice(config.SEVERITIES),
        default="error",
        show_default=True,
        help="Mildest severity that gives exit code 1.",
    ),
    "allow_skip": click.option(
        "--allow-skip",
        multiple=True,
        metavar="TARGET",
        help="That this target, or all, could not be checked does not fail the run; repeatable.",
    ),
    "baseline": click.option(
        "--baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Known findings, each with its issue: they do not fail the run, what is new or gone does.",
    ),
    "write_baseline": click.option(
        "--write-baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the findings of this run to a baseline; what it lists keeps its issue.",
    ),
    "reports": click.option(
        "--report",
        "reports",
        multiple=True,
        metavar="FORMAT[=PATH]",
        help="Also tell the run in this format; repeatable. Without a path the report goes to standard output.",
    ),
    "report_dir": click.option(
        "--report-dir", type=click.Path(path_type=Path), help="Folder that reports are written to."
    ),
}


def judging(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that `JudgingOptions` holds; the command gets them as ``judging``."""
    return _profile({})(group("judging", JudgingOptions, **_JUDGING)(function))


def run(*, max_time: float, time_help: str, profiles: Profiles) -> Decorator:
    """The options that `RunOptions` holds; the command gets them as ``run``. And ``--profile``, of the defaults of all.

    Args:
        max_time: Default of ``--max-time``.
        time_help: Its help.
        profiles: Profile → option → value.
    """
    options = group(
        "run",
        RunOptions,
        max_time=click.option(
            "--max-time", type=click.FloatRange(min=0.1), default=max_time, show_default=True, help=time_help
        ),
        total_time=click.option(
            "--total-time",
            type=click.FloatRange(min=0.1),
            default=math.inf,
            help="Seconds for all targets together, in equal shares.",
        ),
        **_JUDGING,
    )
    profile = _profile(profiles)
    return lambda function: profile(options(function))


def _profile(profiles: Profiles) -> Decorator:
    return click.option(
        "--profile",
        type=click.Choice(config.PROFILES),
        is_eager=True,
        expose_value=False,
        callback=functools.partial(_take_defaults, profiles),
        help="Defaults for a pull request, or for the night.",
    )


def _take_defaults(profiles: Profiles, ctx: click.Context, option: click.Parameter, name: str | None) -> None:
    """Let the profile and pyproject.toml say what the command line does not.

    Raises:
        UsageError: pyproject.toml is wrong.
    """
    project = config.read()
    defaults = project.defaults(name or project.profile, profiles)
    ctx.default_map = {key.replace("-", "_"): value for key, value in defaults.items()}


def group(name: str, gather: Callable[..., Any], **options: Decorator) -> Decorator:
    """Options that a command gets as one argument.

    Args:
        name: Of the argument.
        gather: Makes it from the options' values.
        options: By the name of their value, in the order of the help.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            own = {key: values.pop(key) for key in options}
            return function(**values, **{name: gather(**own)})

        decorated: Callable[..., Any] = command
        for option in reversed(options.values()):
            decorated = option(decorated)
        return decorated

    return decorate


def _backend_text(backend: str, pretend: str | None, all_configs: bool, engine: str | None, viewcheck: bool) -> str:
    return str(BackendSpec(backend, pretend or "", all_configs, engine or "", checked=viewcheck))


# The command gets what `kcheck.backend_spec` reads.
backend: Decorator = group(
    "backend",
    _backend_text,
    backend=click.option(
        "--backend",
        type=click.Choice(["auto", "interpret", "cuda"]),
        default="auto",
        show_default=True,
        help="Where kernels run.",
    ),
    pretend=click.option(
        "--pretend",
        metavar="ARCH",
        help=f"GPU that the CPU stands in for: {', '.join(GPUS)}; {DEFAULT} if not given.",
    ),
    all_configs=click.option(
        "--all-configs", is_flag=True, help="Run every configuration of autotuned kernels (CPU), not the first alone."
    ),
    engine=click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="How the CPU runs the programs of a launch: batched, all of them together where that gives the same; "
        f"sequential; auto, batched where it pays. {DEFAULT_ENGINE} if not given.",
    ),
    viewcheck=click.option(
        "--viewcheck",
        is_flag=True,
        help="On a GPU: compile kernels with a check of every access, so that findings name the line, as on the CPU.",
    ),
)


def read_plan(sets: Sequence[str], layouts: Sequence[str]) -> Plan:
    """Read ``--set NAME=VALUE`` and ``--layout ARGUMENT=KIND``.

    Raises:
        UsageError: One of them is not of that form, or names no layout kind.
    """
    pins: dict[str, Pin] = {}
    for text in sets:
        name, value = _pair("--set", text, "NAME=VALUE")
        pins[name] = int(value) if value.removeprefix("-").isdigit() else value
    kinds: dict[str, LayoutKind] = {}
    for text in layouts:
        name, value = _pair("--layout", text, "ARGUMENT=KIND")
        if value not in list(LayoutKind):
            raise UsageError(f"--layout {text}: {value!r} is not a layout kind; use one of {', '.join(LayoutKind)}")
        kinds[name] = LayoutKind(value)
    return Plan(pins, kinds)


def _pair(option: str, text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"{option} {text}: expected {form}")
    return name, value
