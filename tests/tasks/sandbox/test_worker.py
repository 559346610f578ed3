"""The worker reads one program, isolates itself, runs it and reports its end."""

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
    """A program that ends before its last assert fails, whatever it prints."""
    assert sandbox.run(f"{ending}\nassert False") == "failed"


def test_environment_is_empty(sandbox, monkeypatch):
    """A program cannot read this process's environment, not through /proc either."""
    secret = "sesame-" + secrets.token_hex(8)
    monkeypatch.setenv("HF_TOKEN", secret)
    assert sandbox.run("import os\nassert 'HF_TOKEN' not in os.environ") == "passed"
    assert sandbox.run("import os\nassert 'HF_TOKEN' in os.environ") == "failed"
    for number in ("self", str(os.getpid()), str(os.getppid())):
        program = f"assert b'sesame' in open('/proc/{number}/environ', 'rb').read()"
        assert sandbox.run(program) == "failed"


def test_every_program_starts_afresh(sandbox):
    """The folder is empty when a program starts, also after a program that left a file."""
    assert sandbox.run("open('left.txt', 'w').write('x')") == "passed"
    assert sandbox.run("import os\nassert os.listdir('.') == []") == "passed"


def test_flood_on_the_verdict_channel_is_no_pass(sandbox):
    """A program that floods the verdict channel fails."""
    flood = (
        "import os\nfor n in range(64):\n    try:\n        os.write(n, b'x' * (1 << 16))\n"
        "    except OSError:\n        pass"
    )
    assert sandbox.run(flood) == "failed"
