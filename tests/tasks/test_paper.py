"""The paper's tasks end to end and offline: lm-eval's definitions on small local data."""

import contextlib
import io
import itertools
import re
import shutil

import numpy as np
import paper_data
import pytest
from direct import DirectExecutor
from lm_eval import simple_evaluate
from lm_eval.models.dummy import DummyLM
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tiny import tiny_gated, tiny_tokenizer

from broca.engine import Engine
from broca.errors import BrocaError
from broca.measurement import Plan
from broca.runs.task_sets import other_tasks
from broca.tasks import PAPER_GROUPS, PAPER_TASKS, Catalog, Generation, RequestTokenizer
from broca.tasks.code import code_tasks
from broca.tasks.task_index import TaskEntries, harness_entry

GENERATED = ("gsm8k", "mbpp", "humaneval_instruct")


@pytest.fixture(scope="module")
def model():
    """A model of random weights whose context holds the longest prompt and generation."""
    return tiny_gated("small", layers=1, context=4096)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of the local data that replace the hub's."""
    folder = tmp_path_factory.mktemp("hub")
    paper_data.write_data(folder)
    with paper_data.local_data(folder):
        yield folder


@pytest.fixture(scope="module")
def benchmarks(data, model):
    """A function that loads a task, whose code may be executed, once."""
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    catalog = Catalog(allow_code=True)

    def load(name):
        if PAPER_TASKS[name].executes_code and shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        return catalog.load(name, tokenizer=tokenizer)

    return load


def harness(lm, name):
    """Returns lm-eval's results of a task or group, and the scores of all documents by task."""
    manager = TaskManager(include_defaults=False)
    manager._index = TaskEntries(harness_entry)
    with contextlib.redirect_stderr(io.StringIO()), code_tasks(True):
        results = simple_evaluate(
            lm, tasks=[name], task_manager=manager, bootstrap_iters=0, log_samples=True,
            confirm_run_unsafe_code=True,
        )  # fmt: skip
    metric, _, chosen = PAPER_TASKS[name].metric.partition(",")
    scores = {}
    for task, samples in results["samples"].items():
        ordered = sorted(samples, key=lambda sample: sample["doc_id"])
        scores[task] = [sample[metric] for sample in ordered if chosen in ("", sample["filter"])]
    return results["results"], scores


@pytest.mark.long
@pytest.mark.parametrize("name", PAPER_TASKS)
def test_scores_are_those_of_lm_eval(name, benchmarks, model):
    """Responses and score equal lm-eval's for the same model and data, in the paper's metric."""
    benchmark = benchmarks(name)
    bank = [(benchmark, item) for item in benchmark.items]
    plan = Plan.crossed(np.zeros((1, len(model.components)), dtype=bool), np.arange(len(bank)))
    responses = DirectExecutor(Engine(model), bank).run(plan).responses

    lm = HFLM(pretrained=model.model, tokenizer=model.tokenizer, batch_size=16)
    results, expected = harness(lm, name)
    assert responses.tolist() == pytest.approx([*itertools.chain(*expected.values())])
    score = benchmark.aggregate(responses.tolist(), benchmark.items)
    if name == "arithmetic":  # lm-eval reports no score for a tag, only for its members
        assert score == pytest.approx(np.mean([np.mean(scores) for scores in expected.values()]))
    else:
        metric = PAPER_TASKS[name].metric
        key = next(key for key in results[name] if f"{key},".startswith(f"{metric},"))
        assert score == pytest.approx(results[name][key])


def canned(name, prompt):
    """Returns an answer as a chat model would write it, right for every second item."""
    if name == "gsm8k":
        question = prompt.rsplit("Question: ", 1)[1]
        count = int(re.search(r"has (\d+) pens", question).group(1))
        if count % 2:
            return f" The answer is {count + 3}."  # no '####': the strict filter finds nothing
        return f" There are {count} pens.\n#### {count + 1}"
    if name == "mbpp":
        number = int(re.findall(r"assert add_(\d+)\(", prompt)[-1])
        return f"def add_{number}(n):\r\n  return n + {number}{'' if number % 2 else ' + 1'}\n"
    number = int(re.findall(r"def times_(\d+)\(", prompt)[-1])
    return f"    return {'n' if number % 2 else '-1'} * {number}\n```\nThis multiplies."


@pytest.mark.parametrize("name", GENERATED)
def test_known_answers_are_scored_as_by_lm_eval(name, benchmarks):
    """Scores of right and wrong answers, executed or filtered, equal lm-eval's."""
    benchmark = benchmarks(name)
    answers = [Generation(canned(name, item.prompt), 1) for item in benchmark.items]
    pairs = zip(benchmark.items, answers, strict=True)
    scores = [benchmark.score(item, [answer]) for item, answer in pairs]
    lm = DummyLM()
    lm.generate_until = lambda requests, **_: [canned(name, r.args[0]) for r in requests]
    _, expected = harness(lm, name)
    assert scores == expected[name]
    assert 0 < sum(scores) < len(scores)


def test_code_tasks_are_refused_by_default(data):
    """A catalog refuses code tasks by default, also if another catalog has loaded them."""
    for name in ("mbpp", "humaneval_instruct"):
        with pytest.raises(BrocaError, match=f"'{name}' executes code.*`allow_code`"):
            Catalog().load(name, RequestTokenizer(tiny_tokenizer(), max_length=4096))


def test_general_among_the_others_stands_for_its_members():
    """`general` among other tasks is replaced by its members without the task itself."""
    names = other_tasks("boolq", "general,gsm8k,mmlu", "some/model", Catalog())
    assert names == ("hellaswag", "arc_challenge", "mmlu", "gsm8k")
    assert other_tasks("gsm8k", ["general"], "some/model", Catalog()) == PAPER_GROUPS["general"]
