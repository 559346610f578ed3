"""`broca` alone: what to do next."""

import json

import pytest
from cli.running import broca, names


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """An empty folder."""
    monkeypatch.chdir(tmp_path)


def commands(text):
    """The words after `broca` of every line that is a command."""
    lines = [line.strip() for line in text.splitlines()]
    return [line.split()[1] for line in lines if line.startswith("broca ") and "finds" not in line]


@pytest.mark.parametrize("words", [(), ("--offline",)])
def test_broca_alone_says_how_to_begin(words):
    """On stdout, with exit code 0, within 80 columns; every command that it names is one."""
    done = broca(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "broca localize reference-small --task sorting" in done.stdout
    assert set(commands(done.stdout)) <= {*names(), "--help"}
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_result_is_gone_on_with(tmp_path):
    """What can be done with what the folder holds."""
    (tmp_path / "broca-out").mkdir()
    (tmp_path / "broca-out" / "result.json").write_text("{}")
    text = broca().stdout
    assert "broca-out holds a result" in text
    assert {"verify", "explore", "export", "chat"} <= set(commands(text)) <= {*names(), "--help"}


@pytest.mark.parametrize("record", [{"command": "broca localize M --task T"}, {}, []])
def test_an_unfinished_run_is_gone_on_with(tmp_path, record):
    """Its own command; a record that cannot be read says nothing."""
    (tmp_path / "broca-out").mkdir()
    (tmp_path / "broca-out" / "reproduce.json").write_text(json.dumps(record))
    assert ("  broca localize M --task T\n" in broca().stdout) == bool(record)
