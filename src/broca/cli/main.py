"""Entry point: runs a command; every error becomes one line and an exit code."""

import errno
import os
import sys
from importlib.metadata import version
from typing import NoReturn

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from broca.cli import neurons
from broca.cli.again import journal, refit, rerun
from broca.cli.before import doctor, plan, published, scan, tasks
from broca.cli.commands import flags_of, make_app
from broca.cli.find import atlas, compare, localize, replicate, stress, verify
from broca.cli.output import keep_stdout_for_results, print_text
from broca.cli.start import show_next_steps
from broca.cli.use import chat, explore, export, lm_eval_app, report, reproduce, view
from broca.cli.wording import in_flags, tell
from broca.errors import EXIT_CODES, BadInput, BrocaError, NothingToLocalize, nearest
from broca.executors.process import tune_process
from broca.known_paths import named_in
from broca.options import OFFLINE, leaf_values

app = make_app(
    "broca",
    "Find which attention heads a language model needs for a capability, and verify it.\n\n"
    "`broca` without a command shows the first steps. `broca --offline COMMAND` makes no network "
    "call at all.",
    {
        "Find and prove": (localize, verify, replicate, stress, atlas, compare, neurons.app),
        "Before a run": (doctor, tasks, scan, plan, published),
        "Look at results and use them": (explore, chat, report, view, export, lm_eval_app),
        "Use measured rows again": (journal, rerun, refit),
        "Studies": (reproduce,),
    },
)
app.help_epilogue = "Exit codes: " + "; ".join(
    f"{code} {meaning}" for code, meaning in EXIT_CODES.items()
)
app.version = lambda: f"broca {version('broca')}"
app.register_install_completion_command(add_to_startup=False)


_HELP = {"--help", "-h"}


def main() -> NoReturn:
    """Runs the command line and ends the process with one of `EXIT_CODES`."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # it is closed when the process ends
    if sys.stdout is None:
        tell("broca: stdout is closed: let it go to a file, or to /dev/null")
        sys.exit(1)
    tune_process()
    words = sys.argv[1:]
    keep_stdout_for_results(json="--json" in words)
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if words[:1] == ["--offline"]:
        os.environ.update(OFFLINE)
        if "broca.models" in sys.modules:  # the hub libraries read the environment once
            from broca.models.checkpoints import go_offline

            go_offline()
        words = words[1:]
    flags: dict[str, str] = {}
    try:
        " ".join(words).encode()  # before anything is written
        flags.update(_require_command(words))
        run, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        given = [*bound.args, *bound.kwargs.values()]
        named = (value for each in given for _, value in leaf_values(each))  # as the user gave them
        with named_in(named):
            run(*bound.args, **bound.kwargs)
    except SystemExit:  # of lm-eval, or a signal
        print_text("")
        raise
    except CycloptsError as error:
        tell(f"broca: {_usage(error)}")
        sys.exit(2)
    except BrocaError as error:
        # the lines of this one are examples; those of others come from libraries
        text = str(error)
        if not isinstance(error, NothingToLocalize):
            text = " ".join(text.splitlines())
        tell(f"broca: {in_flags(text, flags)}")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        file = f" of '{error.filename}'" if error.filename else ""
        tell(f"broca: no space is left on the disk{file}: free some, and give the command again")
        sys.exit(2)
    except UnicodeEncodeError as error:
        if error.reason != "surrogates not allowed":
            raise
        name = error.object[max(0, error.start - 20) : error.end]
        tell(f"broca: a name is not UTF-8 ({name!r}), which no result can hold: rename it")
        sys.exit(2)
    except KeyboardInterrupt:
        tell("broca: interrupted")
        sys.exit(130)
    print_text("")
    sys.exit(0)


def _require_command(words: list[str]) -> dict[str, str]:
    """Refuses words that name no command; without words, it shows the next steps.

    Returns:
        The flags of the command by the names of options.

    Raises:
        BadInput: No command has this name.
    """
    chain, apps, unused = app.parse_commands([word for word in words if word not in _HELP])
    menu = apps[-1]
    if menu.default_command is not None:
        return flags_of(menu.default_command)
    names = [name for name in menu if not name.startswith("-")]
    if unused and not unused[0].startswith("-"):
        raise BadInput(f"command '{unused[0]}' is unknown{nearest(unused[0], names)}")
    if not words:
        show_next_steps()
        sys.exit(0)
    if not unused and not _HELP & set(words):
        from rich.console import Console

        app.help_print(list(chain), console=Console(stderr=True))
        sys.exit(2)
    return {}


def _usage(error: CycloptsError) -> str:
    """Describes the error in the words of a command, in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        _, separator, hint = text.partition(" Did you mean ")
        has_flag = error.keyword or any(token.keyword for token in error.argument.tokens)
        name = error.argument.name
        name = name if error.argument.index is None else name.lstrip("-").upper()
        text = f"{name} {'needs a value' if has_flag else 'is missing'}"
        text += f": did you mean {hint}" if separator else ""
    elif isinstance(error, UnusedCliTokensError):
        text = f"nothing takes {' '.join(error.unused_tokens or ())}"
    command = " ".join(("broca", *(error.command_chain or ())))
    return f"{text.rstrip('.')}; `{command} --help` lists the options"
