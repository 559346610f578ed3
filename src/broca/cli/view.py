"""`broca view`: an index of many results."""

from __future__ import annotations

import sys

from broca.cli.commands import command
from broca.cli.wording import say


@command
def view(folders: list[str] | None = None, /, *, out: str = ".", open: bool = True) -> None:
    """Write an index of all results in FOLDERS, and open it in the browser.

    Args:
        folders: Folders to search with their subfolders; default: the current folder.
        out: Folder for broca-index.html.
        open: Open it if the output is a terminal.
    """
    import broca

    path = broca.view(folders or ".", out=out)
    say(f"index: {path}")
    if open and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(path.absolute().as_uri())
