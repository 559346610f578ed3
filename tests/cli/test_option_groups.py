"""Groups of options: Typer sees single options, the verb gets dataclasses."""

from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from broca.cli.option_groups import takes_groups


@dataclass(frozen=True)
class Size:
    """A group of two options."""

    width: Annotated[int, typer.Option(help="How wide.")] = 3
    tall: Annotated[bool, typer.Option("--tall", help="Whether tall.")] = False


@pytest.fixture
def told():
    """What the verb was called with."""
    return []


@pytest.fixture
def app(told):
    """A command with an argument, a group, and an option after the group."""

    @takes_groups
    def draw(
        name: Annotated[str, typer.Argument(help="What to draw.")],
        *,
        size: Size,
        color: Annotated[str, typer.Option(help="Its colour.")] = "red",
    ) -> None:
        """Draw something."""
        told.append((name, size, color))

    app = typer.Typer(rich_markup_mode=None)
    app.command()(draw)
    return app


def test_the_verb_gets_the_group(app, told):
    """With what was given, and the fields' defaults for the rest."""
    assert CliRunner().invoke(app, ["house", "--width", "7", "--color", "blue"]).exit_code == 0
    assert CliRunner().invoke(app, ["tree", "--tall"]).exit_code == 0
    assert told == [("house", Size(7, False), "blue"), ("tree", Size(3, True), "red")]


def test_help_lists_the_fields_in_the_group_s_place(app):
    """Each with its own text; nothing is left of the group itself."""
    shown = CliRunner().invoke(app, ["--help"]).stdout
    places = [shown.index(text) for text in ("Draw", "--width", "How wide", "--tall", "--color")]
    assert places == sorted(places)
    assert "--size" not in shown


def test_what_a_field_refuses_is_refused(app, told):
    """As if it were an option of the verb."""
    assert CliRunner().invoke(app, ["house", "--width", "wide"]).exit_code == 2
    assert not told


def test_an_option_cannot_come_twice():
    """Neither from two groups nor from a group and the verb."""

    def draw(width: Annotated[int, typer.Option()], *, size: Size) -> None:
        """Draw something."""

    with pytest.raises(ValueError, match="duplicate parameter name"):
        takes_groups(draw)


def test_a_verb_without_groups_keeps_its_options():
    """Names, order and defaults."""

    def draw(name: str, color: str = "red") -> None:
        """Draw something."""

    shown = signature(takes_groups(draw)).parameters
    assert [(one.name, one.default) for one in shown.values()] == [
        ("name", Parameter.empty),
        ("color", "red"),
    ]
