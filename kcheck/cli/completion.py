"""Shell completion: ``kcheck completion SHELL`` prints the script; the completers say what fits, and load no torch."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

VARIABLE = "_KCHECK_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


class WholeWords(BashComplete):
    """Bash cuts words at ``:`` and ``=``, of which targets and pins are full; here they are whole."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response item
    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" %(complete_var)s=bash_complete $1)
    for item in $response; do
        if [[ $item == file,* || $item == dir,* ]]; then
            COMPREPLY=()
            compopt -o default
        else
            COMPREPLY+=("${item#*,}")
            [[ $item == *= ]] && compopt -o nospace
        fi
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    @staticmethod
    def _check_version() -> None:
        """Nothing: any bash from 4.4 on will do, and asking takes a process."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one at it."""
        line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = split_arg_string(line)
        incomplete = "" if line[-1:].isspace() or len(words) < 2 else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Without what bash takes for earlier words."""
        _, incomplete = self.get_completion_args()
        done = max(incomplete.rfind(":"), incomplete.rfind("=")) + 1
        return f"{item.type},{item.value[done:]}"


add_completion_class(WholeWords, "bash")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print the completion script of SHELL.

    bash: eval "$(kcheck completion bash)" in ~/.bashrc. zsh: the same in ~/.zshrc. fish: kcheck completion fish >
    ~/.config/fish/completions/kcheck.fish.
    """
    from kcheck.cli import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "kcheck", VARIABLE).source())
    return 0


def targets(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Built-in targets, files of targets, and the targets of a file once it is named."""
    from kcheck import loader

    file, colons, _ = incomplete.partition("::")
    if colons:
        return _starting((f"{file}::{name}" for name, _ in _declared(Path(file))), incomplete)
    names = [loader.BUILTIN + name for name in loader.builtin_names()]
    names += [path.removeprefix("./") for path in loader.discovered()]
    return _starting(names, incomplete) or [CompletionItem(incomplete, type="file")]


def findings(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Fingerprints of saved findings; a path where none fits."""
    folder = Path(ctx.params.get("directory") or ".kcheck") / "findings"
    saved = _starting(sorted(path.stem for path in folder.glob("*.json")), incomplete)
    return saved or [CompletionItem(incomplete, type="file")]


def layouts(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """``argument=kind``: arguments of the targets in question, then layout kinds."""
    from kcheck.layout import LayoutKind

    argument, equals, _ = incomplete.partition("=")
    if equals:
        return _starting((f"{argument}={kind}" for kind in LayoutKind), incomplete)
    # Click gives up on the targets where an option behind them has no value yet.
    specs = ctx.params.get("targets") or ctx.args
    return _starting((f"{name}=" for name in _arguments(specs)), incomplete)


def _arguments(specs: Iterable[str]) -> list[str]:
    """Names of arguments of targets, read off their files: importing one takes seconds."""
    from kcheck import loader

    found: dict[str, None] = {}
    for spec in specs or loader.discovered():
        place, _, wanted = spec.partition("::")
        if spec.startswith(loader.BUILTIN):
            wanted = spec.removeprefix(loader.BUILTIN)
            place = str(loader.builtin_file(wanted)) if wanted in loader.builtin_names() else ""
        for name, arguments in _declared(Path(place)):
            if wanted in ("", name):
                found |= dict.fromkeys(arguments)
    return list(found)


def _declared(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Decorated functions of a file, with their parameters, those of kernels and strategies left out."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            last = [ast.unparse(decorator).partition("(")[0].rpartition(".")[2] for decorator in node.decorator_list]
            if not {"jit", "autotune", "heuristics", "composite"} & set(last):
                yield node.name, [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]


def _starting(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
