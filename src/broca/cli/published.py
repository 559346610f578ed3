"""`broca published`: head lists that others have published."""

from __future__ import annotations

from dataclasses import asdict

from broca.cli.commands import command
from broca.cli.output import print_json
from broca.cli.wording import say


@command
def published(*, model: str | None = None, json: bool = False) -> None:
    """List published head lists; --heads of every command accepts their names.

    Args:
        model: Only lists of this model, such as llama-3.1-8b.
    """
    import broca
    from broca.published import notes

    lists = broca.published_lists(model)
    if json:
        print_json([{"name": heads.name, **asdict(heads)} for heads in lists])
        return
    width = max(len(heads.name) for heads in lists)
    say(*(f"{heads.name:<{width}}  {' '.join(heads.heads)}" for heads in lists))
    say(*(f"note: {note}" for note in notes()))
