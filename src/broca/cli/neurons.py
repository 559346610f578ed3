"""`broca neurons ...`: which feed-forward neurons carry what a data set has in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broca.cli.commands import make_app
from broca.cli.keeping import SharedOutput, kept_result
from broca.cli.output import show
from broca.options import (
    CrossOptions,
    DecoupleOptions,
    EnhanceOptions,
    EraseOptions,
    FidelityOptions,
    LocateOptions,
    OverlapOptions,
    ReliabilityOptions,
)


def _command(verb: str, cls: Any, sentence: str) -> Callable[..., None]:
    """Makes the command of a verb, whose results share a folder."""

    def run(options: Any, *, out: str = "broca-neurons", output: Any = SharedOutput()) -> None:
        from broca.results.neurons import NeuronExperiment, NeuronSet

        kind: Any = NeuronSet if verb == "locate" else NeuronExperiment
        result, files = kept_result(kind, f"neurons.{verb}", options, out, output)
        show(result, files[0], json=output.print_options.json)

    run.__name__ = verb
    run.__annotations__ |= {"options": cls, "output": SharedOutput, "out": str}
    run.__doc__ = f"{sentence}\n\nArgs:\n    out: Folder for results; measured rows are reused."
    return run


app = make_app(
    "neurons",
    "Find the feed-forward neurons that carry what a data set has in common, and test them.",
    {
        verb: _command(verb, cls, sentence)
        for verb, cls, sentence in (
            ("locate", LocateOptions, "Locate the neurons that a data set has in common."),
            ("fidelity", FidelityOptions, "Do paraphrases of an item have the same neurons?"),
            (
                "decouple", DecoupleOptions,
                "Do items share neurons because of their capability, or because of their content?",
            ),
            (
                "overlap", OverlapOptions,
                "Do two halves of a data set, or two data sets, share neurons? Draws a figure.",
            ),
            (
                "reliability", ReliabilityOptions,
                "Do an item's neurons change p(answer), down when suppressed and up when "
                "amplified?",
            ),
            (
                "erase", EraseOptions,
                "Erase located neurons, and as many random ones, on held-out items of the task and "
                "of others.",
            ),
            (
                "enhance", EnhanceOptions,
                "Train only located neurons, only others, or random ones; measure on held-out "
                "items.",
            ),
            (
                "cross", CrossOptions,
                "Locate on one data set, erase or train there, and measure on every other.",
            ),
        )
    },
)  # fmt: skip
