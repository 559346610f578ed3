"""`broca export`: a model without some components, for other libraries."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from broca.cli.commands import PrintOptions, command
from broca.cli.output import print_result
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.options import ModelOptions, SourceOptions, TaskOptions, without


@command
def export(
    target: str,
    /,
    *,
    to: str,
    heads: str | None = None,
    kind: str = "adapter",
    scale: float | None = None,
    check: bool = False,
    task: str | None = None,
    items: int = 100,
    push: str | None = None,
    private: bool = False,
    source_options: SourceOptions,
    task_options: TaskOptions,
    model_options: Annotated[ModelOptions, without("components")],
    print_options: PrintOptions,
) -> None:
    """Export a model without some components, and check the export with other libraries.

    Args:
        target: The out folder of a run; with `heads`, a model.
        to: Folder for the export.
        heads: Components, L0H4+L1M, or published:MODEL/TASK/METHOD.
        kind: adapter (PEFT), weights (a checkpoint), heads (a list) or patch (changed tensors).
        scale: Factor of their outputs; default: the run's, or 0.
        check: Compare lm-eval's score of the export with broca's.
        task: The task of `check`; default: the run's.
        items: Under mean ablation, the run's number of items.
        push: Upload the export to this repository of the hub.
        private: Make a new repository private.
    """
    import broca

    with closing(ProgressDisplay(print_options)) as progress:
        done = broca.export(
            target,
            to,
            heads=heads,
            kind=kind,
            scale=scale,
            check=check,
            task=task,
            items=items,
            push=push,
            private=private,
            on_progress=progress,
            source_options=source_options,
            task_options=task_options,
            model_options=model_options,
        )
    if print_options.json:
        print_result(done)
    else:
        say(*done.summary(), f"written to {to}; its README.md explains how to load it")
