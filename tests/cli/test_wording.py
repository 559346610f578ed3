"""Messages of the library speak of parameters; the command line speaks of its flags."""

from broca.cli.wording import in_flags


def test_parameters_become_flags():
    """Those of the command, and nothing else in backticks or outside of them."""
    flags = {"rows": "--rows", "include_path": "--include-path"}
    assert in_flags("`rows` 12 is too few; set `include_path`", flags) == (
        "--rows 12 is too few; set --include-path"
    )
    assert in_flags("rows, `broca tasks` and `versions` stay", flags) == (
        "rows, `broca tasks` and `versions` stay"
    )
