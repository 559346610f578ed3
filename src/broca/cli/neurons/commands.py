"""The commands: each has the parameters of its verb, except those that it declares itself."""

from __future__ import annotations

from typing import Any

from broca.cli.commands import PrintOptions
from broca.cli.neurons.session import OUT, neuron_command, run_verb


@neuron_command("locate")
def locate(*, out: str = OUT, print_options: PrintOptions, **parameters: Any) -> None:
    """Locate the neurons that a data set has in common; writes neurons.json."""
    run_verb("locate", out, print_options, **parameters)


@neuron_command("fidelity")
def fidelity(*, out: str = OUT, print_options: PrintOptions, **parameters: Any) -> None:
    """Do paraphrases of an item have the same neurons? Shipped: addition, capitals, mc_*.

    Args:
        task: A shipped task, or data:NAME whose rows have paraphrases: counterfact, or JSON lines
            with prompt, answer and paraphrases.
        contents: Maximum number of items, each in several paraphrases.
        wordings: Maximum number of paraphrases of an item.
    """
    run_verb("fidelity", out, print_options, **parameters)


@neuron_command("decouple")
def decouple(*, out: str = OUT, print_options: PrintOptions, **parameters: Any) -> None:
    """Do items share neurons because of their capability, or because of their content?

    Args:
        pairs: JSON lines with relation, first and second (prompt, answer).
        items: Number of shipped pairs of every relation.
    """
    run_verb("decouple", out, print_options, **parameters)


@neuron_command("overlap")
def overlap(*, out: str = OUT, print_options: PrintOptions, **parameters: Any) -> None:
    """Do two halves of a data set, or two data sets, share neurons? Draws a figure."""
    run_verb("overlap", out, print_options, **parameters)


@neuron_command("reliability")
def reliability(
    *, factors: str = "0,2", out: str = OUT, print_options: PrintOptions, **parameters: Any
) -> None:
    """Do an item's neurons change p(answer), down when suppressed and up when amplified?

    Args:
        factors: Factors of the located neurons' activations.
    """
    run_verb("reliability", out, print_options, factors=factors, **parameters)


@neuron_command("erase", renamed={"method": "methods"})
def erase(*, out: str = OUT, print_options: PrintOptions, **parameters: Any) -> None:
    """Erase located neurons, and as many random ones, on held-out items of the task and of others.

    Args:
        methods: Methods to compare, joined by commas, with sets of the first method's size:
            {neuron_methods}.
        factor: Factor of the neurons' activations.
    """
    run_verb("erase", out, print_options, **parameters)


@neuron_command("enhance")
def enhance(*, out: str = OUT, print_options: PrintOptions, **parameters: Any) -> None:
    """Train only located neurons, only others, or random ones; measure on held-out items.

    Args:
        without: State of the located neurons while all others are trained: zeroed or frozen.
    """
    run_verb("enhance", out, print_options, **parameters)


@neuron_command("cross")
def cross(*, out: str = OUT, print_options: PrintOptions, **parameters: Any) -> None:
    """Locate on one data set, erase or train there, and measure on every other.

    Args:
        action: What to do with the located neurons: erase or tune.
    """
    run_verb("cross", out, print_options, **parameters)
