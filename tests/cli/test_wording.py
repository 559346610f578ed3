"""Wording of the command line: flags in place of parameters, and durations."""

import pytest

from broca.cli.wording import duration, in_flags


def test_parameters_become_flags():
    """Parameters of the command in backticks become flags; all other words stay."""
    flags = {"rows": "--rows", "include_path": "--include-path"}
    assert in_flags("`rows` 12 is too few; set `include_path`", flags) == (
        "--rows 12 is too few; set --include-path"
    )
    assert in_flags("rows, `broca tasks` and `versions` stay", flags) == (
        "rows, `broca tasks` and `versions` stay"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.44, "0.4 s"),
        (12.3, "12 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_have_at_most_two_units(seconds, text):
    """A duration has at most two units, and a decimal only below ten seconds."""
    assert duration(seconds) == text
