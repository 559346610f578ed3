"""`--help`: plain columns, and menus filled in."""

import pytest
from cli.running import broca

from broca.searches import METHODS


def test_help_names_every_method():
    """The text of --method is the table of methods."""
    done = broca("localize", "--help")
    assert done.returncode == 0
    unwrapped = "".join(done.stdout.split())  # a line may end after a hyphen of a name
    for method in METHODS:
        assert method in unwrapped


@pytest.mark.parametrize(
    "verb",
    ["localize", "scan", "tasks", "journal", "rerun", "verify", "published", "stress", "reproduce"],
)
def test_every_verb_has_help(verb):
    """Each says what it does."""
    done = broca(verb, "--help")
    assert done.returncode == 0
    assert verb in done.stdout
