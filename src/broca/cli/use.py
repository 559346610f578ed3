"""Commands that look at results and use them, and the paper's tables and figures."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import App, Parameter

from broca.cli.keeping import measuring
from broca.cli.output import print_result, print_text
from broca.cli.progress import PrintOptions, ProgressDisplay, ProgressPrint
from broca.cli.wording import printable, say, tell
from broca.known_paths import place_of
from broca.options import ChatOptions, ExploreOptions, ExportOptions, ReproduceOptions
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
        page = broca.explore(settings=options, on_progress=progress)
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
    from broca.runs.folder import options_of_run

    with ExitStack() as opened:
        if options.check and options.heads is None and place_of(options.target).is_dir():
            options_of_run(options.target, options.run_options)  # refused without its permissions
            _, within = opened.enter_context(measuring(options.target, options, prints))
        else:
            within = {"on_progress": opened.enter_context(closing(ProgressDisplay(prints)))}
        done = broca.export(settings=options, **within)
    if prints.json:
        print_result(done)
    else:
        say(*done.summary(), f"written to {options.to}; its README.md explains how to load it")


def report(
    run: str,
    /,
    *,
    figures: str | None = None,
    format: Literal["pdf", "svg", "png"] | None = None,
    width: Literal["page", "column"] | None = None,
    out: str | None = None,
) -> None:
    """Write the page of a result again, or its figures for a paper.

    Args:
        run: The out folder of a command, or a file that it wrote.
        figures: Folder for the figures; without it the page is written.
        format: pdf (default), svg or png, with embedded fonts.
        width: column or page (default) of a two-column paper.
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


def chat(options: ChatOptions, *, prints: ProgressPrint = ProgressPrint()) -> None:
    """Talk to a model, intact and without some components; /help lists the commands."""
    import broca

    speaker = ""
    asks = sys.stdin is not None and sys.stdin.isatty()
    if asks:
        import readline  # noqa: F401  # arrow keys and history of `input`

    def turn(voice: str) -> None:
        nonlocal speaker
        if voice != speaker:
            sys.stdout.write(("\n" if speaker else "") + (f"[{voice}] " if voice else ""))
        speaker = voice

    def lines() -> Iterator[str]:
        with suppress(EOFError, RuntimeError):  # the second one is that stdin is closed
            while True:
                turn("")
                sys.stdout.flush()
                yield input("> " if asks else "")

    with closing(ProgressDisplay(prints)) as progress:

        def write(voice: str, text: str) -> None:
            progress.close()
            turn(voice)
            sys.stdout.write(printable(text) if voice else f"{text}\n")
            sys.stdout.flush()

        broca.chat(settings=options, lines=lines(), write=write, on_progress=progress)


def reproduce(
    options: ReproduceOptions, *, out: str = "broca-paper", prints: PrintOptions = PrintOptions()
) -> None:
    """Repeat a table or figure of the paper on other models, beside the published figures.

    Args:
        out: Folder for JSON, CSV, the page, and the measured rows.
    """
    with measuring(out, options, prints) as (folder, within):
        import broca
        from broca.results.files import encode
        from broca.studies.pages import as_csv, write  # imports torch

        reproductions = broca.reproduce(settings=options, **within)
    before = {path: path.read_bytes() for path in folder.glob("*.json")}
    paths = write(reproductions, folder)
    replaced = [path for path in paths if before.get(path, b"") not in (b"", path.read_bytes())]
    tell(*(f"replaced: {path}, of other options or versions" for path in replaced))
    if prints.json:
        texts = ",\n".join(encode(reproduction).rstrip() for reproduction in reproductions)
        print_text(f"[{texts}]\n" if len(reproductions) > 1 else f"{texts}\n")
    elif len(reproductions) == 1:
        print_text(as_csv(reproductions[0]))
    notes = dict.fromkeys(note for table in reproductions for note in table.notes)
    tell(*(f"note: {note}" for note in notes), *(f"written: {path}" for path in paths))


lm_eval_app = App(name="lm-eval", help_flags=(), version_flags=(), end_of_options_delimiter="")
"""Everything after the command is passed to lm-eval, `--help` too."""


@lm_eval_app.default
def lm_eval(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Run lm-eval's own command line with broca among its models (run --model broca)."""
    from unittest.mock import patch  # it imports asyncio, which takes a while

    from lm_eval.__main__ import cli_evaluate

    import broca.integrations.lm_eval  # noqa: F401  # registers the model
    from broca.tasks.code import code_tasks

    # if lm-eval permits it, programs that models write run in broca's sandbox
    enclosed = code_tasks("--confirm_run_unsafe_code" in words)
    with patch.object(sys, "argv", ["lm-eval", *words]), enclosed:
        cli_evaluate()


lm_eval.flags = {"model_args": "--model_args"}  # type: ignore[attr-defined]
