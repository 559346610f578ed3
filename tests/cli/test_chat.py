"""`broca chat`: a conversation over standard input and output."""

import io

import pytest
from cli.running import broca


@pytest.fixture
def type_lines(monkeypatch):
    """Returns a function that sets the lines of standard input."""
    return lambda *lines: monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))


def test_answers_one_after_the_other(type_lines):
    """Every answer begins with its voice; lines about the conversation do not."""
    type_lines("2 + 2 =", "/scale 0.5", "/wrong", "/one", "2 + 2 =")
    done = broca("chat", "reference-small", "--heads", "L0H1", "--max-new-tokens", 4)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "L0H1 ablated; /help lists the commands, /quit ends"
    voices = [line.split("]")[0] for line in lines if line.startswith("[")]
    assert voices == ["[intact", "[ablated", "[ablated"]
    assert "L0H1 scaled by 0.5" in lines
    assert any(line.startswith("/wrong is unknown") for line in lines)


def test_answers_side_by_side(type_lines):
    """`--side-by-side` prints the answers in columns with the voices as titles."""
    type_lines("2 + 2 =")
    done = broca(
        "chat", "reference-small", "--heads", "L0H1", "--max-new-tokens", 4, "--side-by-side"
    )
    assert done.returncode == 0, done.stderr
    (title,) = [line for line in done.stdout.splitlines() if "intact" in line]
    assert "ablated" in title
