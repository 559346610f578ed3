"""`broca.chat` answers every line as the intact and as the ablated model; commands change it."""

import copy
from dataclasses import replace

import pytest
from independent import plain_generation
from results.samples import make_result
from tiny import CHAT, tiny_llama, tiny_tokenizer

import broca
from broca.errors import BadInput
from broca.options import LocalizeOptions
from broca.results.base import ModelInfo
from broca.runs.folder import RunFolder

TEMPLATE = CHAT + "{% if enable_thinking is false %}<none>{% endif %}"


@pytest.fixture
def model():
    """A model of random weights that never generates an end of sequence."""
    plain = tiny_llama(context=512)
    plain.generation_config.eos_token_id = None
    return broca.GatedModel.wrap(plain, tiny_tokenizer(), name="tiny")


def talk(model, *lines, heads="L0H1+L1H2", **options):
    """Returns the exchanges of a chat, and what is written by voice, the opening left out."""
    written = {"": [], "intact": [], "ablated": []}
    exchanges = broca.chat(
        model, lines, heads=heads, write=lambda voice, text: written[voice].append(text),
        **{"max_new_tokens": 6, **options},
    )  # fmt: skip
    return exchanges, {**written, "": written[""][1:]}


def plain_answer(model, text, new=6):
    """Returns the greedy continuation of transformers."""
    tokens = plain_generation(model.model, model.tokenizer.encode(text), new_tokens=new)
    return model.tokenizer.decode(tokens, skip_special_tokens=True)


def test_the_model_of_a_run_is_loaded_as_the_run_was(tmp_path):
    """The recorded options of loading count, such as the number format, and the weights."""
    recorded = LocalizeOptions.of({"model": "planted", "task": "addition", "dtype": "bfloat16"})
    RunFolder.claim(tmp_path, verb="localize", options=recorded, command=["broca"])
    make_result(model=ModelInfo("planted", "")).save(tmp_path, replace=True)
    stages = []
    broca.chat(tmp_path, on_progress=lambda stage, _: stages.append(stage))
    assert stages[-1].endswith("bfloat16")
    make_result(model=ModelInfo("planted", "abc")).save(tmp_path, replace=True)
    with pytest.raises(BadInput, match="'planted' are not those of the run"):
        broca.chat(tmp_path)
    found = replace(make_result().verification, model=ModelInfo("planted", ""), heads=("L0H1",))
    found.save(tmp_path / "verified")
    (exchange,) = broca.chat(tmp_path / "verified", ["sort b a ="], max_new_tokens=2)
    assert exchange.components == ("L0H1",)


@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_both_voices_answer_as_transformers_does(model, scale):
    """Both voices write transformers' greedy answers in pieces, and no hook stays on the model."""
    (exchange,), written = talk(model, "Hello", scale=scale)
    answers = {"intact": plain_answer(model, "Hello")}
    with model.ablated("L0H1+L1H2", scale):
        answers["ablated"] = plain_answer(model, "Hello")
    assert exchange.answers == answers
    assert answers["intact"] != answers["ablated"]
    assert all("".join(written[voice]) == answers[voice] for voice in answers)
    assert (exchange.components, exchange.scale) == (("L0H1", "L1H2"), scale)
    assert not any(module._forward_pre_hooks for module in model.model.modules())


def test_an_answer_is_one_text_that_ends_as_the_model_wants(model):
    """The number of texts of a generation_config does not hold; its stop strings do."""
    answer = plain_answer(model, "Hello")
    settings = vars(model.model.generation_config)
    settings.update(num_return_sequences=2, stop_strings=[answer[1]])
    stopped = talk(model, "Hello")[0][0].answers["intact"]
    assert answer.startswith(stopped)
    assert stopped[-1] == answer[1]
    assert len(stopped) < len(answer)


def test_each_voice_remembers_what_it_said_itself(model):
    """Each voice's next prompt holds its previous answer; `/reset` forgets all."""
    (first, second), _ = talk(model, "Hello", "and then")
    for voice, off in (("intact", ""), ("ablated", "L0H1+L1H2")):
        with model.ablated(off):
            text = f"Hello{first.answers[voice]}\nand then"
            assert second.answers[voice] == plain_answer(model, text)
    (again,), _ = talk(model, "Hello", "/reset", "Hello")
    assert again == first


def test_a_chat_template_gets_messages_and_variables(model):
    """A chat template gets the system prompt, the messages in order, and its variables."""
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.chat_template = TEMPLATE
    chatting = broca.GatedModel.wrap(model.model, tokenizer, name="chat")
    (first, second), _ = talk(chatting, "Hi", "Yes", system_prompt="be brief")
    text = "<system> be brief\n<user> Hi\n<assistant>"
    assert first.answers["intact"] == plain_answer(model, text)
    text += f" {first.answers['intact']}\n<user> Yes\n<assistant>"
    assert second.answers["intact"] == plain_answer(model, text)
    (exchange,), _ = talk(chatting, "Hi", chat_template_kwargs="enable_thinking=false")
    assert exchange.answers["intact"] == plain_answer(model, "<user> Hi\n<assistant><none>")
    with pytest.raises(BadInput, match="tokenizer has no chat template"):
        talk(model, "Hi", chat_template_kwargs="enable_thinking=false")


def test_commands_change_what_is_ablated(model):
    """Each command writes the new state; one that cannot be followed changes nothing."""
    steps = {
        "/off L1H0 L1M": "L0H1+L1H2+L1H0+L1M ablated",
        "/scale 0.5": "L0H1+L1H2+L1H0+L1M scaled by 0.5", "/on L1M,L1H0": "L0H1+L1H2 scaled by 0.5",
        "/on": "nothing is ablated", "/off": "L0H1+L1H2 scaled by 0.5",
        "/of L0H1": "/of is unknown", "/off L9H9": "no component 'L9H9'",
        "/scale much": "/scale needs a number, not 'much'", "/reset": "L0H1+L1H2 scaled by 0.5",
    }  # fmt: skip
    (exchange,), written = talk(model, *steps, "/on", "Hello", "/quit", "never")
    assert all(words in line for words, line in zip(steps.values(), written[""], strict=False))
    assert exchange.answers["intact"] == exchange.answers["ablated"]
    assert "/off NAMES" in talk(model, "/help")[1][""][0]


def test_what_does_not_fit_is_forgotten_or_refused(model):
    """The oldest exchanges are forgotten; lines that are too long or no text are refused."""
    text, refused = "abc " * 80, ["abc " * 300, "\udcff"]
    exchanges, written = talk(model, text, text, *refused, "/quit now", "b", system_prompt="Hi")
    assert exchanges[1].answers["intact"] == plain_answer(model, f"Hi\n{text}")
    assert len(exchanges) == 2
    too_long, no_text = written[""]
    assert "1,203 tokens with what stands before it, and the model has room for 506" in too_long
    assert "not UTF-8" in no_text


def test_ctrl_c_ends_the_answer_and_not_the_conversation(model, monkeypatch):
    """Ctrl+C ends the answer; its text so far is remembered and the conversation goes on."""
    generate = model.model.generate

    def interrupted(*, streamer, **_):
        monkeypatch.setattr(model.model, "generate", generate)
        streamer.on_finalized_text("so far")
        raise KeyboardInterrupt

    monkeypatch.setattr(model.model, "generate", interrupted)
    exchanges, _ = talk(model, "Hello", "Hello")
    assert exchanges[0].answers["intact"] == "so far"
    assert exchanges[1].answers["intact"] == plain_answer(model, "Helloso far\nHello")


@pytest.mark.parametrize(
    ("tokenizer", "options", "message"),
    [
        (True, {}, "no heads are named"),
        (True, {"heads": "L9H9"}, "no component 'L9H9'"),
        (False, {"heads": "L0H1"}, "has no tokenizer"),
        (True, {"heads": "L0H1", "max_new_tokens": 0}, "`max_new_tokens`"),
        (True, {"heads": "L0H1", "max_new_tokens": 512}, "512 leaves no room for a prompt"),
    ],
)
def test_what_cannot_talk_is_refused(model, tokenizer, options, message):
    """No components, an unknown one, no tokenizer and no tokens are refused before any line."""
    lines = iter(["never"])
    if not tokenizer:
        model = broca.GatedModel.wrap(tiny_llama(), None, name="mute")
    with pytest.raises(BadInput, match=message):
        broca.chat(model, lines, **options)
    assert next(lines) == "never"
