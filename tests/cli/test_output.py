"""What commands print: stdout holds results alone."""

import subprocess
import sys

from broca.cli.output import keep_stdout_for_results

NOISY = """
import os, subprocess, sys
from broca.cli.output import keep_stdout_for_results, print_json
keep_stdout_for_results()
os.write(1, b"a native library\\n")
subprocess.run([sys.executable, "-c", "print('a worker died')"])
print_json({"selected": ["L0H1"], "task": "\\u00fcben"})
"""


def test_other_writers_to_stdout_are_sent_to_stderr():
    """A worker's messages stood before the JSON, and it could not be read."""
    ended = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", NOISY], capture_output=True, check=True
    )
    assert ended.stdout.decode() == '{\n  "selected": [\n    "L0H1"\n  ],\n  "task": "üben"\n}\n'
    assert ended.stderr == b"a native library\na worker died\n"


def test_a_captured_stdout_stays_as_it_is(capsys):
    """It is no file descriptor, so nobody else writes there."""
    captured = sys.stdout
    keep_stdout_for_results()
    assert sys.stdout is captured


def test_a_closed_stdout_is_left_alone():
    """As under `broca ... >&-`."""
    program = "from broca.cli.output import keep_stdout_for_results as keep; keep()"
    command = f'exec "{sys.executable}" -c "{program}" >&-'
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
