"""`broca tasks`: what can be asked without any download."""

from __future__ import annotations

from typing import Annotated

import typer


def tasks(
    include_path: Annotated[
        str | None, typer.Option(help="A folder of lm-eval YAML tasks to add.")
    ] = None,
) -> None:
    """List the shipped tasks and those of a folder; every task of lm-eval can be named too."""
    from broca.tasks import Catalog

    catalog = Catalog(include_path)
    for name in catalog.shipped:
        typer.echo(name)
    for name in catalog.included:
        typer.echo(f"{name} (from {include_path})")
