"""The command line. Only click is imported at the top: ``kcheck --help`` loads neither hypothesis, rich nor torch."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import traceback
from pathlib import Path

import click

import kcheck
from kcheck.errors import KcheckError
from kcheck.store import DEFAULT_ROOT

_COMMANDS = {
    "fuzz": ("fuzz", "Run targets over generated layouts and sizes."),
    "sanitize": ("sanitize", "Run targets under a memory checker: kcheck's own, or NVIDIA's compute-sanitizer."),
    "compare": ("compare", "Compare two variants of a target: values, time, memory."),
    "replay": ("replay", "Run the case of a finding again."),
    "show": ("show", "Draw the layouts of a case."),
    "init": ("init", "Write a first target for a function that launches kernels."),
    "list": ("listing", "List targets."),
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
3 could not check · 4 internal error · 5 no target · 130 interrupted"""


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EXIT_CODES)
@click.version_option(kcheck.__version__, prog_name="kcheck")
def cli() -> None:
    """Find the bugs that GPU kernel test suites miss: wrong strides, wrong offsets, reads outside a view."""


def main() -> None:
    """Run the command line; every error is one sentence and an exit code."""
    try:
        if "_KCHECK_COMPLETE" in os.environ:
            importlib.import_module("kcheck.cli.completion")  # it has a bash of its own
        _leave(cli.main(prog_name="kcheck", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KcheckError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.stdout = None  # nobody reads on; do not fail again at exit
        sys.exit(0)
    except OSError as error:
        _say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        sys.exit(4)
    except Exception as error:
        _say(f"internal error: {type(error).__name__}: {error}; {_keep_traceback()}")
        sys.exit(4)


def _leave(code: int) -> None:
    """End the process, also where a target's import has left threads that never end."""
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _say(sentence: str) -> None:
    click.echo(f"kcheck: {sentence}", err=True)


def _keep_traceback() -> str:
    """Write the traceback to a file; nobody wants it on the screen, the bug report needs it."""
    path = Path(DEFAULT_ROOT) / "internal-error.txt"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(traceback.format_exc())
    except OSError:
        return "the traceback could not be written"
    return f"please report it with {path}"
