"""Requests in tokens, chance, and the responses of rows."""

import numpy as np
import pytest
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from broca.engine import Engine
from broca.errors import TaskUnusable
from broca.executors.executor import Executor
from broca.measurement import Plan
from broca.tasks import Catalog, LogLikelihood, RequestTokenizer


@pytest.fixture(scope="module")
def tokenizer(reference):
    """A request tokenizer for `reference`."""
    return RequestTokenizer(reference.tokenizer, max_length=reference.max_length)


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


def generation(tokenizer, text, **settings):
    """Returns the request of a generation."""
    instance = Instance("generate_until", {}, (text, settings), 0, task_name="t")
    (request,) = tokenizer.requests(instance)
    return request


def test_long_prompt_is_cut_from_the_left_and_counted(reference):
    """A prompt loses its first tokens where it exceeds the context, and `cut` counts them."""
    short = RequestTokenizer(reference.tokenizer, max_length=20)
    request = short.loglikelihood("x " * 40 + "y", " z")
    assert len(request.context) + len(request.continuation) == 21
    long = RequestTokenizer(reference.tokenizer, max_length=2048)
    uncut = long.loglikelihood("x " * 40 + "y", " z")
    assert request.cut == len(uncut.context) - len(request.context)
    assert request.context == uncut.context[request.cut :]
    generated = generation(short, "x " * 40, max_gen_toks=8, until=["\n"])
    assert len(generated.context) == 12
    assert generated.cut > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_gen_toks": 20}, "no room for a prompt"),
        ({"do_sample": True, "temperature": 0.7}, "do_sample"),
    ],
)
def test_generations_that_cannot_be_decoded_are_refused(reference, settings, message):
    """A length that leaves no room for a prompt and sampling are refused."""
    with pytest.raises(TaskUnusable, match=message):
        generation(RequestTokenizer(reference.tokenizer, max_length=20), "x", **settings)


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
