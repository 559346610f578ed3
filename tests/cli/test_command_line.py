"""The command line is stable: no flag, position or default of an earlier version is lost.

`command_line.json` holds the positions and flags of every command. Flags may be added; none may be
removed or changed.
"""

import inspect
import json
import re
from pathlib import Path
from types import NoneType, UnionType
from typing import get_args, get_origin

import pytest
from cli.running import assert_refused, broca, names

from broca.cli.main import COMMANDS, app
from broca.options import SearchOptions, field_help, groups_of

BEFORE = json.loads((Path(__file__).parent / "command_line.json").read_text())


def command_of(words):
    """Returns the cyclopts app of a command."""
    return app.parse_commands(words.split())[1][-1]


def without_none(hint):
    """Returns the type of a value that may also be None."""
    if get_origin(hint) is UnionType:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def kind_of(hint):
    """Returns the name of the type that a single word is converted to."""
    hint = without_none(hint)
    return (get_args(hint)[0] if get_origin(hint) in (list, tuple) else hint).__name__


def test_every_command_is_known_here():
    """`command_line.json` has every command except `lm-eval`, whose arguments are lm-eval's."""
    assert set(names()) - {"lm-eval"} == set(BEFORE)


@pytest.mark.parametrize("words", BEFORE)
def test_positions_are_what_they_were(words):
    """Positions keep their order, names and types, and whether they take several words."""
    arguments = command_of(words).assemble_argument_collection(parse_docstring=False)
    positions = [argument for argument in arguments if argument.index is not None]
    assert [
        {
            "name": argument.field_info.name,
            "type": kind_of(argument.hint),
            "many": argument.field_info.kind is inspect.Parameter.VAR_POSITIONAL,
            "required": argument.required,
        }
        for argument in positions
    ] == [
        {name: value for name, value in position.items() if name != "default"}
        for position in BEFORE[words]["positions"]
    ]


@pytest.mark.parametrize("words", BEFORE)
def test_flags_are_what_they_were(words):
    """Flags keep their type, default and negative form, and whether they may be repeated."""
    arguments = command_of(words).assemble_argument_collection(parse_docstring=False)
    present = {argument.name: argument for argument in arguments if argument.index is None}
    for flag, before in BEFORE[words]["flags"].items():
        argument = present[flag]
        default = argument.field_info.default
        assert (None if default is inspect.Parameter.empty else default) == before["default"], flag
        assert kind_of(argument.hint) == before["type"], flag
        assert (get_origin(without_none(argument.hint)) is list) == before.get("many", False), flag
        assert argument.required == before.get("required", False), flag
        assert list(argument.negatives) == ([before["off"]] if "off" in before else []), flag


def test_a_command_offers_what_its_verb_takes():
    """A command offers every option class of its verb."""
    from broca.verbs import atlas, localize, plan, verify

    differing = {"verify": {"ablation_options"}}  # by default those of the run
    for module in (atlas, localize, plan, verify):
        name = module.__name__.rpartition(".")[2]
        groups = command_of(name).default_command.groups
        verb = groups_of(getattr(module, name))
        assert set(verb) - differing.get(name, set()) <= set(groups), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lokalize reference", "command 'lokalize' is unknown; did you mean 'localize'"),
        ("bench mehods", "command 'mehods' is unknown; did you mean 'methods'"),
        ("localize reference", "--task is missing; `broca localize --help` lists the options"),
        ("localize --task addition", "MODEL is missing"),
        ("localize reference --tusk addition", "--task is missing: .*instead of --tusk"),
        ("localize reference --task", "--task needs a value"),
        ("localize reference --task addition --raws 3", "Unknown option: --raws. Did you mean --r"),
        ("localize reference --task addition more", "nothing takes more"),
        ("localize reference --task addition --k 1.5", "--k: '1.5' is not a whole number"),
        ("localize reference --task addition --k few", "--k: 'few' is not a whole number"),
        ("localize reference --task addition --scale few", "--scale"),
        ("scan -x reference", "Unknown option: -x"),
        ("refit broca-out --resamples -1", "--resamples must be at least 0, not -1"),
        ("--nothing", "--nothing"),
    ],
)
def test_words_that_cannot_be_read_are_one_line(words, message):
    """A line that cannot be parsed is refused in a single line, with exit code 2."""
    done = broca(*words.split())
    assert_refused(done, message)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", ["bench", "neurons"])
def test_a_menu_without_a_command_prints_its_help(words):
    """A menu without a command prints its help on stderr and gives exit code 2."""
    done = broca(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert "Commands:" in done.stderr


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_says_what_every_command_does(flag):
    """The help lists every command with a sentence on stdout and gives exit code 0."""
    done = broca(flag)
    assert (done.returncode, done.stderr) == (0, "")
    for name in (name for commands in COMMANDS.values() for name in commands):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"  {name} ")]
        assert len(line.split()) > 3
    assert "--offline" in done.stdout
    assert "--install-completion" in done.stdout
    assert all(f"{heading}:" in done.stdout for heading in COMMANDS)
    assert "Exit codes: 0 done; 1 " in done.stdout


def test_help_of_a_command_has_the_six_options_that_matter_first():
    """The first section has six options; all others follow under further headings."""
    first, *others = broca("localize", "--help").stdout.split("Options:\n")[1].split("\n\n")
    flags = [line.split()[0] for line in first.splitlines() if line.startswith("  --")]
    assert flags == ["--task", "--others", "--method", "--rows", "--k", "--out"]
    headings = [part.splitlines()[0] for part in others if part.strip()]
    assert headings[0] == "More options:"
    assert any(heading.startswith("Print: ") for heading in headings)


def test_sentences_list_every_known_name():
    """A help sentence that lists names has exactly the names that the library knows."""
    from broca.cli.commands import LogOptions
    from broca.engine.ablation import ABLATIONS
    from broca.executors import executors
    from broca.integrations.tracking import TRACKERS
    from broca.models.choosing import KINDS
    from broca.options import RESPONSES, AblationOptions, ExecutorOptions, ModelOptions

    for sentence, choices in (
        (field_help(ExecutorOptions)["executor"], executors()),
        (field_help(AblationOptions)["ablation"], ABLATIONS),
        (field_help(ModelOptions)["components"], KINDS),
        (field_help(LogOptions)["log"], TRACKERS),
    ):
        assert len(choices) > 1
        assert f": {', '.join(choices)}" in sentence
    sentence = field_help(SearchOptions)["response"]
    assert RESPONSES
    assert not [name for name in RESPONSES if name not in sentence]


@pytest.mark.parametrize("words", BEFORE)
def test_no_placeholder_is_shown(words, capsys):
    """The help of a command has names where its sentences have placeholders."""
    app.help_print(words.split())
    assert not re.search(r"\{\w+\}", capsys.readouterr().out)
