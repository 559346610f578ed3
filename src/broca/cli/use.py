"""Commands that look at results and use them."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from broca.cli.keeping import measuring
from broca.cli.output import print_result
from broca.cli.progress import PrintOptions, ProgressDisplay, ProgressPrint
from broca.cli.wording import say
from broca.options import ChatOptions, ExploreOptions, ExportOptions
from broca.options.base import ON


def explore(
    options: ExploreOptions, *, open: bool = False, prints: ProgressPrint = ProgressPrint()
) -> None:
    """Serve a live page: switch components off, ask both models, score and verify.

    Args:
        open: Open the page in the browser.
    """
    with closing(ProgressDisplay(prints)) as progress:
        import broca
        from broca.explorer.server import LOCAL  # imports torch, after the first line is shown

        if options.token is None and options.host not in LOCAL and not options.public:
            options = replace(options, token=secrets.token_urlsafe(16))
        run_options = replace(options.run_options, on_progress=progress)
        page = broca.explore(settings=replace(options, run_options=run_options))
    with page:
        say(f"live page: {page.url}", "Ctrl+C ends it.")
        sys.stdout.flush()
        if open:
            import webbrowser

            webbrowser.open(page.url)
        with suppress(KeyboardInterrupt):
            page.wait()


def export(options: ExportOptions, *, prints: PrintOptions = PrintOptions()) -> None:
    """Export a model without some components, and check the export with other libraries."""
    import broca

    with ExitStack() as opened:
        if options.check and options.heads is None and Path(options.target).expanduser().is_dir():
            _, options, _ = opened.enter_context(measuring(options.target, options, prints))
        else:
            progress = opened.enter_context(closing(ProgressDisplay(prints)))
            run_options = replace(options.run_options, on_progress=progress)
            options = replace(options, run_options=run_options)
        done = broca.export(settings=options)
    if prints.json:
        print_result(done)
    else:
        say(*done.summary(), f"written to {options.to}; its README.md explains how to load it")


def report(
    run: str,
    /,
    *,
    figures: str | None = None,
    format: Literal["pdf", "svg", "png"] = "pdf",
    width: Literal["page", "column"] = "page",
    out: str | None = None,
) -> None:
    """Write the page of a result again, or its figures for a paper.

    Args:
        run: The out folder of a command, or a file that it wrote.
        figures: Folder for the figures; without it the page is written.
        format: pdf, svg or png, with embedded fonts.
        width: column or page of a two-column paper.
        out: Folder for the page; default: the result's.
    """
    import broca

    written = broca.report(run, figures=figures, format=format, width=width, out=out)
    say(*(str(path) for path in written))


def view(*folders: str, out: str = ".", open: Annotated[bool, ON] = True) -> None:
    """Write an index of all results in FOLDERS, and open it in the browser.

    Args:
        folders: Folders to search with their subfolders; default: the current folder.
        out: Folder for broca-index.html.
        open: Open it if the output is a terminal.
    """
    import broca

    path = broca.view(folders or ".", out=out)
    say(f"index: {path}")
    if open and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(path.absolute().as_uri())


def chat(
    options: ChatOptions, *, side_by_side: bool = False, prints: ProgressPrint = ProgressPrint()
) -> None:
    """Talk to a model, intact and without some components; /help lists the commands.

    Args:
        side_by_side: Show both answers in columns, when both are there.
    """
    import broca

    screen = _Screen(side_by_side)
    with closing(ProgressDisplay(prints)) as progress:

        def write(voice: str, text: str) -> None:
            progress.close()
            screen.write(voice, text)

        lines = _lines(screen)
        broca.chat(settings=replace(options, lines=lines, write=write, on_progress=progress))
    screen.end()


def _lines(screen: _Screen) -> Iterator[str]:
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


class _Screen:
    """Prints answers one after the other, piece by piece, or whole in columns of equal width."""

    def __init__(self, side_by_side: bool) -> None:
        self._columns = side_by_side
        self._answers: dict[str, str] = {}

    def write(self, voice: str, text: str) -> None:
        if not voice:
            self.end()
            say(*text.splitlines())
            return
        if not self._columns:
            if voice not in self._answers:
                self.end()
                sys.stdout.write(f"[{voice}] ")
            sys.stdout.write(text)
            sys.stdout.flush()
        self._answers[voice] = self._answers.get(voice, "") + text

    def end(self) -> None:
        """Ends the answers to a line."""
        if self._answers and not self._columns:
            sys.stdout.write("\n")
        elif self._answers:
            from rich.columns import Columns
            from rich.panel import Panel
            from rich.text import Text

            from broca.cli.output import console

            screen = console()
            width = (screen.width - 2) // len(self._answers)
            panels = [
                Panel(Text(answer.strip()), title=voice, width=width)
                for voice, answer in self._answers.items()
            ]
            screen.print(Columns(panels))
        sys.stdout.flush()
        self._answers = {}


lm_eval_app = App(name="lm-eval", help_flags=(), version_flags=(), end_of_options_delimiter="")
"""Everything after the command is passed to lm-eval, `--help` too."""


@lm_eval_app.default
def lm_eval(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Run lm-eval's own command line with broca among its models (run --model broca)."""
    from lm_eval.__main__ import cli_evaluate

    import broca.integrations.lm_eval  # noqa: F401  # registers the model
    from broca.tasks.code import code_tasks

    before = sys.argv
    sys.argv = ["lm-eval", *words]
    try:
        # if lm-eval permits it, programs that models write run in broca's sandbox
        with code_tasks("bubblewrap" if "--confirm_run_unsafe_code" in words else None):
            cli_evaluate()
    finally:
        sys.argv = before


lm_eval.flags = {"model_args": "--model_args"}  # type: ignore[attr-defined]
