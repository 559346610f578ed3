"""`broca` without arguments suggests the next commands."""

import pytest
from cli.running import broca, names


def commands(text):
    """Returns the command's name from every line that is a command of broca."""
    lines = [line.strip() for line in text.splitlines()]
    return [line.split()[1] for line in lines if line.startswith("broca ") and "finds" not in line]


@pytest.mark.parametrize("words", [(), ("--offline",)])
def test_broca_alone_says_how_to_begin(words):
    """The suggested commands exist and fit into 80 columns; the exit code is 0."""
    done = broca(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "broca localize reference-small --task sorting" in done.stdout
    suggested = set(commands(done.stdout))
    assert {"verify", "explore", "export", "chat"} <= suggested <= {*names(), "--help"}
    assert max(map(len, done.stdout.splitlines())) <= 80
