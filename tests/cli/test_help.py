"""`--help` of the commands."""

import pytest
from cli.running import broca

from broca.searches import METHODS


def test_help_names_every_method():
    """The help of `broca localize` names every method."""
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
    """The help of a verb gives exit code 0 and names the verb."""
    done = broca(verb, "--help")
    assert done.returncode == 0
    assert verb in done.stdout
