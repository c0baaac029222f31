"""``kcheck list``: what there is to run."""

from __future__ import annotations

import click

from kcheck.cli import completion
from kcheck.errors import NoTargetError


@click.command("list")
@click.argument("targets", nargs=-1, shell_complete=completion.targets)
def command(targets: tuple[str, ...]) -> int:
    """List TARGETS (as for fuzz), and the built-in ones."""
    from kcheck import loader
    from kcheck.targets import registry

    try:
        for one in loader.select(targets):
            kernels = ", ".join(one.target.kernels) or "any kernel"
            click.echo(f"{one.spec}({', '.join(one.target.parameters)})  {kernels}")
    except NoTargetError as error:
        if targets:
            raise
        click.echo(f"kcheck: {error}", err=True)
    if not targets:
        for pair in registry.PAIRS:
            click.echo(f"{pair.right:<26}  {pair.wrong:<33}  {pair.mechanism}")
        for control in registry.CONTROLS:
            click.echo(f"{control:<61}  control: right, and tricky")
    return 0
