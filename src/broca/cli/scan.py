"""`broca scan`: lists the components of a model, and tests their gates."""

from __future__ import annotations

from contextlib import closing

from broca.cli.commands import PrintOptions, command
from broca.cli.output import print_result
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.options import ModelOptions


@command
def scan(model: str, /, *, model_options: ModelOptions, print_options: PrintOptions) -> None:
    """Print the components of MODEL, what is not covered and why, and the self-test."""
    import broca

    with closing(ProgressDisplay(print_options)) as progress:
        result = broca.scan(model, on_progress=progress, model_options=model_options)
    if print_options.json:
        print_result(result)
        return
    names, points, norms = result.components, result.gate_points, result.norms_across_heads
    say(
        result.description,
        f"{len(names)} components ({result.kinds}): {names[0]} ... {names[-1]}",
        f"gated at: {points[0]} ... {points[-1]}",
    )
    if norms:
        say(
            f"a norm over all heads precedes the projection ({norms[0]}, ...): heads are gated "
            "at its input"
        )
    for layer, path in result.without_mlp_block:
        say(f"no single MLP block: layer {layer} ({path})")
    for gap in result.not_covered:
        say(f"not covered: layer {gap.layer} ({gap.path}): {gap.reason}")
    for check in result.self_test:
        state = "ok" if check.passed else "FAILED"
        say(f"self-test {state}: {check.name} ({check.detail}), {check.seconds:.2f} s")
    for check in result.sharing:
        state = "shared" if check.passed else "not shared"
        say(f"{state}, for rows up to {result.proved_tokens} tokens: {check.name} ({check.detail})")
