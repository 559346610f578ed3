"""`broca.verify` on the shipped models, whose heads' roles are planted or measured."""

from dataclasses import replace

import numpy as np
import pytest
from capabilities import TASKS
from claims import claimed
from independent import zeroed_by_hand
from journals import totals
from results.samples import make_neurons, make_result
from verbs.run_folders import localize_into

import broca
from broca.components import Component
from broca.errors import BadInput, UnknownName
from broca.options import VerifyOptions
from broca.results.verification import places_in
from broca.runs.run import Run
from broca.runs.workspace import Workspace
from broca.tasks import Task, TaskOptions
from broca.verbs.verify import claim_of, verify
from broca.verification import Scope, most_rows

SMALL = Scope(
    controls=19, control_items=12, member_items=20, ablations=False, failure_items=10, resamples=300
)
"""A small scope: sets are compared with 19 random sets, the fewest for p <= 0.05."""

LOCATED = replace(make_neurons(), settings={"seed": 4, "task_options": {"limit": 60}})

OTHERS = ("addition", "calls", "capitals", "sorting")


def examined(model, task, heads, others=OTHERS, limit=30):
    """Returns what few items of a task and of some others say about heads."""
    others = [name for name in others if name != task]
    tasks = claimed(model, task, others=others, items=100, seed=0, limit=limit, searched="task")
    return Run(model, tasks, Workspace()).examiner(SMALL).examine(heads, report=lambda text: None)


@pytest.mark.long
def test_planted_sets_are_specific(planted, planted_heads):
    """The six planted sets are specific; five cost 80 points, and the others 5 on average."""
    clean = 0
    for capability, task in TASKS.items():
        found = examined(planted, task, planted_heads[capability])
        assert found.verdict.label == "specific", found.verdict.text
        others = [line.drop for line in found.drops if line.role == "other"]
        clean += found.drops[0].drop >= 0.8 and np.mean(others) <= 0.05
    assert clean >= 5


@pytest.mark.long
def test_random_sets_of_the_same_size_are_not(planted):
    """None of twenty random sets of five heads is specific."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        heads = [planted.components.names[c] for c in rng.choice(96, 5, replace=False)]
        assert examined(planted, "addition", heads).verdict.label != "specific", heads


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "heads", "label"),
    [
        ("addition", [5, 8, 15, 0, 2, 7, 4, 14], "universal"),
        ("reversing", range(16), "breaks the model"),  # the first layer
    ],
)
def test_heads_that_hurt_every_task_have_another_verdict(reference, task, heads, label):
    """Early heads of `reference` cost every task; without the first layer it is broken."""
    found = examined(reference, task, [reference.components.names[column] for column in heads])
    assert found.verdict.label == label, found.verdict.text


@pytest.mark.long
def test_what_a_set_does_alone_equals_weights_zeroed_by_hand(planted, planted_heads):
    """The facts' heads are needed and enough; scores are those of a model without all others."""
    heads = planted_heads["facts"]
    found = verify(
        planted, "capitals", heads, others=["sorting"], limit=20, rows=9000, enough=True,
        scope=replace(SMALL, failure_items=0),
    )  # fmt: skip
    assert found.enough.sets[0].sufficient
    tasks = claimed(planted, "capitals", others=[], items=100, seed=0, limit=20)
    order = [*heads, *(name for name in planted.components.names if name not in heads)]

    def score(kept):
        gone = [(part.layer, part.index) for part in planted.components if part.name not in kept]
        model = broca.load(zeroed_by_hand(planted.model, gone), planted.tokenizer, name="by hand")
        return Run(model, tasks, Workspace()).scores(())["capitals"]

    everything, nothing = score(order), score([])
    kept = {k: (score(order[:k]) - nothing) / (everything - nothing) for k in (1, 2)}
    by_grid = dict(zip(found.enough.grid, found.enough.curves[0].kept, strict=True))
    assert {k: by_grid[k].value for k in kept} == pytest.approx(kept)
    with pytest.raises(BadInput, match="`enough` needs"):
        verify(planted, "capitals", heads, others=["sorting"], limit=20, rows=1000, enough=True)


def test_what_a_member_costs_another_task_equals_weights_zeroed_by_hand(planted, planted_heads):
    """Each member is ablated alone on ten items of the other task; these rows are bounded too."""
    heads = [*planted_heads["facts"][:2], planted_heads["sorting"][0]]
    scope = replace(SMALL, controls=0, failure_items=0)
    found = verify(planted, "capitals", heads, others=["sorting"], limit=10, scope=scope)
    tasks = claimed(planted, "capitals", others=["sorting"], items=100, seed=0, limit=10)
    assert found.rows <= most_rows(tasks.trial(), scope, members=3)
    for part, member in zip(map(Component.parse, heads), found.members, strict=True):
        edited = zeroed_by_hand(planted.model, [(part.layer, part.index)])
        by_hand = broca.load(edited, planted.tokenizer, name="by hand")
        after = Run(by_hand, tasks, Workspace()).scores(())["sorting"]
        assert member.others["sorting"].value == pytest.approx(found.baseline["sorting"] - after)
    assert member.others["sorting"].value > 0


@pytest.mark.parametrize(("heads", "same_skill"), [(20, []), (4, ["addition", "calls", "rhyming"])])
def test_rows_are_never_exceeded(planted, heads, same_skill):
    """Report items shrink with many members or tasks; too few rows for 8 items are refused."""
    call = {"others": ["sorting"], "same_skill": same_skill, "rows": 1000, "controls": 1}
    found = verify(planted, "capitals", planted.components.names[:heads], **call)
    assert found.rows <= 1000
    reported = [len(line.ids) for line in found.documents if line.part == "report"]
    assert reported == list(found.items.values())
    with pytest.raises(BadInput, match="rows are needed on 'capitals' and"):
        verify(planted, "capitals", planted.components.names[:90], **call)


@pytest.mark.long
def test_rows_in_the_journal_are_not_measured_again(planted, tmp_path):
    """Rows of an earlier search and verification are not measured again; the result is the same.

    It has three kinds of ablation.
    """
    path, rows = tmp_path / "journal.sqlite", []
    call = {"task": "rhyming", "others": ["capitals"], "seed": 3}
    call["task_options"] = TaskOptions(limit=60)
    small = {"limit": 12, "scope": Scope(controls=2, failure_items=4, resamples=100)}
    alone = verify(planted, heads="L2H3+L3H1", **call, **small)
    assert [check.kind for check in alone.ablations] == ["zero", "mean", "resample"]
    broca.localize(
        planted, **call, rows=700, items=20, method="cs-fresh", verify=False, journal=path
    )
    for _ in range(2):
        rows.append(totals(path)["rows"])
        assert verify(planted, heads="L2H3+L3H1", journal=path, **call, **small) == alone
    # the run has measured the intact model on the report items of both tasks
    assert rows[1] - rows[0] <= alone.rows - 24
    assert totals(path)["rows"] == rows[1]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"neurons": LOCATED}, BadInput, "the weights of 'planted' are not those of the run"),
        ({"neurons": LOCATED, "seed": 5}, BadInput, "located with seed 4"),
        ({"heads": ""}, BadInput, "no heads are named"),
        ({"heads": "L0H1+L0H1"}, BadInput, "named twice"),
        ({"limit": 3}, BadInput, "`limit` must be at least 8"),
        ({"task": "additon"}, UnknownName, "did you mean 'addition'"),
    ],
)
def test_bad_input_is_refused(planted, changes, error, message):
    """Bad heads, others' neurons, a small limit and an unknown task: nothing is measured."""
    stages = []
    call = {"task": "addition", "heads": "L0H1", "others": [], **changes}
    with pytest.raises(error, match=message):
        verify(planted, **call, on_progress=lambda stage, _: stages.append(stage))
    assert not any(stage.startswith(("scoring", "verifying")) for stage in stages)


def test_names_are_lists_texts_and_results():
    """Heads and neurons of any form become one text of names, and one task a list of one.

    Located neurons give their seed and task options, so that the items are cut as they were.
    """
    own = Task.from_examples([{"prompt": "a", "answer": " b"}], name="own")
    many = [f"L0N{index}" for index in range(80)]  # longer than the name of a file can be
    run, named = make_result(), ["L1H2", "L0H0", *many]
    for heads, neurons in ((run, many), (map(Component.parse, run.selected), "+".join(many))):
        given = VerifyOptions("m", task="sorting", heads=heads, neurons=neurons, same_skill=own)
        options, _ = claim_of(given)
        assert (options.heads, options.same_skill) == ("+".join(named), [own])
    options, _ = claim_of(VerifyOptions("m", task="adding", neurons=LOCATED))
    assert (options.seed, options.run_options.task_options.limit) == (4, 60)


@pytest.mark.long
def test_a_run_is_verified_from_its_folder(tmp_path):
    """`run` names a folder or a localization; both answer as the same call by names does.

    The tasks are asked as the run asked them, with its intact score.
    """
    result = localize_into(
        tmp_path / "out", model="reference-small", task="sorting", others=["capitals"],
        method="one-shot", rows=200, items=8, k=2, verify=False, limit=40, locate_split="train",
    )  # fmt: skip
    scope = Scope(controls=0, ablations=False, failure_items=4, member_items=8, resamples=50)
    by_names = verify(
        "reference-small", "sorting", result.selected, others=["capitals"], limit=16, scope=scope,
        task_options=TaskOptions(limit=40, locate_split="train"),
    )  # fmt: skip
    for run in (tmp_path / "out", result):
        verification = verify(run, limit=16, scope=scope)
        assert verification.heads == result.selected
        assert verification.baseline["sorting"] == result.baseline["sorting"]
        assert verification.after == by_names.after
        assert verification.drops == by_names.drops
    reported = places_in(verify(result, seed=1, limit=16, scope=scope).documents, "report")
    assert reported
    assert not places_in(result.verification.documents, "locate", "confirm") & reported
    with pytest.raises(BadInput, match="the weights of 'reference' are not those of the run"):
        verify(result, model="reference", limit=16, scope=scope)
    with pytest.raises(BadInput, match="the run selected heads, not mlp"):
        verify(result, limit=16, scope=scope, components="mlp")
    for changed in ({"task_options": TaskOptions(limit=48)}, {"task": "sorting_line"}):
        with pytest.raises(BadInput, match="items that the run searched on may be among those of"):
            verify(tmp_path / "out", **changed)
    # a version that cut the items otherwise may have searched on what is reported now
    searched = tuple(replace(line, part="confirm") for line in verification.documents)
    earlier = replace(result.verification, documents=searched)
    with pytest.raises(BadInput, match="items that the run searched on may be among those of"):
        verify(replace(result, verification=earlier), limit=16, scope=scope)
    unlike = verify(
        result, limit=16, scope=scope, task_options=TaskOptions(gen_kwargs="max_gen_toks=9")
    )
    told = "task 'sorting' is defined otherwise than in the run"
    assert [told in "".join(found.notes) for found in (verification, unlike)] == [False, True]
