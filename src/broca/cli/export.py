"""`broca export`: a model without some components, for other libraries."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated, Any

from broca.cli.commands import PrintOptions, command_of
from broca.cli.keeping import measuring
from broca.cli.output import print_result
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.options import RunOptions, without


@command_of("broca.verbs.export:export", renamed={"model": "target"})
def export(
    target: str,
    /,
    *,
    to: str,
    heads: str | None = None,
    check: bool = False,
    run_options: Annotated[RunOptions, without("ablation_options", "components")],
    print_options: PrintOptions,
    **parameters: Any,
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
        journal: A journal for the rows of `check`; default: the run's, or memory without a run.
    """
    import broca

    with ExitStack() as opened:
        if check and heads is None and Path(target).expanduser().is_dir():
            run_folder = measuring(target, run_options, print_options)
            _, run_options, progress = opened.enter_context(run_folder)
        else:
            progress = opened.enter_context(closing(ProgressDisplay(print_options)))
        done = broca.export(
            target,
            to,
            heads=heads,
            check=check,
            on_progress=progress,
            run_options=run_options,
            **parameters,
        )
    if print_options.json:
        print_result(done)
    else:
        say(*done.summary(), f"written to {to}; its README.md explains how to load it")
