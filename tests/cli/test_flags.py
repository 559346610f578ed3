"""Options become flags: positions, lists, switches, help and refusals."""

from dataclasses import field
from typing import Annotated, Any

import pytest
from cli.running import printed
from cyclopts import CycloptsError

from broca.cli.commands import make_app
from broca.cli.help import SHIPPED
from broca.cli.wording import in_flags
from broca.engine.ablation import ABLATIONS
from broca.integrations.tracking import TRACKERS
from broca.models.gates import KINDS
from broca.options import AblationOptions, Options, SearchOptions
from broca.options.base import ON
from broca.options.verbs import POSITION, WORDS
from broca.searches import METHODS
from broca.studies import NAMES


class DrawOptions(Options):
    """What and how to draw."""

    name: Annotated[Any, POSITION] = field(kw_only=False)
    """What to draw, with `color`."""

    color: str = "red"
    """Its colour."""

    filled: Annotated[bool, ON] = True
    """Fill it."""

    plain: bool = False
    """Without shades."""

    option: list[str] = field(default_factory=list)
    """Anything, {methods}."""

    search_options: SearchOptions = field(default_factory=SearchOptions)
    ablation_options: AblationOptions = field(default_factory=AblationOptions)


class JoinOptions(Options):
    """What to join."""

    words: Annotated[list[Any], WORDS] = field(kw_only=False)
    """The words."""

    seed: int = 0
    """Of the order."""


calls = []


def draw(options: DrawOptions) -> None:
    """Draw something."""
    calls.append(options)


def join(options: JoinOptions) -> None:
    """Join words."""
    calls.append(options)


@pytest.fixture
def app():
    """An app of both commands."""
    calls.clear()
    return make_app("pencil", "Draws.", {"Commands": [draw, join]})


def run(app, *words):
    """Runs a command line and raises its errors."""
    function, bound, _ = app.parse_args(list(words), exit_on_error=False, print_error=False)
    function(*bound.args, **bound.kwargs)


def test_a_command_gets_its_groups(app):
    """Given fields replace defaults; of a repeated flag that is no list the last value counts.

    A positional list takes every word; flags may stand between them.
    """
    run(app, "draw", "house", "--k", "7", "--color", "blue", "--no-filled", "--scale", "-0.5")
    run(app, "draw", "--plain", "--option", "a=1", "tree", "--option", "b")
    run(app, "draw", "bush", "--k", "7", "--k=8", "--color", "", "--color", "--k")
    run(app, "join", "a", "b", "--seed", "3", "c")
    assert calls == [
        DrawOptions(
            "house", color="blue", filled=False, search_options=SearchOptions(k=7),
            ablation_options=AblationOptions(scale=-0.5),
        ),
        DrawOptions("tree", plain=True, option=["a=1", "b"]),
        DrawOptions("bush", color="--k", search_options=SearchOptions(k=8)),
        JoinOptions(["a", "b", "c"], seed=3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("draw",), ("draw", "house", "barn"), ("draw", "house", "--no-plain"),
        ("draw", "house", "--k"), ("draw", "house", "--k", "1.5"),
        ("draw", "house", "--scale", "much"), ("draw", "house", "--options", "a"), ("join",),
        ("join", "a", "--sede", "3"),
    ],
)  # fmt: skip
def test_words_that_fit_nothing_are_refused(app, words):
    """Positions are required, whole numbers are not rounded, Python's keywords are no flags."""
    with pytest.raises(CycloptsError):
        run(app, *words)
    assert not calls


def test_help_shows_what_matters_first(app, capsys, monkeypatch):
    """The help has the command's own flags, then the groups; it names flags."""
    monkeypatch.setenv("COLUMNS", "100")
    run(app, "draw", "-h")
    text = capsys.readouterr().out
    order = [
        "Draw something.", "What to draw, with --color.", "--color STR", "[default: red]",
        "--no-filled", "Search: How the search works", "--method", "--response",
        "Ablation: What", "--scale FLOAT",
    ]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "│" not in text
    run(app, "--help")
    text = capsys.readouterr().out
    assert text.index("draw") < text.index("join")


def test_defaults_are_right_where_pydantic_is_imported(app):
    """Once pydantic is imported, cyclopts validates defaults; a default of None is valid."""
    pytest.importorskip("pydantic")
    run(app, "draw", "circle")
    assert calls[0].search_options.rows is None


def test_help_names_the_records_that_exist():
    """Names that `--help` shows without loading torch are those of the records."""
    records = {"components": KINDS, "ablations": ABLATIONS, "trackers": TRACKERS}
    assert {kind: tuple(names) for kind, names in records.items()} == SHIPPED
    for command, listed in (("localize", METHODS), ("reproduce", NAMES)):
        unwrapped = "".join(printed(command, "--help").split())  # a line may end after a hyphen
        assert all(name in unwrapped for name in listed)


def test_parameters_become_flags():
    """Parameters of the command in backticks become flags; all other words stay."""
    flags = {"rows": "--rows", "include_path": "--include-path"}
    text = "`rows` 12 is too few; set `include_path`; rows, `broca tasks` and `versions` stay"
    assert in_flags(text, flags) == (
        "--rows 12 is too few; set --include-path; rows, `broca tasks` and `versions` stay"
    )
