"""`broca` without arguments suggests the next commands."""

import json

import pytest
from cli.running import broca, names


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Changes to an empty folder."""
    monkeypatch.chdir(tmp_path)


def commands(text):
    """Returns the command's name from every line that is a command of broca."""
    lines = [line.strip() for line in text.splitlines()]
    return [line.split()[1] for line in lines if line.startswith("broca ") and "finds" not in line]


@pytest.mark.parametrize("words", [(), ("--offline",)])
def test_broca_alone_says_how_to_begin(words):
    """The suggested commands exist and fit into 80 columns; the exit code is 0."""
    done = broca(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "broca localize reference-small --task sorting" in done.stdout
    assert set(commands(done.stdout)) <= {*names(), "--help"}
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_commands_that_use_a_result_are_suggested(tmp_path):
    """A folder with a result leads to `verify`, `explore`, `export` and `chat`."""
    (tmp_path / "broca-out").mkdir()
    (tmp_path / "broca-out" / "result.json").write_text("{}")
    text = broca().stdout
    assert "broca-out holds a result" in text
    assert {"verify", "explore", "export", "chat"} <= set(commands(text)) <= {*names(), "--help"}


@pytest.mark.parametrize("record", [{"command": "broca localize M --task T"}, {}, []])
def test_the_command_of_an_unfinished_run_is_suggested(tmp_path, record):
    """The command in the run's record is printed; a record without a command is ignored."""
    (tmp_path / "broca-out").mkdir()
    (tmp_path / "broca-out" / "reproduce.json").write_text(json.dumps(record))
    assert ("  broca localize M --task T\n" in broca().stdout) == bool(record)
