"""`explore`: a live page that ablates components of a model and answers questions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from broca.errors import BadInput
from broca.explorer import Explorer, ExplorerSubject
from broca.explorer.server import LOCAL, Server, require_token
from broca.models import GatedModel, load
from broca.options import RunOptions, takes_options, without
from broca.runs.folder import options_of_run
from broca.runs.progress import Stages
from broca.runs.workspace import Workspace
from broca.tasks import Catalog
from broca.verbs.export import export
from broca.verbs.verify import verify


class LivePage(AbstractContextManager["LivePage"]):
    """A live page that is being served; close it, or use it as a context manager.

    Attributes:
        explorer: Answers the requests of the page and of Python code.
        url: Address of the page.
    """

    def __init__(self, explorer: Explorer, server: Server) -> None:
        self.explorer = explorer
        self._server = server
        self.url = server.url

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Waits until the page is closed, such as by Ctrl+C."""
        self._server.wait()

    def close(self) -> None:
        """Ends the server and its threads; the model is left as it was found."""
        self._server.close()
        self.explorer.close()


@takes_options
def explore(
    model: str | Path | GatedModel,
    *,
    tasks: str = "auto",
    host: str = LOCAL[0],
    port: int = 7860,
    token: str = "",
    public: bool = False,
    exports: str | Path | None = None,
    run_options: Annotated[RunOptions, without("ablation_options")],
) -> LivePage:
    """Serves a live page on a model, with the sets of a run if a run is given.

    Args:
        model: A shipped model, a local folder, a hub id, what `broca.load` returned, or the out
            folder of `localize`, `verify` or `atlas`, whose model and sets are used.
        tasks: Tasks with a live score: T1,T2, or `auto`: the run's tasks, else the tasks that
            `auto` stands for elsewhere. A run's `include_path` and task options are used too.
        host: Address to serve on; one that other machines reach needs a `token`.
        port: Port; 0 chooses a free one.
        token: Token that the address must contain; empty for none.
        public: Whether anyone may use the page at an open address, without a token.
        exports: Folder for exports from the page; by default a temporary folder.

    Returns:
        The page, which threads serve until it is closed.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    subject = (
        ExplorerSubject(model.name) if isinstance(model, GatedModel) else ExplorerSubject.of(model)
    )
    if not isinstance(model, GatedModel):
        journal_options = run_options.journal_options
        run_options = replace(options_of_run(model, run_options), journal_options=journal_options)
    if tasks != "auto":
        sources = run_options.source_options
        catalog = Catalog(sources.include_path, allow_code=sources.allow_code)
        subject = replace(subject, tasks=tuple(catalog.names_of(tasks)))
        catalog.require_names(subject.tasks)
    if isinstance(run_options.journal_options.journal, Workspace):
        raise BadInput("`journal` must be a file: the page measures on a thread of its own")
    require_token(host, token, public)
    stages = Stages(run_options.on_progress)
    if isinstance(model, GatedModel):
        gated = model
    else:
        stages.enter("loading the model")
        gated = load(subject.model, **asdict(run_options.model_options))
    explorer = Explorer(
        gated,
        subject,
        run_options=run_options.unreported(),
        verify=verify,
        export=export,
        exports=exports,
    )
    try:
        server = Server(explorer, host=host, port=port, token=token, public=public)
    except BadInput:
        explorer.close()
        raise
    return LivePage(explorer, server)
