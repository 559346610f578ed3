"""Without a mask, all kinds of tasks give the results of lm-eval's `hf` model."""

import copy

import pytest
from harness_tasks import answers, harness_results
from tiny import CHAT

from broca.models import GatedModel
from broca.tasks import Catalog, Generation, RequestTokenizer, TaskOptions

NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHAT
)
DROPS_SYSTEM = "{% set messages = messages | rejectattr('role', 'equalto', 'system') %}" + CHAT


@pytest.fixture(scope="module")
def harness(tiny, kinds):
    """Results of lm-eval on all tasks: `nested` contains `pair`, `choice`, `few` and `inputs`."""
    names = ["generation", "mutual", "last_word", "nested"]
    return harness_results(tiny.model, tiny.tokenizer, names, folder=kinds)


def assert_equal(model, folder, name, results, *, options=None, metric=None):
    """Asserts that metrics, texts, log-likelihoods (to 1e-4) and score equal lm-eval's."""
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    benchmark = Catalog(folder).load(
        name, tokenizer, metric=metric, options=options or TaskOptions()
    )
    full = benchmark.metric if "," in benchmark.metric else f"{benchmark.metric},none"
    outputs_by_item = answers(model, benchmark)
    samples = [
        sample
        for task in benchmark.task_names
        for sample in sorted(results["samples"][task], key=lambda sample: sample["doc_id"])
        if sample["filter"] == full.partition(",")[2]
    ]
    assert len(samples) == len(benchmark.items)
    for item, outputs, sample in zip(benchmark.items, outputs_by_item, samples, strict=True):
        assert item.prompt == sample["arguments"][0][0]
        metrics = benchmark.metrics(item, outputs)
        for key in sample["metrics"]:
            assert metrics[key] == pytest.approx(sample[key], rel=1e-4, abs=1e-4)
        if isinstance(outputs[0], Generation):
            assert [output.text for output in outputs] == [text for text, *_ in sample["resps"]]
        elif not isinstance(sample["resps"][0][0], float):
            for output, (pair,) in zip(outputs, sample["resps"], strict=True):
                assert output.value == pytest.approx(pair[0], abs=1e-4)
                assert output.greedy == pair[1]
    scores = list(map(benchmark.score, benchmark.items, outputs_by_item))
    assert benchmark.aggregate(scores, benchmark.items) == pytest.approx(
        results["results"][name][full], rel=1e-4
    )
    return benchmark


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("generation", None), ("generation", "exact_match,strict-match"), ("choice", "acc"),
        ("choice", "acc_norm"), ("mutual", "acc_mutual_info"), ("inputs", None),
        ("last_word", "acc"), ("few", None), ("nested", None), ("pair", None),
    ],
)  # fmt: skip
def test_every_kind_of_task(tiny, kinds, harness, name, metric):
    """Generations, choices, several inputs, likelihoods and groups equal lm-eval's.

    The tasks of `nested` are of unequal sizes and weigh alike.
    """
    assert_equal(tiny, kinds, name, harness, metric=metric)


OWN = """import numpy, random, scipy.special
drawn = lambda document: document | {"choices": random.sample(document["choices"], 4)}
shuffled = lambda documents: documents.map(drawn)
label = lambda document: numpy.int32(document["label"])
share = lambda _, results: {"acc": scipy.special.softmax([one for one, _ in results])[:2].sum()}
"""


def test_choices_that_a_task_draws_and_scores_itself(tiny, kinds):
    """Draws of a task's functions are lm-eval's; its own score says chance and right choices."""
    (kinds / "own.py").write_text(OWN)
    drawn = (
        "include: choice.yaml\ntask: drawn\nprocess_docs: OWNshuffled\ndoc_to_target: OWNlabel\n"
    )
    share = "include: drawn.yaml\ntask: share\nprocess_results: OWNshare\n"
    for name, text in (("drawn", drawn), ("share", share)):
        (kinds / f"{name}.yaml").write_text(text.replace("OWN", "!function own."))
    results = harness_results(tiny.model, tiny.tokenizer, ["drawn", "share"], folder=kinds)
    for name, chance in (("drawn", 0.25), ("share", 0.5)):
        benchmark = assert_equal(tiny, kinds, name, results, metric="acc")
        assert benchmark.chance == chance
        labels = [benchmark.document(item)["label"] for item in benchmark.items]
        right = [benchmark.margin(item).gold for item in benchmark.items]
        assert right == (labels if name == "drawn" else [(0, 1)] * len(labels))


def test_solved_examples_limit_and_system_prompt(tiny, kinds):
    """Examples, cut prompts, a share as the limit and a system prompt are those of lm-eval."""
    settings, names = {"num_fewshot": 12, "limit": 0.5}, ["generation", "pair"]
    results = harness_results(
        tiny.model, tiny.tokenizer, names, folder=kinds, system_instruction="brief", **settings
    )
    options = TaskOptions(system_prompt="brief", **settings)
    for name, count in zip(names, (12, 12 + 5), strict=True):
        benchmark = assert_equal(tiny, kinds, name, results, options=options)
        assert len(benchmark.items) == count
        assert benchmark.items[0].prompt.startswith("brief")
        assert benchmark.cut_items > 0 or name == "pair"


@pytest.mark.parametrize(
    ("template", "multiturn"),
    [(CHAT, True), (CHAT, False), (NO_SYSTEM, True), (DROPS_SYSTEM, True)],
)
def test_chat_template_and_system_prompt(reference, kinds, template, multiturn):
    """Prompts in a chat template equal lm-eval's, also if it refuses or drops system messages."""
    tokenizer = copy.deepcopy(reference.tokenizer)
    tokenizer.chat_template = template
    model = GatedModel.wrap(reference.model, tokenizer, name="reference")
    names, settings = ["generation", "choice"], {"num_fewshot": 2, "limit": 6}
    results = harness_results(
        model.model, tokenizer, names, folder=kinds, apply_chat_template=True,
        system_instruction="be brief", fewshot_as_multiturn=multiturn, **settings,
    )  # fmt: skip
    options = TaskOptions(
        chat_template=True, system_prompt="be brief", fewshot_as_multiturn=multiturn, **settings
    )
    for name in names:
        benchmark = assert_equal(model, kinds, name, results, options=options)
        assert ("be brief" in benchmark.items[0].prompt) == (template == CHAT)
        assert any("no system message" in note for note in benchmark.notes) == (template != CHAT)
        assert benchmark.items[0].prompt.endswith("<assistant>")
