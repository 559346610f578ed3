"""Answers are compared within the number format's tolerance, scores with those of lm-eval."""

from dataclasses import replace

import pytest
import torch
from harness_tasks import write_tasks
from independent import zeroed_by_hand

from broca.errors import BadInput, SelfTestFailed
from broca.exports.check import (
    NEW_TOKENS,
    PromptAnswers,
    ablated_answers,
    ablated_score,
    answers,
    checked_task,
    compare_answers,
    compare_scores,
    harness_score,
    prompt_tokens,
)
from broca.exports.request import ExportRequest
from broca.models import GatedModel
from broca.options import RunOptions, SourceOptions, TaskOptions
from broca.results.base import AblationInfo
from broca.runs.session import open_run
from broca.testing import tiny_llama, tiny_tokenizer


def test_there_are_32_prompts():
    """There are 32 prompts, or 32 reproducible random ones without a tokenizer; none is empty."""
    assert all(prompt_tokens(tiny_tokenizer(), 258))
    drawn = prompt_tokens(None, 50)
    assert len(drawn) == len(prompt_tokens(tiny_tokenizer(), 258)) == 32
    assert drawn == prompt_tokens(None, 50)
    assert max(max(prompt) for prompt in drawn) < 50


def test_answers_are_those_of_each_prompt_alone():
    """Answers to a padded batch equal those to each prompt alone."""
    model = tiny_llama()
    prompts = prompt_tokens(tiny_tokenizer(), 258)[:5]
    together = answers(model, prompts)
    assert together.tokens.shape == (5, NEW_TOKENS)
    for row, prompt in enumerate(prompts):
        tokens = torch.tensor([prompt])
        with torch.no_grad():
            alone = model(input_ids=tokens).logits[0].log_softmax(-1)
        assert torch.allclose(together.read[row], alone, atol=1e-4)
        assert torch.allclose(together.continued[row, 0], alone[-1], atol=1e-4)
        assert together.tokens[row, 0] == alone[-1].argmax()


def test_settings_of_the_model_do_not_change_its_answers():
    """Stop strings and the number of texts of a generation_config leave the answers as they are."""
    model, prompts = tiny_llama(), prompt_tokens(tiny_tokenizer(), 258)[:3]
    expected = answers(model, prompts)
    vars(model.generation_config).update(stop_strings=["a"], num_return_sequences=2)
    assert torch.equal(answers(model, prompts).tokens, expected.tokens)


def test_ablated_answers_are_those_of_the_model_with_the_weights_zeroed():
    """Ablated answers equal those of weights zeroed by hand, and the model is intact afterwards."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")
    prompts = prompt_tokens(tiny_tokenizer(), 258)[:3]
    ablated = ablated_answers(model, ["L1H2"], 0.0, prompts)
    plain = tiny_llama()
    with torch.no_grad():
        plain.model.layers[1].self_attn.o_proj.weight[:, 16:24] = 0  # head 2, eight columns wide
    expected = answers(plain, prompts)
    assert torch.equal(ablated.tokens, expected.tokens)
    assert torch.allclose(ablated.continued, expected.continued, atol=1e-4)
    intact = answers(tiny_llama(), prompts)
    assert not torch.allclose(ablated.continued[:, 0], intact.continued[:, 0], atol=1e-4)
    assert torch.equal(answers(model.model, prompts).tokens, intact.tokens)


def altered(original, *, read=0.0, continued=0.0, token=None):
    """Returns answers with changed values or tokens."""
    tokens = original.tokens.clone()
    if token is not None:
        tokens[0, token:] += 1
    steps = original.continued.clone()
    steps[0, slice(token, None)] += continued
    return PromptAnswers(tuple(values + read for values in original.read), steps, tokens)


@pytest.fixture(scope="module")
def baseline():
    """Answers of a tiny model to four prompts."""
    return answers(tiny_llama(), prompt_tokens(tiny_tokenizer(), 258)[:4])


def test_equal_answers_pass(baseline):
    """Equal answers pass, and the check counts prompts, tokens and continuations."""
    check = compare_answers(baseline, baseline, dtype="float32", libraries=["torch"])
    assert (check.prompts, check.tokens, check.difference) == (4, NEW_TOKENS, 0.0)
    assert check.same_continuations == 4
    assert check.libraries["torch"].startswith(torch.__version__.split("+")[0])


def test_differences_beyond_the_number_format_are_refused(baseline):
    """Differences in prompts or continuations beyond the number format's tolerance are refused."""
    for changed in (altered(baseline, read=0.01), altered(baseline, continued=0.01)):
        with pytest.raises(SelfTestFailed, match="does not answer as the ablated model"):
            compare_answers(baseline, changed, dtype="float32", libraries=[])
        assert compare_answers(baseline, changed, dtype="bfloat16", libraries=[]).difference > 0


def test_a_near_tie_may_part_two_continuations(baseline):
    """Continuations may part at a near tie and are not compared after it; other partings fail."""
    parted = altered(baseline, token=3)
    parted.continued[0, 4:] += 5
    assert compare_answers(baseline, parted, dtype="float32", libraries=[]).same_continuations == 3
    for changed in (
        altered(baseline, token=3, continued=0.5),
        altered(baseline, read=float("nan")),
    ):
        with pytest.raises(SelfTestFailed):
            compare_answers(baseline, changed, dtype="float32", libraries=[])


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
    plain = zeroed_by_hand(tiny_llama(), [(0, 1), (1, 2)], head_dim=8)
    options = opened.options.task_options
    check = compare_scores(
        benchmark, score, harness_score(plain, tiny.tokenizer, benchmark, options=options),
        dtype="float32",
    )  # fmt: skip
    assert (check.task, check.items) == (name, 7)
    assert check.broca == pytest.approx(check.hf, abs=1e-6)
    with pytest.raises(SelfTestFailed, match=r"scores 0.5100 .* broca's ablated model 0.5000"):
        compare_scores(benchmark, 0.5, 0.51, dtype="float32")
    assert compare_scores(benchmark, 0.5, 0.51, dtype="bfloat16").hf == 0.51


def test_the_task_of_a_check_is_named_or_the_results(tiny, opened):
    """A check needs one task, named or the result's, under zero ablation or a scale."""
    request = ExportRequest.of(tiny, "L0H1", "adapter", None)
    with pytest.raises(BadInput, match="`check` needs a `task`"):
        checked_task(request, None)
    assert checked_task(request, "choice") == "choice"
    with pytest.raises(BadInput, match="'pair' is a group: name one of choice, few"):
        ablated_score(opened, ["L0H1"], 0.0, "pair")
    averaged = replace(request, ablation=AblationInfo("mean", 0.0))
    with pytest.raises(BadInput, match="under mean ablation the outputs alone are compared"):
        checked_task(averaged, "choice")
