"""Equal digests mean the same question scored in the same way."""

import pytest
from harness_tasks import write_task

import broca
from broca.tasks import Catalog, RequestTokenizer
from broca.tasks.benchmark import definition_digest, item_digests, margin_digest, tokenizer_digest
from broca.testing import tiny_tokenizer

REQUESTS = RequestTokenizer(tiny_tokenizer(), max_length=256)
PROMPTS = [f"{number} and {number} =" for number in range(12)]


ROWS = [(prompt, " x") for prompt in PROMPTS]


def loaded(rows, **settings):
    """Returns a benchmark of examples."""
    return Catalog().load(broca.Task.from_examples(rows, **settings), REQUESTS)


def test_functions_share_outputs_and_exact_match_shares_nothing_with_them():
    """Items of tasks with different metric functions have equal digests; exact match differs."""
    metrics = (lambda output, answer: 0.0, float.__eq__, None, None)
    first, second, exact, same = [loaded(ROWS, metric=metric) for metric in metrics]
    assert item_digests(first, first.items) == item_digests(second, second.items)
    assert definition_digest(first) != definition_digest(exact)
    assert item_digests(same, same.items) == item_digests(exact, exact.items)


def test_a_digest_is_of_the_document_and_its_tokens():
    """An item's digest does not depend on its place among the items."""
    rows = [(prompt, f" {number}") for number, prompt in enumerate(PROMPTS)]
    benchmark, reversed_ = loaded(rows, name="own"), loaded(rows[::-1], name="own")
    digests = item_digests(benchmark, benchmark.items)
    assert len(set(digests)) == len(rows)
    assert {len(digest) for digest in digests} == {16}
    assert item_digests(reversed_, reversed_.items) == digests[::-1]


@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        ([(prompt + "?", answer) for prompt, answer in ROWS], {}),
        ([(prompt, answer + "!") for prompt, answer in ROWS], {}),
        (ROWS, {"until": ("x",)}),
        (ROWS, {"max_new_tokens": 3}),
        (ROWS, {"name": "other"}),
    ],
    ids=["prompt", "answer", "stop", "length", "name"],
)
def test_another_question_has_another_digest(rows, settings):
    """The digest changes with the prompt, the answer, the stop string, the length and the name."""
    before, after = loaded(ROWS, name="own"), loaded(rows, **{"name": "own", **settings})
    assert not set(item_digests(before, before.items)) & set(item_digests(after, after.items))


def test_margins_are_digested_with_the_answers_that_are_compared():
    """Margins of an item have different digests for different right choices."""
    rows = [{"prompt": "a", "choices": [" b", " c"], "label": n % 2} for n in range(12)]
    benchmark = loaded(rows, name="own")
    digest = b"0" * 16
    first, second = (margin_digest(benchmark, item, digest) for item in benchmark.items[:2])
    assert len({digest, first, second}) == 3
    assert margin_digest(benchmark, benchmark.items[2], digest) == first
    assert margin_digest(benchmark, benchmark.items[0], b"1" * 16) != first


def test_tokenizers_are_digested_by_what_they_do():
    """A tokenizer's digest changes with its special tokens but not with its name."""
    first, second = tiny_tokenizer(), tiny_tokenizer()
    second.name_or_path = "elsewhere"
    assert tokenizer_digest(first) == tokenizer_digest(second)
    assert len(tokenizer_digest(first)) == 32
    second.add_special_tokens({"pad_token": "<new>"})
    assert tokenizer_digest(first) != tokenizer_digest(second)


def test_a_copied_task_is_the_same_task(tmp_path):
    """A task's digest depends on the code of its functions but not on its folder."""
    digests = []
    for folder, value in (("a", 1.0), ("b", 1.0), ("c", 0.0)):
        place = tmp_path / folder
        place.mkdir()
        documents = [{"question": f"{n} =", "answer": str(n)} for n in range(8)]
        metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
        write_task(
            place, "own", documents, metric_list=metrics, generation_kwargs={"max_gen_toks": 4}
        )
        with (place / "own.yaml").open("a") as file:
            file.write("process_results: !function scoring.score\n")
        score = f"def score(doc, results):\n    return {{'acc': {value}}}\n"
        (place / "scoring.py").write_text(score)
        digests.append(definition_digest(Catalog(place).load("own", REQUESTS)))
    assert digests[0] == digests[1] != digests[2]
