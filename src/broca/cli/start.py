"""The next steps, which `broca` without a command shows."""

from importlib.metadata import version

from broca.cli.wording import say

OUT = "broca-out"
"""The default out folder."""

FIRST = (
    ("broca localize reference --task addition", "try it: nothing is downloaded"),
    ("broca localize MODEL --task TASK", "a folder or hub id; any task"),
    ("broca plan MODEL --task TASK", "how long that would take"),
    ("broca tasks", "list the tasks"),
    ("broca doctor", "this machine; what is missing"),
    ("broca --help", "all commands"),
)

AFTER = (
    (f"broca verify {OUT}", "test the selection in full"),
    (f"broca explore {OUT}", "a live page to try it"),
    (f"broca export {OUT} --to DIR", "the model without them"),
    (f"broca chat {OUT}", "talk to both"),
)


def show_next_steps() -> None:
    """Prints the first steps, and those that follow a run."""
    say(
        f"broca {version('broca')} finds which attention heads a language model needs for a "
        "capability,",
        "and verifies it on held-out items.",
    )
    _table("Begin:", FIRST)
    _table("After a run, which the same command resumes if it was ended:", AFTER)


def _table(title: str, lines: tuple[tuple[str, str], ...]) -> None:
    width = max(len(command) for command, _ in FIRST)
    say("", title, "")
    say(*(f"  {command:<{width}}  {text}" for command, text in lines))
