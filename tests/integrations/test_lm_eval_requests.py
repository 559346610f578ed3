"""Requests with stop strings, generation settings and odd texts, against lm-eval's own `hf`."""

import json

import pytest
from independent import plain_generation, plain_loglikelihood
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from tiny import tiny_llama, tokenizer_with
from tokenizers.processors import TemplateProcessing

from broca.errors import BadInput
from broca.integrations.lm_eval import BrocaLM

PROMPTS = ("one two three", "x", "a longer prompt of some more words: ", "2 cats")
MERGES = (("c", "a"), ("ca", "t"), ("cat", "s"))
EMITTED = plain_generation(
    tiny_llama(), tokenizer_with().encode(PROMPTS[0]), new_tokens=24, min_new=True
)
"""The tokens that the tiny model generates after the first prompt."""


@pytest.fixture
def pair(tmp_path):
    """Returns lm-eval's `hf` and broca's model of the same folder."""

    def built(tokenizer, *, arguments=None, **settings):
        tiny_llama(context=64).save_pretrained(tmp_path)
        written = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1, "do_sample": True}
        written |= settings
        (tmp_path / "generation_config.json").write_text(json.dumps(written))
        tokenizer.save_pretrained(tmp_path)
        arguments = {"pretrained": str(tmp_path), "device": "cpu", **(arguments or {})}
        return HFLM(**arguments, batch_size=1), BrocaLM(**arguments)

    return built


def instances(kind, *arguments):
    """Returns requests of lm-eval."""
    return [
        Instance(kind, {}, request, 0, metadata=("task", number, 1))
        for number, request in enumerate(arguments)
    ]


def generated(model, prompts=PROMPTS, **settings):
    """Returns a model's texts after some prompts."""
    settings = {"max_gen_toks": 24, **settings}
    return model.generate_until(instances("generate_until", *((p, settings) for p in prompts)))


def scored(model, *pairs):
    """Returns a model's log-likelihoods of continuations after contexts."""
    return [value for value, _ in model.loglikelihood(instances("loglikelihood", *pairs))]


SETTINGS = {
    "repetition_penalty": 1.8, "no_repeat_ngram_size": 1,
    "bad_words_ids": [[EMITTED[2]], EMITTED[5:7]], "suppress_tokens": EMITTED[2:4],
    "begin_suppress_tokens": EMITTED[:1], "sequence_bias": [[[EMITTED[1]], -9.0]],
    "forced_eos_token_id": 70, "exponential_decay_length_penalty": [3, 4.0],
}  # fmt: skip
"""Settings of greedy decoding that a task or generation_config may have."""

SPECIAL = {"<|im_end|>": EMITTED[5]}
EARLY = {"eos_token_id": [EMITTED[3], 1]}
CASES = {
    **{
        f"{name} of the {place}": {place: {name: value}}
        for name, value in SETTINGS.items()
        for place in ("task", "model")
    },
    "a special token as stop string": {
        "tokenizer": tokenizer_with(SPECIAL), "task": {"until": ["<|im_end|>"]},
    },
    "the tokenizer's own end of sequence": {
        "tokenizer": tokenizer_with(SPECIAL, eos="<|im_end|>"), "model": {"eos_token_id": 0},
    },
    "an empty stop string and another": {"task": {"until": ["", "\n"]}},
    "a least number of new tokens": {"model": EARLY, "task": {"min_new_tokens": 9}},
    "a least length": {"model": EARLY, "task": {"min_length": 30}},
    "a length that counts the prompt": {"task": {"max_length": 30}, "prompts": PROMPTS[:2]},
    "the model's number of new tokens": {"model": {"max_new_tokens": 5}},
    "rows of one length": {
        "model": {"repetition_penalty": 1.4},
        "prompts": [*([prompt[:9] for prompt in PROMPTS] * 2), *PROMPTS],
    },
}  # fmt: skip
UNCHANGED = {
    "a stop string that never comes": {"task": {"until": ["\0two"]}},
    "settings of sampling": {"task": {"temperature": 0.0, "top_p": 0.3}},
    "a task's setting before the model's": {"model": {"num_beams": 3}, "task": {"num_beams": 1}},
}
"""Cases in which the text is that without settings."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * name.endswith("of the model"))
        for name in [*CASES, *UNCHANGED]
    ],
)
def test_generations_equal_hf(pair, name):
    """Stop strings, ends of sequence, lengths and settings of decoding give the texts of `hf`."""
    case = (CASES | UNCHANGED)[name]
    tokenizer, prompts = case.get("tokenizer", tokenizer_with()), case.get("prompts", PROMPTS)
    hf, broca = pair(tokenizer, **case.get("model", {}))
    texts = generated(hf, prompts, **case.get("task", {}))
    assert generated(broca, prompts, **case.get("task", {})) == texts
    plain = plain_generation(tiny_llama(), tokenizer.encode(prompts[0]), new_tokens=24)
    changed = texts[0] != tokenizer.decode(plain, skip_special_tokens=True)
    assert changed == (name in CASES)


NOT_APPLIED = {
    "num_beams": 2, "guidance_scale": 1.5, "stop_strings": ["a"], "num_return_sequences": 2,
    "encoder_repetition_penalty": 1.2, "max_time": 0.5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "message"),
    [
        *(
            ({"task": {name: value}}, f"cannot be generated with {name}=.*generation_kwargs")
            for name, value in NOT_APPLIED.items()
        ),
        ({"model": {"num_beams": 2}}, "cannot be generated with num_beams=.*generation_config"),
        ({"task": {"num_beam": 2}}, "does not take: num_beam=2"),
        ({"task": {"eos_token_id": 5}}, "does not take: eos_token_id=5"),
        ({"task": {"max_length": 3}}, "a prompt has 13: use `max_gen_toks`"),
        ({"task": {"repetition_penalty": -1}}, "not accepted by transformers: .*strictly positive"),
        ({"task": {"bad_words_ids": 7}}, "not accepted by transformers"),
    ],
)
def test_settings_that_are_not_greedy_or_not_known_are_refused(pair, case, message):
    """Beams and other settings that are not greedy decoding, or are wrong, are one line."""
    _, broca = pair(tokenizer_with(), **case.get("model", {}))
    with pytest.raises(BadInput, match=message) as error:
        generated(broca, PROMPTS[:1], **case.get("task", {}))
    assert "\n" not in str(error.value)


def test_texts_without_tokens_begin_with_the_prefix_token(pair):
    """Whitespace contexts and empty prompts, on which `hf` fails, follow the first token."""
    tokenizer = tokenizer_with()
    _, broca = pair(tokenizer)
    values = scored(broca, ("  ", "word"), ("\n", " word"), ("", "word"))
    for value, text in zip(values, ("  word", "\n word", "word"), strict=True):
        expected, _ = plain_loglikelihood(tiny_llama(), [0], tokenizer.encode(text))
        assert value == pytest.approx(expected, abs=1e-4)
    expected = plain_generation(tiny_llama(), [0], new_tokens=24)
    assert generated(broca, ("",)) == [tokenizer.decode(expected, skip_special_tokens=True)]


def test_odd_boundaries_equal_hf(pair):
    """Partly merged continuations, spaces and texts with and without their first token equal `hf`.

    The tokenizer begins every text with a token, which texts of chat templates have already.
    """
    pairs = [("2 cat", "s are"), ("a ", " b"), ("<bos>one", " two"), ("<bos>", "x")]
    tokenizer = tokenizer_with(merges=MERGES)
    begins = TemplateProcessing("<bos> $A", special_tokens=[("<bos>", 0)])
    tokenizer.backend_tokenizer.post_processor = begins
    hf, broca = pair(tokenizer)
    assert scored(broca, *pairs) == pytest.approx(scored(hf, *pairs), abs=1e-4)
    assert generated(broca, [p for p, _ in pairs]) == generated(hf, [p for p, _ in pairs])


def test_answers_without_tokens_of_their_own_are_refused(pair):
    """An empty answer, or one that merges with its prompt, is one line; `hf` fails on it."""
    _, broca = pair(tokenizer_with(merges=MERGES))
    for prompt, answer in (("2 cat", "s"), ("2 cat", "")):
        with pytest.raises(BadInput, match=f"the answer '{answer}' has no token of its own"):
            scored(broca, (prompt, answer))
    with pytest.raises(BadInput, match="an answer is longer than the 64 tokens"):
        scored(broca, ("2 cat", "x" * 65))
    assert len(scored(broca, ("2 cat", "x" * 64))) == 1


@pytest.mark.parametrize("longest", [16, 48])
def test_max_length_equals_hf(pair, longest):
    """`max_length` cuts prompts and windows as `hf` cuts them."""
    hf, broca = pair(tokenizer_with(), arguments={"max_length": longest})
    pairs = [(prompt * 3, " answer") for prompt in PROMPTS]
    assert scored(broca, *pairs) == pytest.approx(scored(hf, *pairs), abs=1e-4)
    assert generated(broca, max_gen_toks=9) == generated(hf, max_gen_toks=9)
    texts = instances("loglikelihood_rolling", ("a text of many words " * 5,))
    expected = hf.loglikelihood_rolling(texts)
    assert broca.loglikelihood_rolling(texts) == pytest.approx(expected, abs=1e-3)
    assert broca.max_length == hf.max_length == longest


def test_variables_of_the_chat_template_equal_hf(pair):
    """`enable_thinking` and `chat_template_args` reach the template; caches are kept apart."""
    tokenizer = tokenizer_with()
    tokenizer.chat_template = (
        "{{ messages[0].content }}{% if enable_thinking is false %}<none>{% endif %}{{ tone }}"
    )
    arguments = {"enable_thinking": False, "chat_template_args": {"tone": "calm"}}
    hf, broca = pair(tokenizer, arguments=arguments)
    messages = [{"role": "user", "content": "hi"}]
    assert broca.apply_chat_template(messages) == hf.apply_chat_template(messages) == "hi<none>calm"
    assert broca.chat_template(True) == tokenizer.chat_template
    assert broca.chat_template() == ""
    _, plain = pair(tokenizer)
    assert plain.apply_chat_template(messages) == "hi"
    assert plain.tokenizer_name != broca.tokenizer_name
    _, shorter = pair(tokenizer, arguments={"max_length": 32})
    _, other = pair(tokenizer, repetition_penalty=1.4)
    scaled = [BrocaLM("reference-small", ablate="L0H0", scale=s) for s in (1.5, 2, 0)]
    assert len({lm.identity for lm in (plain, shorter, other, *scaled)}) == 6
    assert [lm.get_model_info()["gate"] for lm in (plain, *scaled)] == [1.0, 1.5, 2.0, 0.0]
    with pytest.raises(BadInput, match="enable_thinking=True needs lm-eval's think_end_token"):
        BrocaLM("reference", enable_thinking=True)
