"""`broca chat` over standard input and output, and the page of `broca explore`."""

import io
import os
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest
from cli.running import printed


def test_a_conversation_has_both_voices(monkeypatch):
    """Every answer begins with its voice on a line of its own; closed stdin ends at once."""
    chat = ("chat", "reference-small", "--heads", "L0H1", "--max-new-tokens", 4)
    monkeypatch.setattr("sys.stdin", io.StringIO("2 + 2 =\n/scale 0.5\n/wrong\n2 + 2 =\n"))
    text = printed(*chat).splitlines()
    assert text[0] == "L0H1 ablated; /help lists the commands, /quit ends"
    voices = [line.split("]")[0] for line in text if line.startswith("[")]
    assert voices == ["[intact", "[ablated"] * 2
    assert "L0H1 scaled by 0.5" in text
    assert any(line.startswith("/wrong is unknown") for line in text)
    monkeypatch.setattr("sys.stdin", None)
    assert printed(*chat).splitlines() == text[:1]


@pytest.mark.long
@pytest.mark.parametrize(("ends", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_page_is_served_until_ctrl_c(tmp_path, ends, code):
    """The printed address serves the page; Ctrl+C or SIGTERM ends it and leaves no folder."""
    command = [sys.executable, "-m", "broca", "explore", "reference-small", "--port", "0",
               "--token", "secret", "--plain"]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("live page: http://127.0.0.1:")
            with urlopen(line.split(": ", 1)[1].strip(), timeout=60) as reply:
                assert b"reference-small" in reply.read()
            process.send_signal(ends)
            _, errors = process.communicate(timeout=60)
        except BaseException:
            process.kill()  # otherwise the context manager waits until the process ends
            raise
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert [*tmp_path.glob("broca*")] == []
