"""`broca.localize` on the shipped models."""

import numpy as np
import pytest
from capabilities import TASKS
from direct import DirectExecutor
from journals import totals

import broca
from broca.engine import Engine
from broca.errors import BadInput, NothingToLocalize
from broca.measurement import Plan
from broca.results.files import decode, encode
from broca.runs.replay import ranking_from_journal
from broca.store import Journal, find_run, read_run
from broca.tasks import Catalog, RequestTokenizer, shipped_folder
from broca.verbs import localize as localizing
from broca.verbs.localize import localize

CAPABILITY_TASKS = TASKS | {"knowledge": "mc_biology"}


@pytest.mark.long
@pytest.mark.parametrize("capabilities", [("arithmetic", "facts"), ("reversing", "sorting")])
def test_finds_the_planted_heads(planted, planted_heads, capabilities):
    """The mean recall of the capabilities' planted sets is at least 0.9, within the rows."""
    recalls = {}
    for capability in capabilities:
        heads = planted_heads[capability]
        result = localize(
            planted, task=CAPABILITY_TASKS[capability], others=[], rows=1200, report_items=100,
            verify=False,
        )  # fmt: skip
        assert result.cost.rows <= 1200
        recalls[capability] = len(set(result.selected) & set(heads)) / len(heads)
    assert np.mean(list(recalls.values())) >= 0.9, recalls


@pytest.mark.long
def test_every_task_is_learned(reference):
    """`reference` scores at least 95 % on held-out items of every shipped task."""
    for name in Catalog().shipped:
        benchmark = Catalog().load(name, RequestTokenizer.of(reference))
        assert len(benchmark.items) >= 400
        bank = [(benchmark, item) for item in benchmark.items[::3]]
        plan = Plan.crossed(np.zeros((1, 96), dtype=bool), np.arange(len(bank)))
        score = DirectExecutor(Engine(reference), bank).run(plan).responses.mean()
        assert score >= 0.95, f"{name}: {score}"


@pytest.mark.long
def test_a_result_is_saved_and_fits_its_journal(reference, tmp_path):
    """The ranking begins with the selection, costs are the journal's, and the file reads back.

    `rows` bounds the search and the verification together; without a verdict nothing is specific.
    """
    journal, options = tmp_path / "j.sqlite", broca.TaskOptions(limit=60)
    result, unverified = (
        broca.localize(
            reference, task="sorting", others=["rhyming"], rows=900, items=20, method="cs-fresh",
            task_options=options, verify=verified, journal=path,
        )
        for verified, path in ((True, journal), (False, None))
    )  # fmt: skip
    assert result.task_options == options.to_dict()
    assert result.verification.verdict is result.verdict is not None
    assert result.verification.drops[0].p is not None
    assert unverified.verdict is None
    assert "specific" not in "".join(map(str, unverified.terminal())) + unverified.page()
    json_path, html_path = result.save(tmp_path / "new" / "folder")
    assert broca.Localization.read(json_path) == result
    assert html_path.is_file()
    assert result.model.fingerprint == reference.fingerprint
    assert result.others == ("rhyming",)
    names = [component.name for component in result.ranking]
    assert len(set(names)) == 96
    assert result.selected == result.verification.heads
    assert {*result.selected, *result.verification.dropped} <= set(names[:5])
    assert result.abstained == (not result.selected)
    assert set(result.off_target_effects) <= set(names)
    assert result.cost.rows + result.cost.verification_rows <= 900
    assert result.cost.measured == totals(journal)["rows"]
    assert result.cost.tokens == totals(journal)["tokens"]
    assert result.cost.wall_s > 0


@pytest.mark.long
def test_others_auto_is_every_other_shipped_task(reference):
    """`auto` takes every shipped task of another capability as a control."""
    task_options = broca.TaskOptions(limit=50)
    result = localize(
        reference, task="mc_biology", rows=600, items=20, verify=False, task_options=task_options
    )
    assert len(result.others) == 8
    assert result.same_skill == ("mc_chemistry",)
    assert not {"mc_biology", "mc_chemistry"} & set(result.others)
    assert any("same capability" in note for note in result.notes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 97}, "96"),
        ({"items": -1}, "`items`"),
        ({"rows": 599}, "`rows` 599 is too few: the search alone needs 600"),
        ({"rows": 601}, "which needs 600: 1,200 `rows` are enough"),
        ({"options": {"least": 2.0}}, "drops from 0 to 1"),
    ],
)
def test_bad_options_cost_no_row(reference, arguments, message):
    """Numbers out of range and options of a method are refused before the model is scored."""
    stages = []
    with pytest.raises(BadInput, match=message):
        localize(
            reference, task="addition", others=["sorting"],
            on_progress=lambda stage, progress: stages.append(stage), **arguments,
        )  # fmt: skip
    assert "scoring the intact model" not in stages


@pytest.mark.long
def test_group_is_localized_as_one_task(reference, tmp_path):
    """A group's score is its own aggregation of its tasks' scores."""
    for name in ("mc_biology", "mc_chemistry", "shipped_data"):
        for file in shipped_folder().glob(f"{name}.*"):
            (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "data").symlink_to(shipped_folder() / "data")
    (tmp_path / "science.yaml").write_text(
        "group: science\ntask: [mc_biology, mc_chemistry]\n"
        "aggregate_metric_list: [{metric: acc, weight_by_size: true}]\n"
    )
    arguments = {
        "rows": 400, "items": 20, "verify": False, "report_items": 300,
        "task_options": broca.TaskOptions(limit=80),
    }  # fmt: skip
    result = localize(reference, task="science", others=[], include_path=tmp_path, **arguments)
    alone = localize(reference, task="mc_biology", others=["mc_chemistry"], seed=0, **arguments)
    assert result.verification.drops[0].metric == "acc"
    assert result.verification.items["science"] == sum(alone.verification.items.values())
    scores = [alone.baseline["mc_biology"], alone.baseline["mc_chemistry"]]
    assert result.baseline["science"] == pytest.approx(np.mean(scores))
    with pytest.raises(BadInput, match="'mc_biology' shares mc_biology with 'science'"):
        localize(reference, task="science", others=["mc_biology"], include_path=tmp_path)


@pytest.mark.long
@pytest.mark.long
def test_what_few_rows_do_not_tell_apart_is_not_needed_by_all(planted):
    """L0H13, whose ablation costs no other task anything, is not set apart after 1,200 rows."""
    result = localize(planted, "reversing", others=["addition", "capitals"], rows=1200, seed=1)
    assert result.shared == ()


def test_gradient_methods_measure_a_response_that_has_gradients(planted, planted_heads, tmp_path):
    """A gradient method uses the margin, is repeated from the journal, and refuses accuracy."""
    journal = tmp_path / "j.sqlite"
    result = localize(
        planted, task="reversing", others=["sorting"], method="learned-gates", items=40,
        report_items=20, verify=False, journal=journal,
    )  # fmt: skip
    assert set(result.selected) == set(planted_heads["reversing"]) - {"L2H0"}
    assert result.response == "margin"
    assert any(note.startswith("facilitating, as the method calls them") for note in result.notes)
    with Journal(journal, read_only=True) as opened:
        again = ranking_from_journal(opened, find_run(opened))
    assert tuple(planted.components.names[c] for c in again.selected) == result.selected
    first_order = {"task": "reversing", "others": [], "method": "gradient", "verify": False}
    with pytest.raises(BadInput, match="`response` to probability or margin"):
        localize(planted, **first_order, response="accuracy")
    at_0, at_2 = (localize(planted, **first_order, scale=scale) for scale in (0.0, 2.0))
    assert {(c.name, -c.effect) for c in at_2.ranking} == {(c.name, c.effect) for c in at_0.ranking}


@pytest.mark.long
def test_what_the_others_need_too_is_set_apart(reference):
    """Shared components are named and are not selected."""
    result = broca.localize(
        reference, task="reversing", others=("addition", "addition_words", "sorting"), rows=1500,
        items=40, report_items=90, verify=False,
    )  # fmt: skip
    assert result.shared
    assert not set(result.shared) & set(result.selected)
    assert decode(type(result), encode(result)) == result


def test_minutes_bound_what_the_set_does_alone_too(planted, monkeypatch):
    """Rows that the time does not allow are not left for it."""
    monkeypatch.setattr(localizing, "rows_within", lambda *_: 3600)
    found = localize(
        planted, "capitals", others=["sorting"], method="one-shot", rows=90_000, max_minutes=1,
        items=8, k=2, report_items=20,
    )  # fmt: skip
    assert found.verification.verdict.label == "specific"
    assert found.cost.rows + found.cost.verification_rows <= 3600


SUMS = [(f"compute {a} + {a + 3} =", f" {2 * a + 3}") for a in range(10, 40)]


def test_a_task_that_scores_0_shows_what_the_model_says():
    """The refusal shows three prompts with outputs and answers, and names `until`."""
    task = broca.Task.from_examples([(prompt, f"{answer} apples") for prompt, answer in SUMS])
    with pytest.raises(NothingToLocalize, match="`until`") as error:
        broca.localize("reference-small", task, rows=3000, items=5)
    lines = str(error.value).splitlines()[1:]
    assert len(lines) == 3
    for line in lines:
        answer = line.split("expected ' ")[1].removesuffix(" apples'")
        assert f"-> ' {answer}'" in line


@pytest.mark.parametrize("able", [["sorting"], []])
def test_a_search_measures_no_task_that_the_model_cannot_do(tmp_path, able):
    """Rows on tasks at chance would tell nothing; their lack of margins costs the search none."""
    never = broca.Task.from_examples([(f"{n} and", " never") for n in range(60)], name="never")
    place = tmp_path / "rows.sqlite"
    found = broca.localize(
        "reference-small", task="capitals", others=[*able, never], rows=1400, items=12,
        report_items=20, verify=False, journal=place,
    )  # fmt: skip
    assert "never" in found.others
    assert found.response == "probability"
    with Journal(place, read_only=True) as journal:
        rows = read_run(journal, find_run(journal).id)
    assert {rows.records[item].task for item in rows.items} == {"capitals", *able}
