"""`broca explore` prints the page's address and serves until Ctrl+C."""

import os
import signal
import subprocess
import sys
from urllib.request import urlopen


def test_the_page_is_served_until_ctrl_c():
    """The printed address serves the page, and Ctrl+C ends the command with exit code 0."""
    command = [sys.executable, "-m", "broca", "explore", "reference-small", "--port", "0",
               "--token", "secret", "--plain"]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("live page: http://127.0.0.1:")
            with urlopen(line.split(": ", 1)[1].strip(), timeout=60) as reply:
                assert b"reference-small" in reply.read()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        except BaseException:
            process.kill()  # otherwise the context manager waits until the process ends
            raise
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
