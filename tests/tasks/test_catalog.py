"""Tasks are found by name; what cannot be used is refused in one line."""

import json

import pytest

from broca.errors import BadInput, TaskUnusable, UnknownName
from broca.tasks import Catalog, RequestTokenizer
from broca.testing import tiny_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    """A byte-level tokenizer."""
    return RequestTokenizer(tiny_tokenizer(), max_length=256)


@pytest.fixture
def folder(tmp_path):
    """A folder with one small task of the user's own."""
    data = [{"question": f"{n} + 1 =", "answer": str(n + 1)} for n in range(20)]
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(one) for one in data))
    (tmp_path / "plus_one.yaml").write_text(
        f"""
task: plus_one
dataset_path: json
dataset_kwargs:
  data_files:
    test: {tmp_path / "data.jsonl"}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: ["\\n"]
  max_gen_toks: 4
metric_list:
  - metric: exact_match
"""
    )
    return tmp_path


def test_task_of_a_folder_is_loaded(folder, tokenizer):
    """Prompts, targets and limits come from the YAML file."""
    catalog = Catalog(folder)
    assert catalog.included == ("plus_one",)
    benchmark = catalog.load("plus_one", tokenizer)
    assert len(benchmark.items) == 20
    assert benchmark.items[3].prompt == "3 + 1 ="
    assert benchmark.items[3].target == "4"
    assert benchmark.items[3].requests[0].max_new_tokens == 4
    assert "\n" in benchmark.items[3].requests[0].stop


def test_unknown_task_is_refused_with_the_nearest_name():
    """A typo of a shipped task is answered with that task."""
    with pytest.raises(UnknownName, match="'additoin' is unknown; did you mean 'addition'"):
        Catalog().load("additoin", None)


def test_task_whose_data_are_missing_is_refused(folder, tokenizer):
    """The missing file is named."""
    (folder / "data.jsonl").unlink()
    with pytest.raises(TaskUnusable, match=r"'plus_one' could not be loaded.*data\.jsonl"):
        Catalog(folder).load("plus_one", tokenizer)


def test_folder_that_does_not_exist_is_refused():
    """The option is named."""
    with pytest.raises(BadInput, match="--include-path '/no/where' is not a folder"):
        Catalog("/no/where")


def test_folder_without_tasks_is_refused(tmp_path):
    """An empty folder adds nothing."""
    with pytest.raises(BadInput, match="holds no lm-eval task"):
        Catalog(tmp_path)


def test_every_lm_eval_task_can_be_named():
    """A name that is not shipped is looked up among lm-eval's own tasks."""
    assert "gsm8k" in Catalog()._manager_of("gsm8k").all_tasks
    assert Catalog()._manager_of("gsm8k") is Catalog()._manager_of("mmlu")
