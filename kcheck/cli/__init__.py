"""The command line. Only click is imported at the top: ``kcheck --help`` loads neither hypothesis, rich nor torch."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import traceback
from pathlib import Path

import click

import kcheck
from kcheck import startup
from kcheck.errors import KcheckError
from kcheck.store import DEFAULT_ROOT

_COMMANDS = {
    "fuzz": ("fuzz", "Run targets over generated layouts and sizes."),
    "sanitize": ("sanitize", "Run targets under a memory checker: kcheck's own, or NVIDIA's compute-sanitizer."),
    "compare": ("compare", "Compare two variants of a target: values, time, memory."),
    "merge": ("merge", "Join the reports of the shards of a run."),
    "mutate": ("mutate", "Change a target's kernels as bugs do: how many changes does it notice?"),
    "replay": ("replay", "Run the case of a finding again."),
    "show": ("show", "Draw the layouts of a case."),
    "init": ("init", "Write a first target for a function that launches kernels."),
    "list": ("listing", "List targets."),
    "selftest": ("selftest", "Run the built-in targets: are the known bugs found, is all else silent?"),
    "completion": ("completion", "Print a completion script for bash, zsh or fish."),
    "doctor": ("doctor", "Say what can be checked on this machine."),
}


class _Commands(click.Group):
    """Subcommands that are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"kcheck.cli.{_COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


# \b keeps click from filling the paragraph.
_EXIT_CODES = """\b
Exit codes: 0 nothing found · 1 findings · 2 usage or configuration ·
3 could not check · 4 internal error · 5 no target · 130 interrupted ·
141 stdout was closed"""


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EXIT_CODES)
@click.version_option(kcheck.__version__, prog_name="kcheck")
def cli() -> None:
    """Find the bugs that GPU kernel test suites miss: wrong strides, wrong offsets, reads outside a view."""


def main() -> None:
    """Run the command line and end the process; every error is one sentence and an exit code."""
    _open_streams()
    code = _run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads on, or it is closed
            stream.flush()
    # What a target's import leaves behind must not decide: a thread that never ends, an exit handler.
    os._exit(code)


def _open_streams() -> None:
    """Have closed standard streams lead nowhere: the next file that is opened would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _run() -> int:
    try:
        startup.over()
        os.environ.pop("TRITON_INTERPRET", None)  # kcheck brings an interpreter of its own
        if "_KCHECK_COMPLETE" in os.environ:
            importlib.import_module("kcheck.cli.completion")  # it has a bash of its own
            cli.main(prog_name="kcheck")
        return _invoke()
    except (click.exceptions.Abort, KeyboardInterrupt):
        _say("interrupted")
        return 130
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return error.exit_code
    except KcheckError as error:
        _say(str(error))
        return error.exit_code
    except BrokenPipeError:  # the code of any program that this ends; no pass, for the run was not over
        return 128 + signal.SIGPIPE
    except OSError as error:
        _say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 4
    except Exception as error:
        _say(internal_error(error))
        return 4


def _invoke() -> int:
    try:
        with cli.make_context("kcheck", sys.argv[1:]) as context:  # cli.main would make 1 of a broken pipe
            code = int(cli.invoke(context) or 0)
    except click.exceptions.Exit as done:  # --help
        code = done.exit_code
    sys.stdout.flush()
    return code


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads on
        click.echo(f"kcheck: {sentence}", err=True)


def internal_error(error: Exception) -> str:
    """A sentence about a fault of kcheck's own, which is being handled."""
    return f"internal error: {type(error).__name__}: {error}; {_keep_traceback()}"


def _keep_traceback() -> str:
    """Write the traceback to a file; nobody wants it on the screen, the bug report needs it."""
    path = Path(DEFAULT_ROOT) / "internal-error.txt"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(traceback.format_exc())
    except OSError:
        return "the traceback could not be written"
    return f"please report it with {path}"
