"""No few-shot example is a scored item."""

import pytest
from harness_tasks import harness_results, write_task, write_tasks

from broca.errors import TaskUnusable
from broca.tasks import Catalog, TaskOptions


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tasks of every kind; `same_split` has examples and items from one split."""
    folder = write_tasks(tmp_path_factory.mktemp("tasks"))
    text = (folder / "same_split.yaml").read_text()
    for name, settings in (
        ("first_n", "fewshot_config: {sampler: first_n}"),
        ("first_named", "fewshot_config: {sampler: first_n}\nfewshot_split: test"),
        ("written", "fewshot_config: {samples: [{question: 1 + 1, answer: two}]}"),
        ("fixed", "num_fewshot: 0"),
        ("stated", "num_fewshot: 2"),
        ("valid", "test_split: null\nvalidation_split: test\ntraining_split: train"),
    ):
        (folder / f"{name}.yaml").write_text(f"{text.replace('same_split', name)}{settings}\n")
    return folder


def questions(benchmark):
    """Yields each item's question and the questions of its examples."""
    for item in benchmark.items:
        *examples, question = [text.splitlines()[0] for text in item.prompt.split("Q: ")[1:]]
        yield question, examples


@pytest.mark.parametrize(
    ("name", "options", "reserved"),
    [
        ("same_split", TaskOptions(num_fewshot=2), 3),
        ("same_split", TaskOptions(num_fewshot=2, limit=15), 3),
        ("stated", TaskOptions(), 3),
        ("first_n", TaskOptions(num_fewshot=2), 2),
        ("generation", TaskOptions(num_fewshot=2), 0),
        ("generation", TaskOptions(num_fewshot=2, locate_split="train"), 3),
    ],
)
def test_examples_and_items_are_disjoint(folder, tokenizer, name, options, reserved):
    """Documents of a shared split that serve as examples are no items, and a note counts them."""
    benchmark = Catalog(folder).load(name, tokenizer, options=options)
    scored, shown = zip(*questions(benchmark), strict=True)
    assert {len(several) for several in shown} == {2}
    assert not {*scored} & set().union(*shown)
    assert len({*scored}) == len(benchmark.items)
    said = [note for note in benchmark.notes if "served" in note]
    assert len(said) == bool(reserved)
    assert all(f"{reserved} documents of {name} served" in note for note in said)


@pytest.mark.parametrize(("name", "count"), [("first_n", 22), ("first_named", 4)])
def test_first_examples_are_those_of_lm_eval(folder, tiny, tokenizer, name, count):
    """With `first_n` from the scored split, every item has lm-eval's prompt; the first are none."""
    options = TaskOptions(num_fewshot=count)
    benchmark = Catalog(folder).load(name, tokenizer, options=options)
    results = harness_results(tiny.model, tiny.tokenizer, [name], folder=folder, num_fewshot=count)
    prompts = {sample["doc_id"]: sample["arguments"][0][0] for sample in results["samples"][name]}
    assert [item.prompt for item in benchmark.items] == [prompts[n] for n in range(count, 24)]


@pytest.mark.parametrize(
    ("name", "count", "most"),
    [
        ("generation", 13, 12), ("same_split", 16, 15), ("first_n", 24, 23), ("written", 2, 1),
        ("valid", 12, 11),
    ],
)  # fmt: skip
def test_more_examples_than_there_are_is_refused(folder, tokenizer, name, count, most):
    """A `num_fewshot` above the available examples is refused with their number."""
    with pytest.raises(TaskUnusable, match=f"`num_fewshot` {count} is more than the {most} ex"):
        Catalog(folder).load(name, tokenizer, options=TaskOptions(num_fewshot=count))


@pytest.mark.parametrize(("name", "examples"), [("fixed", []), ("written", ["1 + 1"])])
def test_a_task_may_fix_its_examples(folder, tokenizer, name, examples):
    """A task that fixes 0 examples gets none and a note; written ones leave all items."""
    benchmark = Catalog(folder).load(name, tokenizer, options=TaskOptions(num_fewshot=1))
    assert [shown for _, shown in questions(benchmark)] == [examples] * 24
    note = "fixed is always asked without solved examples, as in lm-eval"
    assert benchmark.notes == ((note,) if name == "fixed" else ())


@pytest.mark.parametrize("around", ["description", "gen_prefix"])
def test_what_stands_around_a_question_is_part_of_it(tmp_path, tokenizer, around):
    """Documents with other texts around the same question are items, and without them copies."""
    rows = [{"question": "So?", "answer": "yes", "text": f"text {n}"} for n in range(12)]
    settings = {"fewshot_split": "test", "fewshot_config": {"sampler": "first_n"}}
    write_task(tmp_path, "read", rows, **settings, **{around: "{{text}} "})
    options = TaskOptions(num_fewshot=1)
    benchmark = Catalog(tmp_path).load("read", tokenizer, options=options)
    assert sum(map(len, vars(benchmark.split(items=9, seed=0)).values())) == 11
    write_task(tmp_path, "read", rows, **settings)
    with pytest.raises(TaskUnusable, match="all of them ask the same as the solved examples"):
        Catalog(tmp_path).load("read", tokenizer, options=options)
