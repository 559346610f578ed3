"""Functions that run the command line as a user does."""

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from broca.cli import main
from broca.cli.main import app

SMALL = (
    "localize", "reference-small", "--task", "sorting", "--others", "capitals,brackets",
    "--rows", 600, "--items", 12, "--limit", 40,
)  # fmt: skip
"""A small run of `broca localize`."""


def broca(*arguments):
    """Runs the command line in this process, which saves the imports of a new process."""
    out, err = io.StringIO(), io.StringIO()
    command = ["broca", *map(str, arguments)]
    surroundings = {**os.environ, "COLUMNS": "200"}
    with (
        mock.patch.dict(os.environ, surroundings),
        mock.patch.object(sys, "argv", command),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def assert_refused(done, message):
    """Asserts exit code 2, one error line that matches, no traceback and an empty stdout."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("broca: ")]
    assert len(lines) == 1, done.stderr
    assert re.search(message, lines[0]), lines[0]


def names(menu=app, above=()):
    """Yields the names of all commands and subcommands."""
    for name in menu:
        if not name.startswith("-"):
            inner = menu[name]
            if inner.default_command is not None:
                yield " ".join((*above, name))
            else:
                yield from names(inner, (*above, name))
