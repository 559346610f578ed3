"""`broca.verify` on the shipped models, whose heads' roles are planted or measured."""

import numpy as np
import pytest
from capabilities import TASKS
from claims import claimed
from verbs.run_folders import localize_into

import broca
from broca.engine import Engine
from broca.errors import BadInput, NothingToLocalize, UnknownName
from broca.results.files import decode, encode
from broca.runs.run import Run
from broca.runs.workspace import Workspace
from broca.tasks import Catalog, TaskOptions
from broca.verbs.verify import verify
from broca.verification import Scope

SMALL = Scope(
    controls=10, control_items=12, member_items=20, curve=0, failure_items=10, resamples=300
)
"""A small scope: leading sets are compared with 19 random sets, the fewest for p <= 0.05."""


OTHERS = ("addition", "calls", "capitals", "sorting")


def run_of(model, task, others, limit):
    """Returns a run on a task and other tasks."""
    tasks = claimed(
        model, task, Catalog(), others=others, items=100, seed=0, limit=limit, searched="task"
    )
    return Run(model, tasks, Workspace())


def few_items(model, task, limit=30):
    """Returns a run on few items of a task and of three or four others."""
    others = [name for name in OTHERS if name != task]
    return run_of(model, task, others, limit)


@pytest.mark.parametrize("capability", TASKS)
def test_planted_sets_are_specific(planted, planted_heads, capability):
    """The planted sets of the six learned capabilities are specific."""
    examiner = few_items(planted, TASKS[capability]).examiner(SMALL)
    examined = examiner.examine(planted_heads[capability], report=lambda text: None)
    assert examined.verdict.label == "specific", examined.verdict.text


@pytest.mark.long
def test_random_sets_of_the_same_size_are_not(planted):
    """None of twenty random sets of five heads is specific."""
    examiner = few_items(planted, "addition").examiner(SMALL)
    rng = np.random.default_rng(11)
    for _ in range(20):
        heads = [planted.components.names[c] for c in rng.choice(96, 5, replace=False)]
        (task_drop,) = examiner.drops_of(heads, ["addition"])
        if task_drop.p <= 0.05:  # without a significant drop no set is specific
            label = examiner.examine(heads, report=lambda text: None).verdict.label
            assert label != "specific", heads


def test_heads_that_hurt_every_task_are_universal(reference):
    """Eight early heads of `reference`, which cost every task, are universal."""
    heads = ["L0H5", "L0H8", "L0H15", "L0H0", "L0H2", "L0H7", "L0H4", "L0H14"]
    examined = (
        few_items(reference, "addition").examiner(SMALL).examine(heads, report=lambda text: None)
    )
    assert examined.verdict.label == "universal", examined.verdict.text


def test_a_model_without_its_first_layer_is_broken(reference):
    """Ablating the first layer, which makes outputs degenerate, breaks the model."""
    heads = reference.components.names[:16]
    examined = (
        few_items(reference, "reversing").examiner(SMALL).examine(heads, report=lambda text: None)
    )
    assert examined.verdict.label == "breaks the model", examined.verdict.text


def test_a_model_that_repeats_itself_is_broken(planted):
    """Ablating layers 0 and 2 of `planted` makes it repeat itself, which breaks the model."""
    heads = [*planted.components.names[:16], *planted.components.names[32:48]]
    bench = run_of(planted, "sorting", ["brackets", "calls"], 20)
    examined = bench.examiner(SMALL).examine(heads, report=lambda text: None)
    assert examined.verdict.label == "breaks the model", examined.verdict.text
    assert "mostly repetition" in examined.verdict.text
    assert all(
        failure.after["repetition"] > 0.5
        for failure in examined.failures
        if failure.task != "sorting"
    )


def test_a_verification_is_complete_and_reproducible(planted, planted_heads):
    """A verification has a curve, three kinds of ablation and samples, and repeats exactly."""
    call = {
        "task": "rhyming",
        "heads": "+".join(planted_heads["rhyming"]),
        "others": ["capitals", "sorting"],
        "limit": 12,
    }
    verification = verify(planted, **call)
    assert verification == verify(planted, **call)
    assert verification == decode(broca.Verification, encode(verification))
    assert [check.kind for check in verification.ablations] == ["zero", "mean", "resample"]
    assert [point.k for point in verification.curve.points] == [0, 1, 2]
    assert verification.model.fingerprint == planted.fingerprint
    assert len(verification.samples) == 10


def test_rows_in_the_journal_are_not_measured_again(planted, tmp_path, monkeypatch):
    """Rows of an earlier search and verification are not measured again."""
    call = {"task": "rhyming", "others": ["capitals"], "seed": 3}
    small = {"limit": 12, "scope": Scope(controls=2, curve=2, failure_items=4, resamples=100)}
    options = TaskOptions(limit=60)
    alone = verify(planted, heads="L2H3+L3H1", task_options=options, **call, **small)
    path = tmp_path / "journal.sqlite"
    broca.localize(
        planted,
        **call,
        rows=700,
        items=20,
        method="cs-fresh",
        task_options=options,
        verify=False,
        journal=path,
    )
    measured, answer = [], Engine.answer

    def counting(self, job):
        measured.append(0 if job.observations else job.rows)
        return answer(self, job)

    monkeypatch.setattr(Engine, "answer", counting)
    with_journal = verify(
        planted, heads="L2H3+L3H1", task_options=options, journal=path, **call, **small
    )
    assert with_journal == alone
    # the run has measured the intact model on the report items of both tasks
    assert sum(measured) <= alone.rows - 24
    measured.clear()
    again = verify(planted, heads="L2H3+L3H1", task_options=options, journal=path, **call, **small)
    assert again == alone
    assert not measured


def test_same_skill_tasks_are_crossed_both_ways(planted, planted_heads):
    """Each wording of addition is measured without the other's heads, under one progress bar."""
    reports = []
    verification = verify(
        planted,
        task="addition",
        heads=planted_heads["arithmetic"],
        others=["addition_words", "capitals"],
        limit=16,
        both_ways=True,
        scope=Scope(controls=0, curve=0, failure_items=8, resamples=200),
        on_progress=lambda stage, progress: reports.append((stage, progress)),
    )
    stages = list(dict.fromkeys(stage for stage, _ in reports))
    assert stages[-3:] == [
        "verifying: the outputs",
        "localizing addition_words",
        "verifying: the selection for addition_words",
    ]
    bar = [progress for _, progress in reports if progress is not None]
    shares = [progress.done / progress.total for progress in bar]
    assert shares == sorted(shares)
    assert shares[-1] > 0.95  # rows of the last stage may be known, and are then not reported
    searching = [progress.done for stage, progress in reports if progress and stage == stages[-2]]
    assert bar[0].total > searching[-1] > searching[0]  # the first total includes the localization
    forward, backward = verification.crossings
    assert (forward.found_on, forward.measured_on) == ("addition", "addition_words")
    assert (backward.found_on, backward.measured_on) == ("addition_words", "addition")
    assert forward.drop.value > 0.8
    assert backward.drop.value > 0.8
    assert [drop.task for drop in verification.roles("same_skill")] == ["addition_words"]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"heads": "L0H99"}, UnknownName, "no component 'L0H99'"),
        ({"heads": ""}, BadInput, "no heads are named"),
        ({"heads": "L0H1+L0H1"}, BadInput, "named twice"),
        ({"limit": 3}, BadInput, "`limit` must be at least 8"),
        ({"task": "additon"}, UnknownName, "did you mean 'addition'"),
    ],
)
def test_bad_input_is_refused(planted, changes, error, message):
    """Bad heads, a small limit and an unknown task are refused before anything is measured."""
    stages = []
    call = {"task": "addition", "heads": "L0H1", "others": [], **changes}
    with pytest.raises(error, match=message):
        verify(planted, **call, on_progress=lambda stage, _: stages.append(stage))
    assert not any(stage.startswith(("scoring", "verifying")) for stage in stages)


def test_a_task_that_the_model_cannot_do_is_refused(tiny):
    """A model of random weights, which scores 0, is refused."""
    with pytest.raises(NothingToLocalize):
        verify(tiny, task="addition", heads="L0H1", others=[], limit=8)


def test_localize_ends_with_a_verdict(reference):
    """`localize` returns its verification, which reads back equal; `verify=False` leaves it out."""
    call = {
        "task": "sorting", "others": ["rhyming"], "rows": 900, "items": 20, "method": "cs-fresh",
        "task_options": TaskOptions(limit=60),
    }  # fmt: skip
    result = broca.localize(reference, **call)
    assert result.verification.heads == result.selected
    assert result.verification.verdict is result.verdict is not None
    assert result.verification.drops[0].p is not None
    assert decode(broca.Localization, encode(result)) == result
    unverified = broca.localize(reference, **call, verify=False)
    assert unverified.verdict is None
    assert unverified.verification.after == result.verification.after
    assert unverified.verification.drop == result.verification.drop
    assert unverified.verification.specific_drop == result.verification.specific_drop


def test_asks_the_tasks_as_the_run_did(reference):
    """With the run's task options, `verify` has the run's intact score and items."""
    options = TaskOptions(num_fewshot=2, limit=120)
    run = broca.localize(
        reference, task="capitals", others=[], method="one-shot", rows=970, items=10, verify=False,
        task_options=options,
    )  # fmt: skip
    scope = Scope(controls=0, curve=0, failure_items=4, member_items=8, resamples=50)
    common = {"task": "capitals", "heads": ["L0H8"], "others": [], "scope": scope}
    again = verify(reference, task_options=options, **common)
    assert again.baseline["capitals"] == run.baseline["capitals"]
    assert again.drops[0].items == run.verification.items["capitals"] == 60
    plain = verify(reference, **common)
    assert plain.drops[0].items == 300


def test_a_run_is_verified_from_its_folder(tmp_path):
    """`run` names a folder or a localization; both answer as the same call by names does."""
    result = localize_into(
        tmp_path / "out", model="reference-small", task="sorting", others=["capitals"],
        method="one-shot", rows=200, items=8, k=2, verify=False, limit=40,
    )  # fmt: skip
    scope = Scope(controls=0, curve=0, failure_items=4, member_items=8, resamples=50)
    by_names = verify(
        "reference-small", "sorting", result.selected, others=["capitals"], limit=16, scope=scope,
        task_options=TaskOptions(limit=40),
    )  # fmt: skip
    for run in (tmp_path / "out", result):
        verification = verify(run, limit=16, scope=scope)
        assert verification.heads == result.selected
        assert verification.after == by_names.after
        assert verification.drops == by_names.drops
    with pytest.raises(BadInput, match="the weights of 'reference' are not those of the run"):
        verify(result, model="reference", limit=16, scope=scope)
