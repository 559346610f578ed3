"""Scores equal those of lm-eval's `hf` model, item by item."""

import numpy as np
import pytest
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM

from broca.engine import Engine
from broca.errors import TaskUnusable
from broca.executors.executor import Executor
from broca.measurement import Plan
from broca.tasks import Catalog, Generation, LogLikelihood, RequestTokenizer

LIMIT = 40


@pytest.fixture(scope="module")
def tokenizer(reference):
    """A request tokenizer for `reference`."""
    return RequestTokenizer(reference.tokenizer, max_length=reference.max_length)


@pytest.fixture(scope="module")
def harness(reference):
    """Results of lm-eval's `hf` model on four tasks, with every item."""
    lm = HFLM(pretrained=reference.model, tokenizer=reference.tokenizer, batch_size=8)
    names = ["addition", "sorting", "rhyming", "mc_chemistry"]
    results = simple_evaluate(
        lm,
        tasks=names,
        task_manager=Catalog()._shipped_manager,
        limit=LIMIT,
        bootstrap_iters=0,
        log_samples=True,
    )
    return results


@pytest.mark.parametrize("name", ["addition", "sorting", "rhyming", "mc_chemistry"])
def test_items_score_as_in_lm_eval(reference, tokenizer, harness, name):
    """Per-item metrics, outputs and aggregate are identical; log-likelihoods agree to 1e-4."""
    benchmark = Catalog().load(name, tokenizer)
    items = benchmark.items[:LIMIT]
    engine = Engine(reference)
    requests = [request for item in items for request in item.requests]
    outputs = engine.run(
        requests, np.ones((1, 96), dtype=np.float32), np.zeros(len(requests), dtype=int)
    )
    samples = {sample["doc_id"]: sample for sample in harness["samples"][name]}
    scores, start = [], 0
    for item in items:
        answers = outputs[start : start + len(item.requests)]
        start += len(item.requests)
        sample = samples[item.number]
        scores.append(benchmark.score(item, answers))
        assert scores[-1] == sample[benchmark.metric]
        for answer, (response,) in zip(answers, sample["resps"], strict=True):
            if isinstance(answer, Generation):
                assert answer.text == response
            else:
                assert answer.value == pytest.approx(response[0], abs=1e-4)
                assert answer.greedy == response[1]
    expected = harness["results"][name][f"{benchmark.metric},none"]
    assert benchmark.aggregate(scores) == pytest.approx(expected)


def test_requests_tokenize_as_in_lm_eval(reference, tokenizer):
    """Contexts and continuations are those of lm-eval's model."""
    lm = HFLM(pretrained=reference.model, tokenizer=reference.tokenizer)
    for context, continuation in [("a b", " c"), ("a  ", "b"), ("x =\n", "12"), ("q", "!")]:
        request = tokenizer.loglikelihood(context, continuation)
        pair = (list(request.context), list(request.continuation))
        assert pair == lm._encode_pair(context, continuation)


def test_empty_context_becomes_the_prefix_token(reference, tokenizer):
    """An empty context is replaced by the beginning-of-sequence token, as in lm-eval."""
    request = tokenizer.loglikelihood("", "sum")
    assert request.context == (reference.tokenizer.bos_token_id,)
    assert reference.tokenizer.decode(request.continuation) == "sum"


def test_long_prompt_is_cut_from_the_left_and_counted(reference):
    """A prompt loses its first tokens where it exceeds the context, and `cut` counts them."""
    short = RequestTokenizer(reference.tokenizer, max_length=20)
    request = short.loglikelihood("x " * 40 + "y", " z")
    assert len(request.context) + len(request.continuation) == 21
    long = RequestTokenizer(reference.tokenizer, max_length=2048)
    uncut = long.loglikelihood("x " * 40 + "y", " z")
    assert request.cut == len(uncut.context) - len(request.context)
    assert request.context == uncut.context[request.cut :]
    generation = short._generation("t", "x " * 40, {"max_gen_toks": 8, "until": ["\n"]})
    assert len(generation.context) == 12
    assert generation.cut > 0


def test_generation_longer_than_the_context_is_refused(reference):
    """A generation length that leaves no room for a prompt is refused."""
    short = RequestTokenizer(reference.tokenizer, max_length=20)
    with pytest.raises(TaskUnusable, match="no room for a prompt"):
        short._generation("t", "x", {"max_gen_toks": 20})


def test_sampling_is_refused(tokenizer):
    """A task that samples its generations is refused."""
    with pytest.raises(TaskUnusable, match="do_sample"):
        tokenizer._generation("t", "x", {"do_sample": True, "temperature": 0.7})


def test_chance_is_one_over_the_choices(tokenizer):
    """Chance is a quarter for four choices and 0 for generations."""
    assert Catalog().load("mc_biology", tokenizer).chance == 0.25
    assert Catalog().load("addition", tokenizer).chance == 0.0


def test_scores_near_chance_are_at_chance(tokenizer):
    """A score within one-sided 95 % of guessing is at chance; of generations only 0 is."""
    choice = Catalog().load("mc_biology", tokenizer)
    assert choice.at_chance(0.28, items=300)
    assert not choice.at_chance(0.35, items=300)
    generated = Catalog().load("addition", tokenizer)
    assert generated.at_chance(0.0, items=300)
    assert not generated.at_chance(0.01, items=300)


def test_unknown_metric_is_refused(tokenizer):
    """An unknown metric is refused with the task's metrics."""
    with pytest.raises(TaskUnusable, match=r"no metric 'acc'.*exact_match"):
        Catalog().load("addition", tokenizer, metric="acc")


def test_responses_are_the_metric_of_each_row(reference, tokenizer):
    """The executor's response of a row is the item's score under the row's mask."""
    benchmark = Catalog().load("mc_biology", tokenizer)
    bank = [(benchmark, item) for item in benchmark.items[:5]]
    masks = np.zeros((2, 96), dtype=bool)
    masks[1, :48] = True
    executor = Executor(Engine(reference), bank)
    responses = executor.run(Plan.crossed(masks, np.arange(5))).responses
    assert len(responses) == 10
    for row, (mask, item) in enumerate([(m, i) for m in masks for i in range(5)]):
        outputs = Engine(reference).run(
            list(bank[item][1].requests),
            (~mask[None]).astype(np.float32),
            np.zeros(4, dtype=int),
        )
        assert all(isinstance(output, LogLikelihood) for output in outputs)
        assert responses[row] == benchmark.score(bank[item][1], outputs)
