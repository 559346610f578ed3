"""`stress`: tests the role of a set of heads by four kinds of evidence."""

from broca.engine.ablation import ABLATIONS
from broca.models import GatedModel
from broca.options import StressOptions, verb
from broca.results.localization import Localization
from broca.results.stress_test import StressTest
from broca.runs import session
from broca.runs.folder import options_of_run
from broca.runs.run import model_info
from broca.runs.task_sets import TaskSet
from broca.stress_tests import properties
from broca.stress_tests.subject import StressSubject, load_family


@verb(StressOptions)
def stress(options: StressOptions) -> StressTest:
    """Tests necessity, decodability, reversal and transfer of heads that carry an operation.

    Raises:
        BrocaError: Bad input, a family that does not fit the model or the run's task, or patching
            that is not exact.
    """
    families = [load_family(name) for name in (options.family, *options.control)]
    target, heads, run_options = options.target, options.heads, options.run_options
    if heads is not None and not isinstance(heads, Localization):
        session.require_names(heads)
    if (heads is None or session.is_run(target)) and not isinstance(
        target, GatedModel | Localization
    ):
        run_options = options_of_run(target, run_options)
        target = Localization.read(target)
    claim = target if heads is None else heads
    if isinstance(claim, Localization):
        families[0].require_task(claim.task)
    model, heads, measured = session.model_and_heads(target, heads)
    with session.open_run(model, run_options) as opened:
        gated, stages = opened.model, opened.stages
        session.require_weights_of(measured, gated)
        subject = StressSubject(
            gated, session.named_heads(gated, heads), families,
            pairs=options.pairs, sets=options.sets, seed=options.seed,
        )  # fmt: skip
        run = opened.on(TaskSet(), settings=subject.settings)
        necessities = []
        for kind in ABLATIONS:
            stages.enter(f"necessity under {kind} ablation")
            necessities.append(properties.necessity(run.observe, subject, kind))
        stages.enter("decodability")
        probe = properties.decodability(run.observe, subject)
        stages.enter("reversal")
        reversals = properties.reversal(run.observe, subject)
        stages.enter("transfer")
        properties.self_patch(run.observe, subject)
        shifts = properties.transfer(run.observe, subject)
        stages.enter("positive control")
        control_shift = properties.positive_control(run.observe, subject)
        run.finish()
        label, text = properties.judge(shifts, control_shift)
        return StressTest(
            model=model_info(gated), family=subject.family.name, heads=subject.names,
            seed=options.seed, pairs=len(subject.pairs), necessity=tuple(necessities),
            probe=probe, reversals=reversals, shifts=shifts, positive_control=control_shift,
            verdict=label, text=text,
        )  # fmt: skip
