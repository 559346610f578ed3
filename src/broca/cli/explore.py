"""`broca explore`: a live page on a model."""

from __future__ import annotations

import secrets
import sys
from contextlib import closing, suppress
from typing import Annotated

from broca.cli.commands import PrintOptions, command
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.options import RunOptions, without


@command
def explore(
    target: str,
    /,
    *,
    tasks: str = "auto",
    host: str = "127.0.0.1",
    port: int = 7860,
    token: str | None = None,
    public: bool = False,
    exports: str | None = None,
    open: bool = False,
    print_options: Annotated[PrintOptions, without("json")],
    run_options: Annotated[RunOptions, without("ablation_options")],
) -> None:
    """Serve a live page: switch components off, ask both models, score and verify.

    Args:
        target: A model, or the out folder of a run, whose model and sets are used.
        tasks: Tasks with a live score, T1,T2; auto: the run's, or the shipped tasks or those of
            `include_path`.
        host: Address to serve on; 0.0.0.0 admits other machines, with a token.
        port: Port; 0 chooses a free one.
        token: Token of the address; default: none on this machine, else a random one.
        public: Let anyone use the page at an open address, without a token, as a Space does.
        exports: Folder for exports from the page; default: a temporary folder.
        open: Open the page in the browser.
    """
    with closing(ProgressDisplay(print_options)) as progress:
        import broca
        from broca.explorer.server import LOCAL  # imports torch, after the first line is shown

        if token is None:
            token = "" if host in LOCAL or public else secrets.token_urlsafe(16)
        page = broca.explore(
            target, tasks=tasks, host=host, port=port, token=token, public=public,
            exports=exports, on_progress=progress, run_options=run_options,
        )  # fmt: skip
    with page:
        say(f"live page: {page.url}", "Ctrl+C ends it.")
        sys.stdout.flush()
        if open:
            import webbrowser

            webbrowser.open(page.url)
        with suppress(KeyboardInterrupt):
            page.wait()
