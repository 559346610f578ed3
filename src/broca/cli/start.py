"""The next steps, which `broca` without a command shows."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from broca.cli.wording import say

OUT = Path("broca-out")
"""The default out folder."""

FIRST = (
    ("broca localize reference-small --task sorting", "try it: nothing is downloaded"),
    ("broca localize MODEL --task TASK", "a folder or hub id; any task"),
    ("broca plan MODEL --task TASK", "how long that would take"),
    ("broca tasks", "list the tasks"),
    ("broca doctor", "this machine; what is missing"),
    ("broca --help", "all commands"),
)

AFTER = (
    (f"broca verify {OUT}", "test the selection in full"),
    (f"broca explore {OUT}", "switch the heads off on a live page"),
    (f"broca export {OUT} --to DIR", "the model without them"),
    (f"broca chat {OUT}", "talk to both"),
)


def show_next_steps() -> None:
    """Prints the first steps; if this folder contains a run, the steps that follow it."""
    say(
        f"broca {version('broca')} finds which attention heads a language model needs for a "
        "capability,",
        "and verifies it on held-out items.",
    )
    unfinished = _unfinished()
    if unfinished:
        say("", f"{OUT} holds a run that was interrupted. This resumes it:", "", f"  {unfinished}")
    elif (OUT / "result.json").is_file():
        _table(f"{OUT} holds a result. Next:", AFTER)
    _table("Begin:", FIRST)


def _unfinished() -> str:
    """Returns the command of a run that has no result yet; empty if there is none."""
    try:
        record = json.loads((OUT / "reproduce.json").read_text(encoding="utf-8"))
        command = str(record["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return "" if (OUT / "result.json").is_file() else command


def _table(title: str, lines: tuple[tuple[str, str], ...]) -> None:
    width = max(len(command) for command, _ in FIRST)
    say("", title, "")
    say(*(f"  {command:<{width}}  {text}" for command, text in lines))
