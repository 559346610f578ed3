"""Entry point: the verbs, and how every error becomes one line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import typer

from broca.cli.atlas import atlas
from broca.cli.bench import app as bench
from broca.cli.journal import journal
from broca.cli.lm_eval import SETTINGS, lm_eval
from broca.cli.localize import localize
from broca.cli.neurons import app as neurons
from broca.cli.plan import plan
from broca.cli.published import published
from broca.cli.refit import refit
from broca.cli.reproduce import reproduce
from broca.cli.rerun import rerun
from broca.cli.scan import scan
from broca.cli.stress import stress
from broca.cli.tasks import tasks
from broca.cli.verify import verify
from broca.cli.wording import in_flags
from broca.errors import BrocaError
from broca.executors.process import tune_process

app = typer.Typer(
    name="broca",
    help="Find which attention heads a language model needs for a capability, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(localize)
app.command()(scan)
app.command()(tasks)
app.command()(journal)
app.command()(rerun)
app.command()(refit)
app.command()(plan)
app.command("lm-eval", context_settings=SETTINGS)(lm_eval)
app.command()(verify)
app.add_typer(neurons)
app.command()(published)
app.command()(stress)
app.command()(reproduce)
app.command()(atlas)
app.add_typer(bench)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"broca {version('broca')}")
        raise typer.Exit


@app.callback()
def _common(
    offline: bool = typer.Option(
        False, "--offline", help="Before the verb: make no network call at all."
    ),
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Options of broca itself."""
    if offline:
        from broca.models.hub import go_offline

        go_offline()


def _flags(command: Any) -> dict[str, str]:
    """The flags of a command and of those below it, by parameter."""
    flags = {
        parameter.name: parameter.opts[0]
        for parameter in command.params
        if parameter.opts[0].startswith("--")
    }
    for inner in getattr(command, "commands", {}).values():
        flags |= _flags(inner)
    return flags


def main() -> NoReturn:
    """Runs the command line; exit codes: 0 done, 2 bad input, 130 interrupted."""
    tune_process()
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        app(standalone_mode=True)
    except BrocaError as error:
        message = in_flags(" ".join(str(error).splitlines()), _flags(typer.main.get_command(app)))
        typer.echo(f"broca: {message}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("broca: interrupted", err=True)
        sys.exit(130)
    sys.exit(0)
