"""Equal digests mean the same question scored in the same way."""

import json
from pathlib import Path

import pytest
from harness_tasks import write_task
from tasks.test_own_tasks import REQUESTS, loaded
from tiny import tiny_tokenizer

from broca.tasks import Catalog
from broca.tasks.benchmark import definition_digest, item_digests, margin_digest, tokenizer_digest

ROWS = [(f"{number} and {number} =", f" {number}") for number in range(12)]


def digests(rows, **settings):
    """Returns the digests of the items of examples."""
    benchmark = loaded(rows, **settings)
    return item_digests(benchmark, benchmark.items)


def test_functions_share_outputs_and_exact_match_shares_nothing_with_them():
    """Items of tasks with different metric functions have equal digests; exact match differs."""
    scored, exact = digests(ROWS, metric=lambda output, answer: 0.0), digests(ROWS)
    assert scored == digests(ROWS, metric=float.__eq__)
    assert not set(scored) & set(exact)
    images = [{"prompt": "a", "answer": "b", "image": one} for one in (object(), object())]
    assert digests(images[:1]) == digests(images[1:])  # their texts have addresses


@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        ([(prompt + "?", answer) for prompt, answer in ROWS], {}),
        ([(prompt, answer + "!") for prompt, answer in ROWS], {}), (ROWS, {"until": ("x",)}),
        (ROWS, {"max_new_tokens": 3}), (ROWS, {"name": "other"}), (ROWS, {"metric": "contains"}),
    ],
)  # fmt: skip
def test_a_digest_is_of_the_question(rows, settings):
    """An item's place among the items does not change its digest; what is asked does."""
    before = digests(ROWS)
    assert len(set(before)) == len(ROWS)
    assert digests(ROWS[::-1]) == before[::-1]
    one, two = (digests([{"prompt": "p", "answer": "a", "s": s}]) for s in ({0, 8}, {8, 0}))
    assert one == two
    assert not set(before) & set(digests(rows, **settings))
    all_of = [loaded(some, **settings).documents_digest for some in (rows, ROWS, ROWS[::-1])]
    assert len(set(all_of)) == 2 + (rows != ROWS)
    assert all_of[1] == loaded(ROWS).documents_digest


def test_margins_are_digested_with_the_answers_that_are_compared():
    """Margins of an item have different digests for different right choices."""
    rows = [{"prompt": "a", "choices": [" b", " c"], "label": n % 2} for n in range(12)]
    benchmark, digest = loaded(rows), b"0" * 16
    first, second, third = (margin_digest(benchmark, item, digest) for item in benchmark.items[:3])
    assert first == third
    assert len({digest, first, second, margin_digest(benchmark, benchmark.items[0], b"1")}) == 4


def test_tokenizers_are_digested_by_what_they_do(planted):
    """A tokenizer's digest changes with its special tokens, not with its name or a release."""
    claims = Path(__file__).parents[2] / "docs/claims"
    claim = json.loads((claims / "planted-addition.json").read_text())
    assert tokenizer_digest(planted.tokenizer) == claim["digests"]["tokenizer"]
    first, second = tiny_tokenizer(), tiny_tokenizer()
    second.name_or_path = "elsewhere"
    second(["a", "a b"], padding=True)
    assert tokenizer_digest(first) == tokenizer_digest(second)
    second.add_special_tokens({"pad_token": "<new>"})
    assert tokenizer_digest(first) != tokenizer_digest(second)


def test_a_copied_task_is_the_same_task(tmp_path):
    """A task's digest depends on its functions' files and what they import, not on its folder."""
    found = []
    for folder, value, helper in (("a", 1, 0), ("b", 1, 0), ("c", 0, 0), ("d", 1, 1)):
        place = tmp_path / folder
        place.mkdir()
        documents = [{"question": f"{n} =", "answer": str(n)} for n in range(8)]
        write_task(place, "own", documents, generation_kwargs={"max_gen_toks": 4})
        with (place / "own.yaml").open("a") as file:
            file.write("process_results: !function scoring.score\n")
            file.write("fewshot_config:\n  process_docs: !function scoring.same\n")  # within others
        score = f"def score(doc, results):\n    return {{'exact_match': {value}}}\n"
        score += "def same(documents):\n    import helper\n    return documents\n"
        (place / "scoring.py").write_text(score)
        (place / "helper.py").write_text(str(helper))
        found.append(definition_digest(Catalog(place).load("own", REQUESTS)))
    assert [found.index(one) for one in found] == [0, 0, 2, 3]
