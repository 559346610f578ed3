"""`broca` without arguments suggests the next commands."""

import re

import pytest
from cli.running import broca, names


@pytest.mark.parametrize("words", [(), ("--offline",)])
def test_broca_alone_says_how_to_begin(words):
    """The suggested commands exist and fit into 80 columns; the exit code is 0."""
    done = broca(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "broca localize reference --task addition" in done.stdout
    suggested = set(re.findall(r"^ +broca (\S+)", done.stdout, re.MULTILINE))
    assert {"verify", "explore", "export", "chat"} <= suggested <= {*names(), "--help"}
    assert max(map(len, done.stdout.splitlines())) <= 80
