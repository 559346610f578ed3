"""What the measuring commands share: the out folder, its journal, logs, and Ctrl+C."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import field, replace
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from broca.cli.output import out_folder, show
from broca.cli.progress import PrintOptions, ProgressDisplay
from broca.cli.wording import tell
from broca.errors import BadInput
from broca.known_paths import place_of
from broca.options import Options, flat
from broca.options.base import HIDDEN, shown_as


@shown_as("Log", "Where the command is logged.", 12)
class LogOptions(Options):
    """Where the command is logged."""

    log: str | None = None
    """Log settings, progress, scores and the result: {trackers}."""

    log_project: str | None = None
    """The tracker's project or experiment; default: broca."""


class OutputOptions(Options):
    """How a measuring command begins, logs and prints its result."""

    fresh: bool = False
    """Start again: remove everything that a run wrote in `out`, its journal too."""

    details: bool = False
    """Print all tables and notes; default: the first table and the verdict."""

    log_options: LogOptions = field(default_factory=LogOptions)
    print_options: PrintOptions = field(default_factory=PrintOptions)


class SharedOutput(OutputOptions):
    """Of a command whose out folder others share."""

    fresh: Annotated[bool, HIDDEN] = False


def kept_result(
    verb: str, options: Any, folder: str | Path, output: OutputOptions
) -> tuple[Any, tuple[Path, ...]]:
    """Returns the result of a verb from its out folder, or runs the verb and keeps it there.

    A verb that owns its folder is resumed by the same command; others share it.

    Args:
        verb: Name of the verb; `neurons.VERB` for one of `broca.neurons`.
        options: The options of the verb.
        folder: The out folder.
        output: Whether a run that is already there is replaced, and where this run is logged.

    Returns:
        The result and its files, the result's own first.

    Raises:
        Interrupted: The user interrupted the command.
        BrocaError: The folder contains the results of another command, or a parameter is refused.
    """
    from broca.results.reading import read
    from broca.runs import folder as folders

    place, fresh = place_of(folder), output.fresh
    files = () if fresh else folders.finished_files(place, verb, options)
    if files:
        with suppress(BadInput):  # an edited file is written again
            result = read(files[0])
            owned = verb in folders.OWNERS
            advice = "--fresh measures it again" if owned else "remove it to run again"
            where = place if owned else files[0]
            tell(f"finished; nothing to do: {where} holds the result; {advice}")
            return result, files
    printed, logged = output.print_options, output.log_options
    if logged.log_project and not logged.log:
        raise BadInput("`log_project` is a project of the tracker that `log` names: give both")
    with measuring(folder, options, printed, verb=verb, fresh=fresh) as (place, keywords):
        import broca
        from broca.integrations.tracking import Log

        function = attrgetter(verb)(broca)
        tracker, project = logged.log, logged.log_project or "broca"
        settings = {"verb": verb, **flat(options.decisive())}
        also = keywords["on_progress"]
        with Log(tracker, project=project, settings=settings, also=also) as log:
            within = replace(options.run_options.within(keywords["journal"]), on_progress=log)
            within = replace(options, run_options=within)
            result = function.__wrapped__(within)  # it takes options, not keywords
            if verb not in folders.OWNERS and (place / result.FILE).exists():
                tell(f"replaced: {place / result.FILE}, of other options, versions or files")
            files = result.save(place, replace=True)
            log.result(result, files)
        folders.note_finished(place, verb, options, files)
    return result, files


def keep(
    verb: str, options: Any, folder: str | Path, output: OutputOptions, *, then: str, page: int = -1
) -> Any:
    """Returns the result of a verb from `kept_result`, and shows it with what to do next.

    Args:
        verb: As for `kept_result`.
        options: The options of the verb.
        folder: The out folder.
        output: As for `kept_result`, and how the result is shown.
        then: The next command.
        page: Number of the file whose path is printed; by default the last one, the page.
    """
    result, files = kept_result(verb, options, folder, output)
    json, details = output.print_options.json, output.details
    show(result, files[page], json=json, details=details, then=then)
    return result


@contextmanager
def measuring(
    out: str | Path, options: Any, printed: PrintOptions, *, verb: str = "", fresh: bool = False
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Keeps the rows that a command measures in an out folder, which it claims if it owns it.

    Yields:
        The folder, and the keywords with which the verb measures there: `journal`, `on_progress`.

    Raises:
        Interrupted: The user interrupted the command.
        BrocaError: The folder or the journal cannot be used.
    """
    from broca.runs import folder as folders
    from broca.store.journal import JOURNAL

    with out_folder(out) as folder, closing(ProgressDisplay(printed)) as progress:
        run_options = options.run_options
        place: Any = run_options.journal_options.journal or folder / JOURNAL
        if verb in folders.OWNERS:
            command = ["broca", *sys.argv[1:]]
            place = folders.RunFolder.claim(
                folder, verb=verb, options=options, command=command, fresh=fresh
            )
        again = shlex.join(["broca", *(word for word in sys.argv[1:] if word != "--fresh")])
        with folders.kept_workspace(place, run_options, goes_on=again, say=tell) as workspace:
            yield folder, {"journal": workspace, "on_progress": progress}
