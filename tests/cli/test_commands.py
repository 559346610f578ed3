"""Functions become commands: their parameters and the fields of option classes become flags."""

import inspect
import sys
from types import ModuleType
from typing import Annotated

import pytest
from cyclopts import CycloptsError

from broca.cli.commands import command, command_of, flags_of, make_app
from broca.errors import BadInput
from broca.options import AblationOptions, RunOptions, SearchOptions, without


@pytest.fixture
def calls():
    """The arguments of every call of a command."""
    return []


@pytest.fixture
def app(calls):
    """An app with a command of a position, flags and groups, and one of a list of words."""

    def draw(
        name: str,
        /,
        *,
        color: str = "red",
        filled: bool = True,
        plain: bool = False,
        option: list[str] | None = None,
        search_options: Annotated[SearchOptions, without("options", "items")],
        ablation_options: AblationOptions,
    ) -> None:
        """Draw something.

        Args:
            name: What to draw, with `color`.
            color: Its colour.
            filled: Fill it.
            plain: Without shades.
            search_options: How to search.
            ablation_options: What is erased.
            option: Anything, {methods}.
        """
        calls.append((name, color, filled, plain, option, search_options, ablation_options))

    def join(first: str, others: list[str], /, *, seed: int = 0) -> None:
        """Join words.

        Args:
            first: The first word.
            others: The other words.
            seed: Of the order.
        """
        calls.append((first, others, seed))

    module = ModuleType("broca_test_commands")
    module.draw, module.join = command(draw), command(join)
    sys.modules[module.__name__] = module
    places = {name: f"{module.__name__}:{name}" for name in ("draw", "join")}
    yield make_app("pencil", "Draws.", places)
    del sys.modules[module.__name__]


def run(app, *words):
    """Runs a command line and raises its errors."""
    function, bound, _ = app.parse_args(list(words), exit_on_error=False, print_error=False)
    function(*bound.args, **bound.kwargs)


def test_a_command_gets_its_groups(app, calls):
    """A command gets its option classes with the given fields, else with their defaults."""
    run(app, "draw", "house", "--k", "7", "--color", "blue", "--no-filled", "--scale", "-0.5")
    run(app, "draw", "--plain", "--option", "a=1", "tree", "--option", "b")
    assert calls == [
        ("house", "blue", False, False, None, SearchOptions(k=7), AblationOptions(scale=-0.5)),
        ("tree", "red", True, True, ["a=1", "b"], SearchOptions(), AblationOptions()),
    ]


def test_the_last_of_repeated_flags_counts(app, calls):
    """The last value of a repeated flag replaces the earlier ones."""
    run(app, "draw", "house", "--k", "7", "--k=8", "--color", "", "--color", "--k")
    assert (calls[0][1], calls[0][5].k) == ("--k", 8)


def test_a_list_takes_all_words_that_remain(app, calls):
    """A list takes at least one word; flags may stand between the words."""
    run(app, "join", "a", "b", "--seed", "3", "c")
    assert calls == [("a", ["b", "c"], 3)]
    with pytest.raises(CycloptsError, match="OTHERS"):
        run(app, "join", "a")


@pytest.mark.parametrize(
    "words",
    [
        ("draw",),
        ("draw", "house", "barn"),
        ("draw", "house", "--name", "barn"),
        ("draw", "house", "--items", "3"),
        ("draw", "house", "--no-plain"),
        ("draw", "house", "--k"),
        ("draw", "house", "--k", "1.5"),
        ("draw", "house", "--scale", "much"),
    ],
)
def test_words_that_fit_nothing_are_refused(app, calls, words):
    """Positions have no flag, whole numbers are not rounded, excluded fields are no flags."""
    with pytest.raises(CycloptsError):
        run(app, *words)
    assert not calls


def test_what_an_option_class_refuses_is_refused(app, calls):
    """The message names the parameter; `flags_of` gives the flag of every parameter."""
    with pytest.raises(BadInput, match="`k` must be at least 1"):
        run(app, "draw", "house", "--k", "0")
    flags = flags_of(app.parse_args("draw house", exit_on_error=False)[0])
    assert (flags["k"], flags["name"]) == ("--k", "NAME")
    assert "items" not in flags
    assert not calls


def test_help_shows_what_matters_first(app, capsys, monkeypatch):
    """The help has the main options, the command's flags, then the groups; it names flags."""
    monkeypatch.setenv("COLUMNS", "100")
    run(app, "draw", "-h")
    text = capsys.readouterr().out
    order = [
        "Draw something.", "What to draw, with --color.", "--method", "--rows", "--k INT",
        "[default: 5]", "--color STR", "[default: red]", "--filled, --no-filled",
        "Search: How a search works", "--response", "Ablation: What", "--scale FLOAT",
    ]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "thompson" in text
    assert "--items" not in text
    assert "│" not in text


def test_help_of_several_commands_lists_them(app, capsys):
    """The help of an app lists its commands in the given order."""
    run(app, "--help")
    text = capsys.readouterr().out
    assert text.index("draw") < text.index("join")


def test_defaults_are_right_where_pydantic_is_imported(app, calls):
    """Once pydantic is imported, cyclopts validates defaults; a default of None is valid."""
    pydantic = pytest.importorskip("pydantic")

    assert pydantic is sys.modules["pydantic"]
    app(["draw", "circle"], exit_on_error=False, print_error=False)
    assert calls[0][4] is None


VERB = '''
import a_module_that_is_not_there

LARGE = 9

@takes_options
def dye(
    model: str | GatedModel,
    task: str | Task,
    *,
    tasks: str | Sequence[str | Task] = "auto",
    shades: Sequence[float] = (0.0, 2.0),
    on_progress: Report | None = None,
    search_options: Annotated[SearchOptions, without("options", "items")],
) -> None:
    """Dyes something.

    Args:
        model: What is dyed.
        task: What for.
        shades: How dark.
    """
'''


@pytest.fixture
def dyeing(tmp_path, monkeypatch):
    """Puts the module of a verb on the path; the module can be parsed but not imported."""
    (tmp_path / "broca_test_dyeing.py").write_text(VERB)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_command_takes_what_its_verb_takes(dyeing, calls):
    """The first parameter is a position; the command can replace and add parameters."""

    @command_of("broca_test_dyeing:dye")
    def dye(*, shades: str = "0,2", out: str = "here", **parameters):
        """Dye something.

        Args:
            out: Where to.
        """
        calls.append((shades, out, parameters))

    assert flags_of(dye)["model"] == "MODEL"
    assert list(flags_of(dye)) == [
        "model", "task", "tasks", "shades", "out", "method", "rows", "max_minutes", "k", "response",
    ]  # fmt: skip
    dye("m", task="t", rows=5)
    (shades, out, parameters), *_ = calls
    assert (shades, out) == ("0,2", "here")
    assert parameters == {
        "model": "m", "task": "t", "tasks": "auto", "search_options": SearchOptions(rows=5)
    }  # fmt: skip


def test_the_sentences_of_a_verb_are_the_help_of_its_command(dyeing):
    """A parameter without a sentence in the command has the sentence of the verb."""

    @command_of("broca_test_dyeing:dye", sentences={"tasks": "T1,T2.", "model": "A model."})
    def dye(*, out: str = "here", **parameters):
        """Dye something.

        Args:
            task: What it is dyed for.
            out: Where to.
        """

    helps = {
        name: parameter.annotation.__metadata__[0].help
        for name, parameter in inspect.signature(dye).parameters.items()
    }
    assert helps["task"] == "What it is dyed for."
    assert helps["shades"] == "How dark."
    assert helps["model"] == "A model."


def test_messages_show_the_flag_of_a_parameter_of_another_name():
    """A parameter of the library that the command names otherwise stands for the command's flag."""

    def paint(name: str, /, *, colour: list[str] | None = None) -> None:
        """Paint something.

        Args:
            name: What to paint.
            colour: A colour; may be repeated.
        """

    assert flags_of(command(paint)) == {"name": "NAME", "colour": "--colour"}
    flags = flags_of(command(paint, renamed={"colours": "colour"}))
    assert flags == {"name": "NAME", "colour": "--colour", "colours": "--colour"}


def test_a_command_replaces_and_hides_what_its_verb_takes(dyeing, calls):
    """A parameter of another name takes the place of the verb's; a hidden one is no flag."""

    @command_of(
        "broca_test_dyeing:dye", renamed={"model": "target", "shades": "shade"},
        hidden=("tasks", "task"),
    )  # fmt: skip
    def dye(target: str, /, *, shade: str = "0", task: str = "t", **parameters):
        """Dye something.

        Args:
            target: What is dyed.
            shade: How dark.
        """
        calls.append((target, shade, task, parameters))

    flags = flags_of(dye)
    assert [flags[name] for name in ("target", "model", "shade", "shades")] == [
        "TARGET", "TARGET", "--shade", "--shade",
    ]  # fmt: skip
    assert "tasks" not in flags
    dye("m", shade="1")
    assert calls == [("m", "1", "t", {"search_options": SearchOptions()})]


MIXING = '''
def mix(*dyes: str | Dye, tasks: str | Sequence[str | Task] = (), least: float = 0.5) -> None:
    """Mixes some.

    Args:
        dyes: What is mixed.
        tasks: What for.
        least: How much.
    """
'''


def test_all_words_are_the_first_parameter_of_a_verb_that_takes_several(
    tmp_path, monkeypatch, calls
):
    """A verb's `*` parameter takes all words; an empty sequence as default is an empty word."""
    (tmp_path / "broca_test_mixing.py").write_text(MIXING)
    monkeypatch.syspath_prepend(tmp_path)

    @command_of("broca_test_mixing:mix")
    def mix(**parameters):
        """Mix some."""
        calls.append(parameters)

    mix("red", "blue")
    assert calls == [{"dyes": ["red", "blue"], "tasks": "", "least": 0.5}]


def test_a_report_of_progress_is_no_flag():
    """The command line shows progress itself, so `on_progress` of the run options has no flag."""

    def run(model: str, /, *, run_options: RunOptions) -> None:
        """Run."""

    flags = flags_of(command(run))
    assert flags["journal"] == "--journal"
    assert not {"on_progress", "progress_options"} & set(flags)
