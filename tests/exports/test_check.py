"""Answers are compared within the number format's tolerance, scores with those of lm-eval."""

import pytest
import torch
from harness_tasks import write_tasks
from independent import zeroed_by_hand
from tiny import tiny_llama, tiny_tokenizer

from broca.errors import BadInput, SelfTestFailed
from broca.exports.check import (
    NEW_TOKENS,
    PromptAnswers,
    ablated_score,
    answers,
    compare_answers,
    compare_scores,
    prompt_tokens,
)
from broca.options import RunOptions, SourceOptions, TaskOptions
from broca.runs.session import open_run


@pytest.fixture(scope="module")
def prompts():
    """The tokens of the first prompts."""
    return prompt_tokens(tiny_tokenizer(), 258, 64)[:4]


def test_answers_are_those_of_each_prompt_alone(prompts):
    """Answers to a batch equal those to each prompt alone; generation_config has no say."""
    model = tiny_llama()
    vars(model.generation_config).update(stop_strings=["a"], num_return_sequences=2)
    together = answers(model, prompts)
    assert together.tokens.shape == (4, NEW_TOKENS)
    read = together.read.split([len(prompt) for prompt in prompts])
    for row, prompt in enumerate(prompts):
        tokens = torch.tensor([prompt])
        with torch.no_grad():
            alone = model(input_ids=tokens).logits[0].log_softmax(-1)
        assert torch.allclose(read[row], alone, atol=1e-4)
        assert torch.allclose(together.continued[row, 0], alone[-1], atol=1e-4)
        assert together.tokens[row, 0] == alone[-1].argmax()


def altered(original, *, read=0.0, continued=0.0, token=None):
    """Returns answers with changed values or tokens."""
    tokens = original.tokens.clone()
    if token is not None:
        tokens[0, token:] += 1
    steps = original.continued.clone()
    steps[0, slice(token, None)] += continued
    return PromptAnswers(original.read + read, steps, tokens)


def test_differences_beyond_the_number_format_are_refused(prompts):
    """Differences beyond the number format's tolerance are refused, in prompts or continuations.

    Continuations may part at a near tie and are not compared after it.
    """
    baseline = answers(tiny_llama(), prompts)
    check = compare_answers(baseline, baseline, dtype="float32", form="adapter")
    assert (check.prompts, check.tokens, check.difference) == (4, NEW_TOKENS, 0.0)
    assert check.same_continuations == 4
    parted = altered(baseline, token=3)
    parted.continued[0, 4:] += 5
    assert compare_answers(baseline, parted, dtype="float32", form="heads").same_continuations == 3
    for changed in (
        altered(baseline, read=0.01), altered(baseline, continued=0.01),
        altered(baseline, token=3, continued=0.05), altered(baseline, read=float("nan")),
    ):  # fmt: skip
        with pytest.raises(SelfTestFailed, match="does not answer as the ablated model"):
            compare_answers(baseline, changed, dtype="float32", form="heads")
        if not changed.read.isnan().any():
            assert compare_answers(baseline, changed, dtype="bfloat16", form="heads").difference > 0


@pytest.fixture(scope="module")
def opened(tmp_path_factory, tiny):
    """The tiny model, opened with tasks of every kind."""
    folder = write_tasks(tmp_path_factory.mktemp("tasks"))
    options = RunOptions(
        source_options=SourceOptions(include_path=folder), task_options=TaskOptions(limit=7)
    )
    with open_run(tiny, options, warns=False) as run:
        yield run


@pytest.mark.parametrize("name", ["choice", "generation"])
def test_the_ablated_score_is_that_of_the_model_with_the_weights_zeroed(tiny, opened, name):
    """The ablated score equals lm-eval's of weights zeroed by hand, on the same items."""
    benchmark, score = ablated_score(opened, ["L0H1", "L1H2"], 0.0, name)
    plain = zeroed_by_hand(tiny_llama(), [(0, 1), (1, 2)])

    settings = {"dtype": "float32", "options": opened.options.task_options}
    check = compare_scores(plain, tiny.tokenizer, benchmark, score, **settings)
    assert (check.task, check.items) == (name, 7)
    assert check.broca == pytest.approx(check.hf, abs=1e-6)
    with pytest.raises(SelfTestFailed, match=r"scores .* and broca's ablated model"):
        compare_scores(plain, tiny.tokenizer, benchmark, score + 0.01, **settings)


def test_a_group_has_no_single_score(opened):
    """The score of a check is that of one task."""
    with pytest.raises(BadInput, match="'pair' is a group: name one of choice, few"):
        ablated_score(opened, ["L0H1"], 0.0, "pair")
