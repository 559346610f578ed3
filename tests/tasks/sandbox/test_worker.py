"""The worker: it reads one program, encloses itself, runs it and says that it came to its end."""

import os
import secrets

import pytest


@pytest.mark.parametrize(
    "ending",
    [
        "import os\nos._exit(0)",
        "import sys\nsys.exit(0)",
        "raise SystemExit(0)",
        "quit()",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
        "import os\nos.closerange(3, 64)",
        "print('passed')\nprint('True')\nimport sys\nsys.stderr.write('OK')\nassert False",
        "import os\nfor n in range(64):\n    try:\n        os.write(n, b'passed' * 6)\n"
        "    except OSError:\n        pass\nos._exit(0)",
        "import atexit, os\natexit.register(os._exit, 0)\nassert False",
        "import builtins\nbuiltins.AssertionError = type('E', (), {})\nassert False",
    ],
    ids=[
        "_exit",
        "exit",
        "SystemExit",
        "quit",
        "kill",
        "close",
        "print",
        "write",
        "atexit",
        "error",
    ],
)
def test_early_end_is_no_pass(sandbox, ending):
    """What ends before the last assert, whatever it prints and however it ends, has not passed."""
    assert sandbox.run(f"{ending}\nassert False") == "failed"


def test_environment_is_empty(sandbox, monkeypatch):
    """Nothing of the parent's environment can be read, not by way of /proc either."""
    secret = "sesame-" + secrets.token_hex(8)
    monkeypatch.setenv("HF_TOKEN", secret)
    assert sandbox.run("import os\nassert 'HF_TOKEN' not in os.environ") == "passed"
    assert sandbox.run("import os\nassert 'HF_TOKEN' in os.environ") == "failed"
    for number in ("self", str(os.getpid()), str(os.getppid())):
        program = f"assert b'sesame' in open('/proc/{number}/environ', 'rb').read()"
        assert sandbox.run(program) == "failed"


def test_every_program_starts_afresh(sandbox):
    """The folder is empty, whatever the program before left."""
    assert sandbox.run("open('left.txt', 'w').write('x')") == "passed"
    assert sandbox.run("import os\nassert os.listdir('.') == []") == "passed"


def test_flood_on_the_verdict_channel_is_no_pass(sandbox):
    """The parent reads as much as a token is long, and no more."""
    flood = (
        "import os\nfor n in range(64):\n    try:\n        os.write(n, b'x' * (1 << 16))\n"
        "    except OSError:\n        pass"
    )
    assert sandbox.run(flood) == "failed"
