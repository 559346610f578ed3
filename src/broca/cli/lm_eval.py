"""`broca lm-eval`: lm-eval's own command line, with broca among its models."""

from __future__ import annotations

import sys

import typer

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Everything after the verb is lm-eval's, `--help` too."""


def lm_eval(context: typer.Context) -> None:
    """Hand all arguments to lm-eval, which knows the model broca (run --model broca)."""
    from lm_eval.__main__ import cli_evaluate

    import broca.integrations.lm_eval  # noqa: F401  # registers the model
    from broca.tasks.code import code_tasks

    before = sys.argv
    sys.argv = ["lm-eval", *context.args]
    try:
        # with lm-eval's own permission, what models write is executed in broca's sandbox
        with code_tasks(allowed="--confirm_run_unsafe_code" in context.args):
            cli_evaluate()
    finally:
        sys.argv = before
