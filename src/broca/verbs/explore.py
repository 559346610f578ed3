"""`explore`: a live page that ablates components of a model and answers questions."""

from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from broca.errors import BadInput, BrocaError
from broca.explorer.explorer import Explorer, ExplorerSubject
from broca.explorer.server import Server, require_token
from broca.known_paths import folder_of
from broca.models import GatedModel, load
from broca.options import ExploreOptions, RunOptions, verb
from broca.options.running import GivenAblation
from broca.results.atlas import Atlas
from broca.results.localization import Localization
from broca.results.verification import Verification
from broca.runs.folder import options_of_run, with_recorded
from broca.runs.progress import Stages
from broca.runs.workspace import Workspace
from broca.store import Journal
from broca.tasks import Catalog
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


@verb(ExploreOptions)
def explore(options: ExploreOptions) -> LivePage:
    """Serves a live page on a model, with the sets of a run if a run is given.

    Returns:
        The page, which threads serve until it is closed.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    target, tasks, run_options = options.target, options.tasks, options.run_options
    if isinstance(target, GatedModel):
        subject = ExplorerSubject(target.name)
    else:
        subject = ExplorerSubject.of(target)
        run_options = options_of_run(target, run_options, with_journal=False)
        said = RunOptions.of(subject.made_with)  # by the result, also where no command is recorded
        groups = {
            name: with_recorded(getattr(run_options, name), getattr(said, name))
            for name in ("task_options", "model_options")
        }
        run_options = replace(run_options, **groups)
        run_options = _kept(folder_of(target), run_options)
    catalog = Catalog(**asdict(run_options.source_options))
    if tasks != "auto":
        subject = replace(subject, tasks=tasks)
    catalog.require_names(catalog.names_of(subject.tasks))
    if isinstance(run_options.journal_options.journal, Workspace):
        raise BadInput("`journal` must be a file: the page measures on a thread of its own")
    token = options.token or ""
    require_token(options.host, token, options.public)
    stages = Stages(run_options.on_progress)
    if isinstance(target, GatedModel):
        gated = target
    else:
        stages.enter(f"loading the model {subject.model}")
        gated = load(subject.model, **run_options.model_options.keywords())
    explorer = Explorer(gated, subject, run_options, verify=verify)
    try:
        server = Server(
            explorer, host=options.host, port=options.port, token=token, public=options.public
        )
    except BadInput:
        explorer.close()
        raise
    return LivePage(explorer, server)


JOURNAL = "explore.sqlite"
"""The page's journal in a run's folder, whose own one stays free for other commands."""


def _kept(folder: Path, run_options: GivenAblation) -> GivenAblation:
    """Returns the options with a journal in a run's folder, unless that cannot be written now."""
    options = run_options.journal_options
    results = (Localization, Verification, Atlas)
    if options.journal is None and any((folder / kind.FILE).is_file() for kind in results):
        with suppress(BrocaError), Journal(folder / JOURNAL):
            options = replace(options, journal=folder / JOURNAL)
    return replace(run_options, journal_options=options)
