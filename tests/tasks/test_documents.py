"""lm-eval tasks with their requests: targets, splits, prompts and scores."""

from dataclasses import replace

import pytest
from harness_tasks import write_task
from tiny import tiny_tokenizer, tokenizer_with
from transformers import GenerationConfig

import broca
from broca.errors import TaskUnusable
from broca.tasks import Catalog, RequestTokenizer, TaskOptions

QUESTIONS = [{"question": f"{n} =", "answer": "" if n == 5 else str(n)} for n in range(9)]
ANSWERED = [n for n in range(9) if n != 5]
MERGING = (("c", "a"), ("ca", "t"), ("cat", "s"))
CHOICE = {"output_type": "multiple_choice", "doc_to_target": 0, "doc_to_choice": "choices"}
"""Settings of multiple choice."""


def chosen(*documents):
    """Returns documents of multiple choice, of a question and its choices each."""
    return [{"question": question, "choices": choices} for question, choices in documents]


@pytest.mark.parametrize(
    ("documents", "settings", "max_length", "kept", "note"),
    [
        (QUESTIONS, {"output_type": "loglikelihood"}, 64, ANSWERED, "have no tokens"),
        (
            chosen(("2 cat", ["s", " dogs", "!"]), ("2 ca", ["r", " t"]), ("1 cat", ["!", ""])),
            CHOICE, 64, [1], "their targets have no tokens of their own",
        ),
        (
            chosen(*(("a", ["b", "c" * length]) for length in (3, 9, 8))),
            CHOICE, 8, [0, 2], "an answer is longer than the 8 tokens that the model reads",
        ),
    ],
    ids=["likelihood", "merge with the prompt", "longer than the context"],
)  # fmt: skip
def test_what_cannot_be_scored_is_left_out(tmp_path, documents, settings, max_length, kept, note):
    """Such items are counted in a note, and the others keep their `doc_id`.

    A target may be empty, become one token with the prompt or be longer than the context.
    """
    write_task(tmp_path, "some", documents, **settings)
    tokenizer = RequestTokenizer(tokenizer_with(merges=MERGING), max_length=max_length)
    task = Catalog(tmp_path).load("some", tokenizer)
    assert [task.document_place(item)[2] for item in task.items] == kept
    assert all(request.context for item in task.items for request in item.requests)
    (said,) = (text for text in task.notes if "left out" in text)
    assert said.startswith(f"{len(documents) - len(kept)} of {len(documents)} items of some were")
    assert note in said
    lost = [document for place, document in enumerate(documents) if place not in kept]
    write_task(tmp_path, "some", lost * 9, **settings)
    with pytest.raises(TaskUnusable, match="no item of task 'some' can be scored"):
        Catalog(tmp_path).load("some", tokenizer)


def test_copies_of_choices_count_once(tmp_path, tokenizer):
    """A copy of the right choice is not a wrong one, and a target may name a choice twice.

    Documents that differ only in what is right ask the same.
    """
    choices = chosen(*[("a", ["b", "c", "c", "d"])] * 8)
    documents = [{**one, "right": [2 + n % 2] * 2} for n, one in enumerate(choices)]
    write_task(tmp_path, "copies", documents, **(CHOICE | {"doc_to_target": "right"}))
    task = Catalog(tmp_path).load("copies", tokenizer)
    margin = task.margin(task.items[0])
    assert (len(margin.requests), margin.gold, task.chance) == (3, 1, 0.25)
    assert len(set(map(task.asks, task.items))) == 1


def test_contexts_in_another_order_ask_the_same(tmp_path, tokenizer):
    """Neither the order of several inputs nor the right position asks; a sole one is right."""
    documents = chosen(("0", ["a", "b"]), ("1", ["b", "a"]), ("0", ["c"]), ("0", ["d"]))
    gold = {"two": [0, 1], "sole": [None, None]}
    for name, part, chance in (("two", documents[:2], 0.5), ("sole", documents[2:], 1.0)):
        write_task(tmp_path, name, part, **(CHOICE | {"doc_to_target": " won"}))
        task = Catalog(tmp_path).load(name, tokenizer)
        assert len(set(map(task.asks, task.items))) == (1 if name == "two" else 2)
        assert task.chance == chance
        assert [task.margin(item).gold for item in task.items] == gold[name]


@pytest.mark.parametrize("name", ["train", "test"])
def test_control_without_the_split_is_cut_in_three(folder, tokenizer, name):
    """A task is refused without the split, or if it is scored; a control is cut in three."""
    options = TaskOptions(locate_split=name)
    with pytest.raises(TaskUnusable, match=f"'good' has no split '{name}' beside the scored one"):
        Catalog(folder).load("good", tokenizer, options=options)
    benchmark = Catalog(folder).load("good", tokenizer, options=options, require_split=False)
    assert len(benchmark.split(items=5, seed=0).report) == 6
    assert f"good has no split {name}" in benchmark.notes[0]


def test_locate_items_come_from_the_other_split(tokenizer):
    """Locate and confirm items are from `train`; report items are all test documents."""
    benchmark = Catalog().load("capitals", tokenizer, options=TaskOptions(locate_split="train"))
    scored = Catalog().load("capitals", tokenizer)
    split = benchmark.split(items=30, seed=0)
    report = [benchmark.items[number].prompt for number in split.report]
    assert report == [item.prompt for item in scored.items]
    training = {document["prompt"] for document in scored.harness_tasks[0].training_docs()}
    for part in (split.locate, split.confirm):
        assert len(part) == 30
        assert {benchmark.items[number].prompt for number in part} <= training


def test_settings_of_generations_replace_the_tasks_own(folder, tokenizer):
    """`gen_kwargs` replaces the task's generation settings and leaves likelihoods unchanged."""

    def requests(name, gen_kwargs=None):
        options = TaskOptions(gen_kwargs=gen_kwargs)
        return Catalog(folder).load(name, tokenizer, options=options).items[0].requests

    write_task(folder, "likelihood", QUESTIONS, output_type="loglikelihood")
    write_task(folder, "sampled", QUESTIONS, generation_kwargs={"temperature": 0.8})
    assert requests("sampled", "do_sample=false") == requests("good")
    assert requests("likelihood", "max_new_tokens=7") == requests("likelihood")
    (plain,), (shorter,) = requests("good"), requests("good", "max_new_tokens=7")
    assert shorter == replace(plain, max_new_tokens=7)
    (changed,) = requests("good", {"until": ["!"], "max_gen_toks": 3})
    assert changed == replace(plain, max_new_tokens=3, stop=("!", "<eos>"))


def test_answers_that_do_not_fit_have_no_margin():
    """Neither a function's answer that is longer than the context or empty, nor two requests."""
    task = broca.Task.from_examples([("a", "b"), ("c", "d")], max_new_tokens=4)
    options = TaskOptions(reference=lambda document: [document["prompt"] * 9, None])
    requests = [RequestTokenizer(tiny_tokenizer(), max_length=length) for length in (8, 9)]
    short, long = (Catalog().load(task, tokenizer, options=options) for tokenizer in requests)
    assert [short.margin(item) for item in short.items] == [None, None]
    document = short._documents[0]
    several = replace(document, instances=document.instances * 2, tokens=document.tokens * 2)
    assert (document.accepts("b"), several.accepts("b")) == (True, False)
    forced = long.margin(long.items[0]).requests
    assert [len(request.continuation) for request in forced] == [9]
    options = TaskOptions(reference=lambda _: ["b", ""])
    empty = Catalog().load(task, requests[1], options=options)
    assert empty.margin(empty.items[0]) is None


def test_the_models_own_settings_of_generations_are_said(folder):
    """A note names the settings of generation_config that a task's generations follow."""
    config = GenerationConfig(repetition_penalty=1.1, num_beams=2, max_new_tokens=30)
    requests = RequestTokenizer(tiny_tokenizer(), max_length=999, generation_config=config)
    options = TaskOptions(gen_kwargs="num_beams=1")
    benchmark = Catalog(folder).load("good", requests, options=options)
    assert benchmark.notes == (
        "generations of good follow the model's generation_config, as in lm-eval: "
        "max_new_tokens=30, repetition_penalty=1.1",
    )
    assert {r.settings for item in benchmark.items for r in item.requests} == {
        '{"repetition_penalty": 1.1}'
    }
    with pytest.raises(TaskUnusable, match=r"num_beams=2 .*with `gen_kwargs` num_b"):
        Catalog(folder).load("good", requests)
