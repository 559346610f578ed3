"""`broca replicate` on a claim about the planted model, whose needed heads are known."""

from dataclasses import replace
from pathlib import Path

import pytest
from claims import claim_about, claimed
from cli.running import broca as command
from results.samples import make_replication, make_result

import broca
from broca.errors import BadInput, TaskUnusable
from broca.options import RunOptions
from broca.results.verification import places_in
from broca.runs.task_sets import TaskSet, load_tasks
from broca.tasks import Task, shipped_folder

OTHERS = ("sorting", "addition")
FEW = {"seeds": 1, "rows": 2400, "wordings": ""}


@pytest.fixture(scope="module")
def claim(planted, planted_heads):
    """The claim that the planted heads of the facts are needed, of a run on half of the items."""
    return claim_about(planted, "capitals", planted_heads["facts"], others=OTHERS, drop=0.9)


def test_a_true_claim_holds_on_items_that_the_run_never_used(planted, claim):
    """The planted heads hold on fresh items and under mean ablation."""
    found = broca.replicate(claim, model=planted, **FEW)
    assert found.answer == "held", found.headline
    fresh, mean = found.replicas
    assert (fresh.respect, fresh.verdict, fresh.seed) == ("fresh items", "specific", 1)
    assert (mean.respect, mean.ablation, mean.held) == ("other ablation", "mean", True)
    assert "held: planted without L0H9, L0H14 loses" in found.summary()[0]
    assert "What was repeated" in found.page()


@pytest.mark.long
def test_a_claim_states_what_the_set_keeps_alone_and_the_report_shows_it(planted, claim, tmp_path):
    """Rows that are left measure what the set does alone; the page has claim and replication."""
    found = broca.localize(
        planted, "capitals", others=["sorting"], method="one-shot", rows=9000, items=8, k=2,
        report_items=20,
    )  # fmt: skip
    assert found.verification.enough.sets[0].sufficient
    assert found.cost.rows + found.cost.verification_rows <= 9000
    own = broca.Claim.of(found)
    assert own.wordings == ("capitals_line", "capitals_again")
    assert "with all others ablated it keeps 1" in own.statement
    found.save(tmp_path)
    _, page = own.save(tmp_path)
    assert "The claim: not repeated yet" in page.read_text()
    fresh, _ = make_replication().replicas
    broca.Replication(claim=own, model=own.model, replicas=(fresh,)).save(tmp_path)
    assert "The claim: held" in page.read_text()
    other = replace(own, heads=("L4H1",))
    broca.Replication(claim=other, model=own.model, replicas=(fresh,)).save(tmp_path)
    assert "The claim: held" not in found.pages(tmp_path)["report.html"]


def test_fresh_items_are_none_of_the_run(planted, claim):
    """Report items of a task are disjoint from all documents that the run used."""
    tasks = claimed(
        planted, "capitals", others=list(OTHERS), items=100, seed=1, searched="task",
        seen=claim.documents,
    )  # fmt: skip
    used = places_in(claim.documents, "locate", "confirm", "report")
    fresh = places_in(tasks.documents, "report")
    assert len(fresh) > 8
    assert not fresh & used
    everything = [replace(line, part="locate", ids=range(600)) for line in claim.documents]
    tasks = claimed(
        planted, "capitals", others=[], items=100, seed=1, searched="task", seen=everything
    )
    assert "searched on" in tasks.notes[0]
    reported = [replace(line, part="report") for line in everything]
    with pytest.raises(BadInput, match="too few to replicate on"):
        claimed(planted, "capitals", others=[], items=100, seed=1, searched="task", seen=reported)


@pytest.mark.long
def test_other_words_are_said_where_they_fail(planted, claim, tmp_path):
    """A wording of one's own file is measured; one that the model cannot do tells nothing."""
    for name, text in (("own", "\\n{{prompt}}"), ("nonsense", "{{prompt | reverse}}")):
        (tmp_path / f"{name}.yaml").write_text(
            f"include: {shipped_folder()}/capitals.yaml\ntask: {name}\n"
            f'tag: mine\ndoc_to_text: "{text}"\n'
        )
    words = [str(tmp_path / name) for name in ("own.yaml", "nonsense.yaml")]
    found = broca.replicate(claim, model=planted, **{**FEW, "wordings": words, "rows": 3000})
    own, nonsense = found.replicas[2:]
    assert (own.task, own.respect, own.held) == ("own", "other words", True)
    assert (nonsense.held, nonsense.why) == (None, "the intact model cannot do it")
    (tmp_path / "none.yaml").write_text("dataset_path: x\n")
    with pytest.raises(TaskUnusable, match="does not define one task"):
        broca.replicate(claim, model=planted, wordings=str(tmp_path / "none.yaml"))


def test_an_answer_names_where_a_claim_did_not_hold():
    """Held in part names the respects; without fresh items that hold, nothing did."""
    both = make_replication()
    fresh, words = both.replicas
    assert "(not in other words: plus)" in both.headline
    for held, in_words, answer in (
        (True, False, "held in part"), (True, None, "held"), (None, True, "inconclusive"),
        (False, True, "not held"),
    ):  # fmt: skip
        replicas = (replace(fresh, held=held), replace(words, held=in_words))
        assert replace(both, replicas=replicas).answer == answer


def test_what_cannot_be_claimed_or_replicated_is_refused(planted, claim, tmp_path):
    """A set without a verdict is no claim; other weights and another task are refused."""
    with pytest.raises(BadInput, match="can be claimed"):
        broca.Claim.of(make_result())
    with pytest.raises(BadInput, match="are not those of the claim"):
        broca.replicate(claim, model="reference-small", **FEW)
    for name in ("task", "documents"):
        changed = replace(claim, digests={**claim.digests, name: "0"})
        with pytest.raises(BadInput, match="the definition or data of task 'capitals'"):
            broca.replicate(changed, model=planted, **FEW)
    replace(claim, heads=("L0H99",)).save(tmp_path)
    with pytest.raises(BadInput, match="no component 'L0H99'"):
        broca.replicate(tmp_path, **FEW)
    with pytest.raises(BadInput, match="is the claim's: name other words"):
        broca.replicate(claim, model=planted, wordings="capitals")


def test_other_tasks_at_chance_tell_nothing_of_a_claim(planted, claim):
    """Without another task that the model can do no repetition holds or fails; seeds share items.

    Report items shrink until all repetitions fit into the rows.
    """
    never = Task.from_examples([(f"{n} and", " never") for n in range(60)], name="never")
    alone = replace(claim, others=(never,), heads=(*claim.heads, *planted.components.names[:6]))
    found = broca.replicate(alone, model=planted, **FEW | {"rows": 1000, "seeds": 2})
    assert found.rows <= 1000
    told = {(replica.respect, replica.held, replica.why) for replica in found.replicas}
    assert ("other ablation", None, "the intact model is shown to do no other task") in told
    assert "may share some" in found.notes[0]


@pytest.mark.long
def test_shipped_tasks_have_three_wordings(planted):
    """Every shipped task has two others over the same documents, with the same answers."""
    with broca.Workspace() as space:
        catalog = broca.Run(planted, TaskSet(), space, RunOptions()).catalog
        for task in catalog.shipped:
            names = (task, *catalog.wordings_of(task))
            tasks = load_tasks(planted, names, catalog).values()
            prompts = [[item.prompt for item in benchmark.items] for benchmark in tasks]
            targets = [[item.target for item in benchmark.items] for benchmark in tasks]
            assert len({tuple(of) for of in prompts}) == 3
            assert targets[0] == targets[1] == targets[2]


DOCS = Path(__file__).parents[2] / "docs" / "claims"
SHOWN = sorted(file.stem for file in DOCS.glob("*.json"))


@pytest.mark.long
@pytest.mark.parametrize("name", SHOWN)
def test_the_claims_of_the_docs_hold_on_fresh_items(name, tmp_path):
    """The command replicates every claim of the docs, and its exit code is 0."""
    done = command("replicate", DOCS / f"{name}.json", "--seeds", 1, "--rows", 6000,
                   "--wordings", "", "--out", tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "held: " in done.stdout


def test_a_claim_that_does_not_hold_ends_in_exit_code_1(claim, tmp_path):
    """One line says so, without a traceback."""
    named = replace(claim.model, name="planted")
    replace(claim, heads=("L4H1", "L5H2"), model=named).save(tmp_path)
    done = command("replicate", tmp_path, "--seeds", 1, "--rows", 1200, "--wordings", "")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "was not held" in done.stderr.splitlines()[-1]
