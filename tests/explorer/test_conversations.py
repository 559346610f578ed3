"""Conversations answer as the intact and as the ablated model, and commands change the ablation."""

import copy

import pytest
import torch

from broca.errors import BadInput, UnknownName
from broca.explorer.conversations import ABLATED, COMMANDS, INTACT, Conversation
from broca.models import GatedModel
from broca.testing import tiny_llama, tiny_tokenizer

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def model():
    """A model of random weights that never generates an end of sequence."""
    plain = tiny_llama(context=512)
    plain.generation_config.eos_token_id = None
    return GatedModel.wrap(plain, tiny_tokenizer(), name="tiny")


def hear(conversation, *lines):
    """Sends lines to a conversation and returns what it writes, by voice."""
    pieces_of = {"": [], INTACT: [], ABLATED: []}
    for line in lines:
        conversation.hear(line, lambda voice, text: pieces_of[voice].append(text))
    return {voice: "".join(pieces) for voice, pieces in pieces_of.items()}


def plain_answer(model, text, new=6):
    """Returns the greedy continuation of transformers."""
    tokens = torch.tensor([model.tokenizer.encode(text)])
    with torch.no_grad():
        output = model.model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=new, do_sample=False,
            pad_token_id=1,
        )  # fmt: skip
    return model.tokenizer.decode(output[0, tokens.shape[1] :], skip_special_tokens=True)


def test_both_voices_answer_as_transformers_does(model):
    """Both voices write transformers' greedy answers, and no hook stays on the model."""
    conversation = Conversation(model, ("L0H1", "L1H2"), max_new_tokens=6)
    texts = hear(conversation, "Hello")
    assert texts[INTACT] == plain_answer(model, "Hello")
    with model.ablated("L0H1+L1H2"):
        assert texts[ABLATED] == plain_answer(model, "Hello") != texts[INTACT]
    (exchange,) = conversation.exchanges
    assert exchange.answers == {INTACT: texts[INTACT], ABLATED: texts[ABLATED]}
    assert not any(module._forward_pre_hooks for module in model.model.modules())


def test_an_answer_is_one_text_that_ends_as_the_model_wants(model):
    """The number of texts of a generation_config does not hold; its stop strings do."""
    answer = plain_answer(model, "Hello")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model.model.generation_config, "num_return_sequences", 2)
        patched.setattr(model.model.generation_config, "stop_strings", [answer[1]])
        stopped = hear(Conversation(model, ("L0H1",), max_new_tokens=6), "Hello")[INTACT]
    assert answer.startswith(stopped)
    assert stopped[-1] == answer[1]
    assert len(stopped) < len(answer)


def test_each_voice_remembers_what_it_said_itself(model):
    """Each voice's next prompt holds its previous answer; without a template texts are joined."""
    conversation = Conversation(model, ("L0H1", "L1H2"), max_new_tokens=6)
    first = hear(conversation, "Hello")
    second = hear(conversation, "and then")
    assert second[INTACT] == plain_answer(model, f"Hello{first[INTACT]}\nand then")
    with model.ablated("L0H1+L1H2"):
        assert second[ABLATED] == plain_answer(model, f"Hello{first[ABLATED]}\nand then")
    hear(conversation, "/reset")
    assert hear(conversation, "Hello") == first


def test_a_chat_template_gets_messages(model):
    """A chat template gets the system prompt first, then the messages in their order."""
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.chat_template = TEMPLATE
    chatting = GatedModel.wrap(model.model, tokenizer, name="chat")
    conversation = Conversation(chatting, ("L0H1",), system_prompt="be brief", max_new_tokens=6)
    conversation.voices = (INTACT,)
    first = hear(conversation, "Hi")[INTACT]
    text = "<system> be brief\n<user> Hi\n<assistant>"
    assert first == plain_answer(model, text)
    text = f"<system> be brief\n<user> Hi\n<assistant> {first}\n<user> Yes\n<assistant>"
    assert hear(conversation, "Yes")[INTACT] == plain_answer(model, text)


def test_variables_of_the_template_reach_it(model):
    """Variables such as `enable_thinking` change the prompt."""
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.chat_template = TEMPLATE + "{% if enable_thinking is false %}<none>{% endif %}"
    chatting = GatedModel.wrap(model.model, tokenizer, name="chat")
    conversation = Conversation(
        chatting, (), max_new_tokens=6, template_settings={"enable_thinking": False}
    )
    text = "<user> Hi\n<assistant><none>"
    assert hear(conversation, "Hi")[INTACT] == plain_answer(model, text)


def test_commands_change_what_is_ablated(model):
    """Each command changes the ablation or the voices, and writes the new state."""
    conversation = Conversation(
        model, ("L0H1",), sets={"selection": ("L0H1",), "other": ("L1H0", "L1H1")},
        max_new_tokens=4,
    )  # fmt: skip
    steps = [
        ("/off L1H2 L1M", "L0H1+L1H2+L1M ablated"),
        ("/scale 0.5", "L0H1+L1H2+L1M scaled by 0.5"),
        ("/on L1M", "L0H1+L1H2 scaled by 0.5"),
        ("/use other", "L1H0+L1H1 scaled by 0.5"),
        ("/sets", "selection: L0H1\nother: L1H0+L1H1"),
        ("/on", "nothing is ablated"),
    ]
    for line, answer in steps:
        assert hear(conversation, line)[""] == answer
    texts = hear(conversation, "Hello")
    assert texts[INTACT] == texts[ABLATED]
    assert hear(conversation, "/one", "Hello")[INTACT] == ""
    assert "/off NAMES" in hear(conversation, "/help")[""]
    assert len(hear(conversation, "/help")[""].splitlines()) == len(COMMANDS)
    hear(conversation, "/quit")
    assert conversation.ended


def test_scales_are_those_of_ablated(model):
    """A factor of 0.5 gives the answer of `ablated` with that scale."""
    conversation = Conversation(model, ("L0H1", "L1H2"), 0.5, max_new_tokens=6)
    with model.ablated("L0H1+L1H2", 0.5):
        reference = plain_answer(model, "Hello")
    assert hear(conversation, "Hello")[ABLATED] == reference


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/of L0H1", "/of is unknown"),
        ("/off", "/off needs names"),
        ("/off L9H9", "no component 'L9H9'"),
        ("/scale much", "/scale needs a number, not 'much'"),
        ("/use them", "no set is called 'them'"),
    ],
)
def test_a_command_that_cannot_be_followed_changes_nothing(model, line, message):
    """A command that cannot be followed is refused in one line and changes nothing."""
    conversation = Conversation(model, ("L0H1",))
    with pytest.raises(BadInput, match=message):
        hear(conversation, line)
    assert conversation.state() == "L0H1 ablated"


def test_long_conversations_are_cut_from_the_left(model):
    """A prompt that leaves no room for an answer loses its first tokens."""
    conversation = Conversation(model, ("L0H1",), max_new_tokens=6)
    conversation.voices = (INTACT,)
    text = "abc " * 300
    end = model.tokenizer.decode(model.tokenizer.encode(text)[-(512 - 6) :])
    assert hear(conversation, text)[INTACT] == plain_answer(model, end)


def test_ctrl_c_ends_the_answer_and_not_the_conversation(model, monkeypatch):
    """Ctrl+C ends the answer; its text so far is remembered and the conversation goes on."""
    conversation = Conversation(model, (), max_new_tokens=6)
    conversation.voices = (INTACT,)

    def interrupted(streamer, **_):
        streamer.on_finalized_text("so far")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(model.model, "generate", interrupted)
        assert hear(conversation, "Hello")[INTACT] == "so far"
    assert conversation.exchanges[0].answers == {INTACT: "so far"}
    assert hear(conversation, "Hello")[INTACT]


def test_what_cannot_talk_is_refused(model):
    """A model without tokenizer, an unknown component and a limit of 0 tokens are refused."""
    with pytest.raises(BadInput, match="has no tokenizer"):
        Conversation(GatedModel.wrap(tiny_llama(), None, name="mute"))
    with pytest.raises(UnknownName, match="no component 'L9H9'"):
        Conversation(model, ("L9H9",))
    with pytest.raises(BadInput, match="`max_new_tokens` must be at least 1"):
        Conversation(model, max_new_tokens=0)
