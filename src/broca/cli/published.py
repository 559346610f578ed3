"""`broca published`: head lists that others have published."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from broca.cli.run_options import Json


def published(
    model: Annotated[
        str | None, typer.Option(help="Only lists of this model, such as llama-3.1-8b.")
    ] = None,
    json: Json = False,
) -> None:
    """List published head lists; --heads takes their names wherever heads are taken."""
    from broca.errors import UnknownName, nearest
    from broca.published import notes, published_lists, published_models

    models = published_models()
    if model is not None and model not in models:
        raise UnknownName(
            f"nothing is published for '{model}'{nearest(model, models)}; known are "
            f"{', '.join(models)}"
        )
    lists = [one for one in published_lists() if model in (None, one.model)]
    if json:
        data = [{"name": one.name, **asdict(one)} for one in lists]
        sys.stdout.write(json_format.dumps(data, indent=2) + "\n")
        return
    width = max(len(one.name) for one in lists)
    for one in lists:
        typer.echo(f"{one.name:<{width}}  {' '.join(one.heads)}")
    for note in notes():
        typer.echo(f"note: {note}")
