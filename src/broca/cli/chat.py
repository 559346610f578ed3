"""`broca chat`: talk to a model, intact and without some components."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

from broca.cli.commands import PrintOptions, command
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.options import ModelOptions, without

if TYPE_CHECKING:
    from broca.explorer.conversations import Conversation


@command
def chat(
    target: str,
    /,
    *,
    heads: str | None = None,
    scale: float = 0.0,
    side_by_side: bool = False,
    system_prompt: str = "",
    chat_template_kwargs: str | None = None,
    max_new_tokens: int = 200,
    print_options: Annotated[PrintOptions, without("json")],
    model_options: Annotated[ModelOptions, without("components")],
) -> None:
    """Talk to a model, intact and without some components; /help lists the commands.

    Args:
        target: The out folder of a run; with `heads`, a model.
        heads: Components, L0H4+L1M, or published:MODEL/TASK/METHOD.
        scale: Factor of their outputs; 0 ablates.
        side_by_side: Show both answers in columns, when both are there.
        system_prompt: Text before everything else.
        chat_template_kwargs: Variables of the chat template, NAME=VALUE joined by commas or JSON.
        max_new_tokens: Maximum number of tokens of an answer.
    """
    import broca

    screen = _Columns() if side_by_side else _Stream()
    with closing(ProgressDisplay(print_options)) as progress:

        def start(conversation: Conversation) -> None:
            progress.close()
            say(f"{conversation.state()}; /help lists the commands, /quit ends")

        broca.chat(
            target,
            _lines(screen),
            heads=heads,
            scale=scale,
            system_prompt=system_prompt,
            chat_template_kwargs=chat_template_kwargs,
            max_new_tokens=max_new_tokens,
            write=screen.write,
            on_start=start,
            on_progress=progress,
            model_options=model_options,
        )
    screen.end()


def _lines(screen: _Stream | _Columns) -> Iterator[str]:
    """Yields the lines that the user types, until the end of the input."""
    asks = sys.stdin.isatty()
    if asks:
        import readline  # noqa: F401  # arrow keys and history of `input`
    while True:
        screen.end()
        try:
            yield input("> " if asks else "")
        except EOFError:
            return


class _Stream:
    """Prints answers one after the other, piece by piece."""

    def __init__(self) -> None:
        self._voice = ""

    def write(self, voice: str, text: str) -> None:
        if voice != self._voice:
            self.end()
            if voice:
                sys.stdout.write(f"[{voice}] ")
        self._voice = voice
        sys.stdout.write(text if voice or not text else f"{text}\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Ends the line of an answer."""
        if self._voice:
            sys.stdout.write("\n")
        self._voice = ""
        sys.stdout.flush()


class _Columns:
    """Prints both answers in columns of equal width."""

    def __init__(self) -> None:
        self._answers: dict[str, str] = {}

    def write(self, voice: str, text: str) -> None:
        if voice:
            self._answers[voice] = self._answers.get(voice, "") + text
        elif text:
            say(text)

    def end(self) -> None:
        """Prints the answers."""
        if not self._answers:
            return
        from rich.columns import Columns
        from rich.panel import Panel
        from rich.text import Text

        from broca.cli.output import console

        screen = console()
        width = (screen.width - 2) // len(self._answers)
        screen.print(
            Columns(
                [
                    Panel(Text(answer.strip()), title=voice, width=width)
                    for voice, answer in self._answers.items()
                ]
            )
        )
        self._answers = {}
