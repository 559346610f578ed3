"""lm-eval tasks with their requests: targets, splits, prompts and scores."""

from dataclasses import replace

import pytest
from harness_tasks import tokenizer_with, write_task
from transformers import GenerationConfig

import broca
from broca.errors import TaskUnusable
from broca.tasks import Catalog, Generation, RequestTokenizer, TaskOptions
from broca.testing import tiny_tokenizer

CHOICE = {"output_type": "multiple_choice", "doc_to_target": 0, "doc_to_choice": "choices"}
"""Settings of multiple choice."""


@pytest.mark.parametrize("kind", ["likelihood", "rolling"])
def test_items_without_a_target_are_left_out_and_counted(folder, tokenizer, kind):
    """Items with an empty target are left out of likelihood tasks; others keep their `doc_id`."""
    task = Catalog(folder).load(f"empty_{kind}", tokenizer)
    assert len(task.items) == 8
    assert [task.document_place(item)[2] for item in task.items] == [0, 1, 2, 3, 4, 6, 7, 8]
    assert [note for note in task.notes if "left out" in note] == [
        f"1 of 9 items of empty_{kind} were left out: their targets have no tokens of their "
        "own, so that there is nothing to score"
    ]


def test_saying_nothing_is_right_where_a_stop_string_ends_it(folder, tokenizer):
    """An empty target is right for an empty generation."""
    task = Catalog(folder).load("empty_generation", tokenizer)
    assert len(task.items) == 9
    silent = [Generation("", 0)]
    assert [task.score(task.items[n], silent) for n in (5, 6)] == [1.0, 0.0]


def test_a_task_of_empty_targets_alone_is_refused(folder, tokenizer):
    """A task with empty targets only is refused."""
    (folder / "empty_likelihood.jsonl").write_text('{"question": "1 =", "answer": ""}\n' * 9)
    with pytest.raises(TaskUnusable, match="no item of task 'empty_likelihood' can be scored"):
        Catalog(folder).load("empty_likelihood", tokenizer)


def test_unknown_split_is_refused(folder, tokenizer):
    """An unknown split is refused with the known ones, and so is the scored split."""
    catalog = Catalog()
    with pytest.raises(TaskUnusable, match=r"'capitals' has no split 'dev' .*it has train"):
        catalog.load("capitals", tokenizer, options=TaskOptions(locate_split="dev"))
    with pytest.raises(TaskUnusable, match=r"no split 'test' beside the scored one \(test\)"):
        Catalog(folder).load("good", tokenizer, options=TaskOptions(locate_split="test"))


def test_control_without_the_split_is_cut_in_three(folder, tokenizer):
    """With `require_split=False` a task without the split is cut in three, and a note says so."""
    benchmark = Catalog(folder).load(
        "good", tokenizer, options=TaskOptions(locate_split="train"), require_split=False
    )
    assert len(benchmark.split(items=5, seed=0).report) == 6
    assert "good has no split train" in benchmark.notes[0]


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
    options = TaskOptions(gen_kwargs="max_new_tokens=7")
    plain, shorter = (
        Catalog(folder).load("good", tokenizer, options=chosen).items[0].requests[0]
        for chosen in (None, options)
    )
    assert shorter == replace(plain, max_new_tokens=7)
    likelihood = Catalog(folder).load("empty_likelihood", tokenizer, options=options)
    assert likelihood.items == Catalog(folder).load("empty_likelihood", tokenizer).items
    changed = TaskOptions(gen_kwargs={"until": ["!"], "max_gen_toks": 3})
    request = Catalog(folder).load("good", tokenizer, options=changed).items[0].requests[0]
    assert request.max_new_tokens == 3
    assert "!" in request.stop
    assert "\n\n" not in request.stop


def test_choices_that_merge_with_their_prompt_are_left_out(tmp_path):
    """An item with a choice that becomes one token with the prompt is left out and counted."""
    documents = [
        {"question": "2 cat", "choices": ["s", " dogs", "!"]},
        {"question": "2 ca", "choices": ["r", " t"]},
        {"question": "1 cat", "choices": ["!", ""]},
    ]
    write_task(tmp_path, "merging", documents, **CHOICE)
    tokenizer = tokenizer_with(merges=(("c", "a"), ("ca", "t"), ("cat", "s")))
    benchmark = Catalog(tmp_path).load("merging", RequestTokenizer(tokenizer, max_length=64))
    assert [item.prompt for item in benchmark.items] == ["2 ca"]
    (note,) = benchmark.notes
    assert note.startswith("2 of 3 items of merging were left out: their targets have no tokens of")


def test_items_that_do_not_fit_are_left_out_and_said(tmp_path):
    """Answers longer than the model's context are left out with a note; all of them are refused."""
    documents = [{"question": "a", "choices": ["b", "c" * n]} for n in (3, 9, 8)]
    write_task(tmp_path, "long", documents, **CHOICE)
    benchmark = Catalog(tmp_path).load("long", RequestTokenizer(tiny_tokenizer(), max_length=8))
    assert [item.requests[1].continuation for item in benchmark.items] == [
        tuple(tiny_tokenizer().encode("c" * n)) for n in (3, 8)
    ]
    assert all(request.context for item in benchmark.items for request in item.requests)
    (note,) = benchmark.notes
    assert note == (
        "1 of 3 items of long were left out: an answer is longer than the 8 tokens that the "
        "model reads: shorten it"
    )
    with pytest.raises(TaskUnusable, match="no item of task 'long' can be scored: an answer"):
        Catalog(tmp_path).load("long", RequestTokenizer(tiny_tokenizer(), max_length=2))


def test_answers_that_do_not_fit_have_no_margin():
    """An answer of a function that is longer than the context leaves its item out of margins."""
    task = broca.Task.from_examples([("a", "b"), ("c", "d")], max_new_tokens=4)
    options = TaskOptions(reference=lambda document: document["prompt"] * 9)
    requests = [RequestTokenizer(tiny_tokenizer(), max_length=length) for length in (8, 9)]
    short, long = (Catalog().load(task, tokenizer, options=options) for tokenizer in requests)
    assert [short.margin(item) for item in short.items] == [None, None]
    assert len(long.margin(long.items[0]).requests[0].continuation) == 9


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
