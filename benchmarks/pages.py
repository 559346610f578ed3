"""Writes what a script measured into a page: a section, or the text between the script's marks."""

from __future__ import annotations

import re
from pathlib import Path

from broca.results.files import write_beside


def write_section(page: Path, section: str) -> None:
    """Writes a section of a page in place of the one of the same heading, or at the end.

    Args:
        page: The page.
        section: The section; its first line is its heading of level 2.
    """
    heading = section.split("\n", 1)[0]
    section = f"{section.rstrip()}\n\n"
    text = page.read_text(encoding="utf-8")
    written, replaced = re.subn(
        rf"^{re.escape(heading)}\n.*?(?=^## |\Z)",
        lambda _: section,  # a string would be a template, in which a backslash has a meaning
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    write_beside(page, (written if replaced else f"{text}\n{section}").rstrip() + "\n")


def write_between_marks(page: Path, script: str, text: str) -> None:
    """Writes text between the two marks of a script in a page.

    Args:
        page: The page.
        script: Name of the script's file, which is in the marks.
        text: The text.

    Raises:
        ValueError: A mark is missing, or there is more than one.
    """
    start, end = f"<!-- written by {script} --write -->", f"<!-- end of {script} -->"
    before, following = page.read_text(encoding="utf-8").split(start)
    _, after = following.split(end)
    write_beside(page, f"{before}{start}\n\n{text.strip()}\n\n{end}{after}")
