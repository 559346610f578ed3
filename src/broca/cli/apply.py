"""`broca apply`: a whole model from a patch and its base."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from broca.cli.commands import PrintOptions, command
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.options import ModelOptions, without


@command
def apply(
    patch: str,
    model: str,
    /,
    *,
    to: str,
    print_options: Annotated[PrintOptions, without("json")],
    model_options: Annotated[ModelOptions, without("components", "dtype")],
) -> None:
    """Apply PATCH to MODEL and write the whole model.

    Args:
        patch: The folder that `broca export --kind patch` wrote.
        model: The model for which the patch was made.
        to: Folder for the model.
    """
    import broca

    with closing(ProgressDisplay(print_options)) as progress:
        folder = broca.apply(patch, model, to, on_progress=progress, model_options=model_options)
    say(f"written to {folder}")
