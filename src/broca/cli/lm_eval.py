"""`broca lm-eval`: lm-eval's own command line, with broca among its models."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

app = App(name="lm-eval", help_flags=(), version_flags=(), end_of_options_delimiter="")
"""Everything after the command is passed to lm-eval, `--help` too."""


@app.default
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
