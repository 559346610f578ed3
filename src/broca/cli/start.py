"""What `broca` alone says: what to do next."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from broca.cli.wording import say

OUT = Path("broca-out")
"""Where a run lies whose command named no folder."""

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
    """Prints how to begin; where this folder holds a run, how to go on with it."""
    say(
        f"broca {version('broca')} finds which attention heads a language model needs for a "
        "capability,",
        "and proves it on held-out items.",
    )
    unfinished = _unfinished()
    if unfinished:
        say("", f"{OUT} holds a run that was ended. This goes on with it:", "", f"  {unfinished}")
    elif (OUT / "result.json").is_file():
        _table(f"{OUT} holds a result. Next:", AFTER)
    _table("Begin:", FIRST)


def _unfinished() -> str:
    """The command of a run that has no result yet; empty where there is none."""
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
