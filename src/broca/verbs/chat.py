"""`chat`: a conversation with a model, intact and without some components."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broca.errors import BadInput
from broca.explorer.conversations import Conversation, Exchange
from broca.options import ChatOptions, TaskOptions
from broca.published import is_published, published_heads
from broca.runs.progress import Report, Stages
from broca.runs.session import model_and_heads, model_in_use

SELECTION = "selection"
"""The name of the set that a conversation begins with."""


def chat(
    options: ChatOptions,
    lines: Iterable[str],
    *,
    write: Callable[[str, str], None] = lambda voice, text: None,
    on_start: Callable[[Conversation], None] = lambda conversation: None,
    on_progress: Report | None = None,
) -> tuple[Exchange, ...]:
    """Lets a model answer line by line, intact and with some components ablated or scaled.

    Lines that begin with a slash are commands; `/help` lists them. Each voice has its own history.
    An invalid command gets an answer and changes nothing.

    Args:
        options: The model, its components and how it answers.
        lines: What the user says, line by line.
        write: Receives pieces of answers as they are generated, each with its voice, `intact` or
            `ablated`; the conversation's own lines have an empty voice.
        on_start: Receives the conversation before the first line is read.
        on_progress: Receives the current stage before that.

    Returns:
        The prompts and their answers.

    Raises:
        BrocaError: The model or a component does not exist.
    """
    template = TaskOptions(chat_template=True, chat_template_kwargs=options.chat_template_kwargs)
    model, named = model_and_heads(options.target, options.heads)
    with model_in_use(model, options.model_options, Stages(on_progress)) as gated:
        if is_published(named):
            assert isinstance(named, str)
            named = published_heads(
                named, layers=gated.structure.layers, heads=gated.structure.projections[0].heads
            )
        parts = gated.gated_parts(named, options.scale)
        names = tuple(component.name for component in parts.named)
        conversation = Conversation(
            gated, names, options.scale, {SELECTION: names}, options.system_prompt,
            options.max_new_tokens,
            template_settings=template.template_settings,
        )  # fmt: skip
        on_start(conversation)
        for line in lines:
            try:
                conversation.hear(line, write)
            except BadInput as error:
                write("", str(error))
            if conversation.ended:
                break
        return tuple(conversation.exchanges)
