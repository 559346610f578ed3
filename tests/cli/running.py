"""Functions that run the command line as a user does."""

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import pytest

from broca.cli import main
from broca.cli.main import app

SMALL = (
    "localize", "reference-small", "--task", "sorting", "--others", "capitals,brackets",
    "--rows", 1400, "--items", 12, "--limit", 40,
)  # fmt: skip
"""A small run of `broca localize`."""


def broca(*arguments):
    """Runs the command line in this process, which saves the imports of a new process."""
    out, err = io.StringIO(), io.StringIO()
    command = ["broca", *map(str, arguments)]
    with (
        mock.patch.dict(os.environ),  # the command sets some variables
        mock.patch.object(sys, "argv", command),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return subprocess.CompletedProcess(command, end.value.code, out.getvalue(), err.getvalue())


def printed(*arguments):
    """Runs a command that succeeds and returns what it prints."""
    done = broca(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
