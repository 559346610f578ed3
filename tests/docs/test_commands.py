"""The commands of the documentation: every one is known to the parser; `make docs` runs them."""

from pathlib import Path

import pytest
from docs.scripts import script

ROOT = Path(__file__).parents[2]
commands = script("commands")
SHOWN = commands.commands(commands.pages())


@pytest.mark.parametrize("command", SHOWN, ids=lambda command: f"{command.page}: {command.line}")
def test_a_command_of_the_documentation_is_taken(command):
    """The parser takes the command and its flags; a block that is not run says why in its title."""
    assert commands.problem_of(command) == ""


@pytest.mark.parametrize(
    ("line", "title", "problem"),
    [
        ("broca localise reference --task addition", "", "localise"),
        ("broca localize reference --task addition --raws 3", "", "--raws"),
        ("broca localize reference", "", "task"),
        ("broca localize MODEL --task T [--raws N]", "synopsis", "does not take --raws"),
        ("broca neurons find MODEL", "synopsis", "no command neurons find"),
        ("make dmo", "installs packages", "no target dmo"),
        ("python docs/nothing.py", "takes minutes", "no file"),
        ("rm -r /", "", "no command of broca"),
        ("broca scan reference", "needs luck", "the title 'needs luck'"),
    ],
)
def test_a_wrong_command_is_found(line, title, problem):
    """`problem_of` says what is wrong with a command."""
    assert problem in commands.problem_of(commands.Command("page.md", title, line))


def test_a_command_runs_in_the_present_folder(tmp_path, monkeypatch):
    """`run` runs a command in the present folder and returns its exit code."""
    monkeypatch.chdir(tmp_path)
    assert commands.run("broca published   # a comment") == 0
    assert commands.run("broca refit nothing") == 2


@pytest.mark.long
def test_a_served_page_is_read_and_ended():
    """`serve` reads the page, ends the command by Ctrl+C and returns its exit code."""
    assert commands.serve("broca explore planted --port 0   # a model") == 0


def test_lines_of_a_block_are_commands(tmp_path, monkeypatch):
    """Continued lines are joined; comments and blocks of other languages are left out."""
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```console\nbroca scan \\\n  reference   # look\n\nbroca tasks\n```\n"
        '```console title="synopsis"\nbroca plan MODEL --task T\n      [--rows N]\n```\n'
        "```text\nbroca nothing\n```\n"
    )
    parsed = commands.commands([page])
    assert [item.words for item in parsed] == [
        ["broca", "scan", "reference"],
        ["broca", "tasks"],
        ["broca", "plan", "MODEL", "--task", "T", "[--rows", "N]"],
    ]
    assert [item.title for item in parsed] == ["", "", "synopsis"]
