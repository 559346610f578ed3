"""`broca published`: head lists that others have published."""

from __future__ import annotations

from dataclasses import asdict

from broca.cli.commands import command
from broca.cli.output import print_json
from broca.cli.wording import say


@command
def published(*, model: str | None = None, json: bool = False) -> None:
    """List published head lists; --heads takes their names wherever heads are taken.

    Args:
        model: Only lists of this model, such as llama-3.1-8b.
    """
    from broca.errors import UnknownName, nearest
    from broca.published import notes, published_lists, published_models

    models = published_models()
    if model is not None and model not in models:
        raise UnknownName(
            f"nothing is published for '{model}'{nearest(model, models)}; known are "
            f"{', '.join(models)}"
        )
    lists = [heads for heads in published_lists() if model in (None, heads.model)]
    if json:
        print_json([{"name": heads.name, **asdict(heads)} for heads in lists])
        return
    width = max(len(heads.name) for heads in lists)
    say(*(f"{heads.name:<{width}}  {' '.join(heads.heads)}" for heads in lists))
    say(*(f"note: {note}" for note in notes()))
