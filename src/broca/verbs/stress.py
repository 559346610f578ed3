"""`stress`: tests the role of a set of heads by four kinds of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from broca.engine.ablation import ABLATIONS
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import StressRunOptions, takes_options
from broca.results.localization import Localization
from broca.results.stress_test import StressTest
from broca.runs.folder import options_of_run
from broca.runs.provenance import model_info
from broca.runs.setup import model_and_heads, named_heads, open_session, require_names
from broca.runs.task_sets import TaskSet
from broca.stress_tests.families import load_family
from broca.stress_tests.properties import (
    decodability,
    necessity,
    positive_control,
    reversal,
    self_patch,
    stress_steps,
    transfer,
)
from broca.stress_tests.subject import StressSubject
from broca.stress_tests.verdict import judge
from broca.verification.controls import CONTROLS

_FEWEST_PAIRS = 16


@takes_options
def stress(
    model: str | Path | GatedModel | Localization,
    *,
    heads: str | Sequence[str] | Localization | None = None,
    family: str | Path = "letters",
    control: Sequence[str | Path] = ("sums",),
    pairs: int = 48,
    sets: int = CONTROLS,
    seed: int = 0,
    run_options: StressRunOptions,
) -> StressTest:
    """Tests necessity, decodability, reversal and transfer of heads that carry an operation.

    Args:
        model: A shipped model, a local folder, a hub id, what `broca.load` returned, or a
            localization or the folder of its run.
        heads: Names such as `L0H4`, as a list or joined by `+`, a published list such as
            `published:llama-3.1-8b/gsm8k/css`, or a localization, whose selection is tested; by
            default the selection of `model`, which is a localization then.
        family: Prompts with two operations on the same operands: `letters`, or a YAML file. The
            selection of a run is tested on a family that names the run's task in its `tasks`.
        control: Families for which the heads should not matter: `sums`, or YAML files.
        pairs: Number of pairs of a source and a target, and maximum number of operands of each
            family.
        sets: Number of random sets from the same layers.
        seed: Seed of pairs, random sets and resampling.

    Raises:
        BrocaError: Bad input, a family that does not fit the model or the run's task, or patching
            that is not exact.
    """
    if pairs < _FEWEST_PAIRS:
        raise BadInput(f"`pairs` must be at least {_FEWEST_PAIRS}, not {pairs}")
    families = [load_family(name) for name in (family, *control)]
    if heads is None and isinstance(model, str | Path):
        run_options = options_of_run(model, run_options)
        model = Localization.read(model)
    elif heads is not None and not isinstance(heads, Localization):
        require_names(heads)
    claim = model if heads is None else heads
    if isinstance(claim, Localization):
        families[0].require_task(claim.task)
    model, heads = model_and_heads(model, heads)
    with open_session(model, run_options) as opened:
        gated, stages = opened.model, opened.stages
        subject = StressSubject.of(
            gated, named_heads(gated, heads), families, pairs=pairs, sets=sets, seed=seed
        )
        run = opened.run(TaskSet(), settings=subject.settings)
        stages.expect(stress_steps(subject))
        necessities = []
        for kind in ABLATIONS:
            stages.enter(f"necessity under {kind} ablation")
            necessities.append(necessity(run.observe, subject, kind))
        stages.enter("decodability")
        probe = decodability(run.observe, subject)
        stages.enter("reversal")
        reversals = reversal(run.observe, subject)
        stages.enter("transfer")
        largest_change = self_patch(run.observe, subject)
        shifts = transfer(run.observe, subject)
        stages.enter("positive control")
        control_shift = positive_control(run.observe, subject)
        run.finish()
        label, text = judge(shifts, control_shift)
        return StressTest(
            model=model_info(gated),
            family=subject.family.name,
            heads=subject.names,
            seed=seed,
            pairs=len(subject.pairs),
            necessity=tuple(necessities),
            probe=probe,
            reversals=reversals,
            shifts=shifts,
            self_patch=largest_change,
            positive_control=control_shift,
            verdict=label,
            text=text,
        )
