"""`broca stress`: what kind of role does a set of heads have?"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from broca.cli.commands import PrintOptions, command
from broca.cli.output import folder_of, print_result
from broca.cli.progress import ProgressLine
from broca.cli.wording import say
from broca.errors import BadInput
from broca.options import ModelOptions, without

if TYPE_CHECKING:
    from broca.results.stress_test import StressTest


@command
def stress(
    target: str,
    /,
    *,
    heads: str | None = None,
    family: str = "letters",
    control: list[str] | None = None,
    pairs: int = 48,
    seed: int = 0,
    out: str | None = None,
    model_options: Annotated[ModelOptions, without("components")],
    print_options: PrintOptions,
) -> None:
    """Test necessity, decodability, reversal and transfer of some heads, with controls.

    Args:
        target: The out folder of a run; with `heads`, a model.
        heads: Heads, L0H4+L1H8, or published:MODEL/TASK/METHOD.
        family: Prompts with two operations: letters, or a YAML file.
        control: A control family: sums, or a YAML file; may be repeated.
        pairs: Pairs of a source and a target.
        out: Folder for stress.json; default: the run's, or broca-out.
    """
    from broca.models import load
    from broca.reports import write
    from broca.results.localization import Localization
    from broca.stress_tests.families import load_family
    from broca.stress_tests.keeping import NAME
    from broca.stress_tests.measure import stress as measure
    from broca.verbs.verify import named_heads

    if pairs < 16:
        raise BadInput(f"`pairs` must be at least 16, not {pairs}")
    model, names, run = target, heads or "", None
    if heads is None:
        run = Localization.read(target)
        model, names = run.model.name, "+".join(run.selected)
        if not run.selected:
            raise BadInput(f"the run in '{target}' selected nothing: name some in `heads`")
    families = [load_family(name) for name in (family, *(control or ["sums"]))]
    folder = folder_of(out, target if run else None)
    with closing(ProgressLine(plain=print_options.plain)) as progress:
        progress("loading the model", None)
        gated = load(model, **asdict(model_options))
        result = measure(
            gated,
            named_heads(gated, names),
            families[0],
            controls=families[1:],
            count=pairs,
            seed=seed,
            keep=folder / NAME,
            report=lambda text: progress(text, None),
        )
    page = write(result, folder, run=run)[-1]
    if print_options.json:
        print_result(result)
    else:
        _print(result)
        say(f"report: {page}")


def _print(result: StressTest) -> None:
    from broca.reports.filling import interval_text

    for shift in result.shifts:
        say(f"write {shift.source}: {interval_text(shift.transfer)} nats")
    for necessity in result.necessity:
        say(
            f"{necessity.ablation} ablation: drop {interval_text(necessity.drop)} nats, selective "
            f"{necessity.selective:+.2f}, rank {necessity.rank} of {len(necessity.null) + 1}"
        )
    if result.probe is not None:
        say(
            f"probe {result.probe.accuracy:.2f} (shuffled {result.probe.shuffled:.2f}, "
            f"surface {result.probe.surface:.2f}, chance {result.probe.chance:.2f})"
        )
    for reversal in result.reversals:
        say(f"restoring {reversal.part} undoes {interval_text(reversal.share)} of the damage")
    say(
        f"positive control {interval_text(result.positive_control)} nats",
        f"{result.verdict}: {result.text}",
    )
