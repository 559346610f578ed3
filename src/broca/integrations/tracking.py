"""Experiment trackers: settings, progress, scores, verdict, figures and files of a run.

A tracker is a small class with six methods; packages add others through the entry-point group
`broca.trackers`, whose entries name a `TrackerKind`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from broca.engine import Progress
from broca.errors import BadInput, UnknownName, nearest
from broca.plugins import Plugins
from broca.results.atlas import Atlas
from broca.results.base import Result
from broca.results.comparison import Comparison
from broca.results.localization import Localization
from broca.results.verification import Verification

GROUP = "broca.trackers"
"""The group of entry points of other packages' trackers."""

SECONDS = 5.0
"""Minimum seconds between two logs of progress."""


class Tracker(Protocol):
    """A tracker of runs."""

    def begin(self, project: str, name: str | None, settings: Mapping[str, Any]) -> None:
        """Begins a run with flat settings."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers."""

    def text(self, name: str, text: str) -> None:
        """Logs a text."""

    def figure(self, name: str, file: Path) -> None:
        """Logs a PNG file."""

    def artifact(self, name: str, files: Sequence[Path]) -> None:
        """Stores files."""

    def end(self, *, failed: bool) -> None:
        """Ends the run."""


@dataclass(frozen=True, kw_only=True)
class TrackerKind:
    """The record of a tracker.

    Attributes:
        name: Name of the tracker in `log`.
        help: Description.
        make: Makes a tracker; raises ImportError if its package is not installed.
        order: Position on the menu.
    """

    name: str
    help: str
    make: Callable[[], Tracker]
    order: int = 0


class _Trackio:
    def __init__(self) -> None:
        import trackio

        self._library = trackio

    def begin(self, project: str, name: str | None, settings: Mapping[str, Any]) -> None:
        self._library.init(
            project=project, name=name, config=dict(settings), auto_log_gpu=False, embed=False
        )

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._library.log(dict(values), step=step)

    def text(self, name: str, text: str) -> None:
        self._library.log({name: self._library.Markdown(text)})

    def figure(self, name: str, file: Path) -> None:
        self._library.log({name: self._library.Image(str(file))})

    def artifact(self, name: str, files: Sequence[Path]) -> None:
        self._library.log_artifact(_artifact(self._library, name, files))

    def end(self, *, failed: bool) -> None:
        self._library.finish()


class _Wandb:
    def __init__(self) -> None:
        import wandb

        self._library = wandb
        self._run: Any = None

    def begin(self, project: str, name: str | None, settings: Mapping[str, Any]) -> None:
        self._run = self._library.init(project=project, name=name, config=dict(settings))

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def text(self, name: str, text: str) -> None:
        self._run.summary[name] = text

    def figure(self, name: str, file: Path) -> None:
        self._run.log({name: self._library.Image(str(file))})

    def artifact(self, name: str, files: Sequence[Path]) -> None:
        self._run.log_artifact(_artifact(self._library, name, files))

    def end(self, *, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


def _artifact(library: Any, name: str, files: Sequence[Path]) -> Any:
    """Returns files as an artifact of trackio or wandb, which have the same names."""
    artifact = library.Artifact(name, type="broca-result")
    for file in files:
        artifact.add_file(str(file))
    return artifact


class _Mlflow:
    def __init__(self) -> None:
        import mlflow

        self._library = mlflow

    def begin(self, project: str, name: str | None, settings: Mapping[str, Any]) -> None:
        self._library.set_experiment(project)
        self._library.start_run(run_name=name)
        self._library.log_params({key: str(value)[:500] for key, value in settings.items()})

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._library.log_metrics(dict(values), step=step)

    def text(self, name: str, text: str) -> None:
        self._library.log_text(text, f"{name}.txt")

    def figure(self, name: str, file: Path) -> None:
        self._library.log_artifact(str(file), "figures")

    def artifact(self, name: str, files: Sequence[Path]) -> None:
        for file in files:
            self._library.log_artifact(str(file), name)

    def end(self, *, failed: bool) -> None:
        self._library.end_run("FAILED" if failed else "FINISHED")


TRACKERS: dict[str, TrackerKind] = {
    kind.name: kind
    for kind in (
        TrackerKind(name="trackio", help="a local dashboard, or a Space of the hub", make=_Trackio),
        TrackerKind(name="wandb", help="Weights & Biases", make=_Wandb),
        TrackerKind(name="mlflow", help="an MLflow server, or its files here", make=_Mlflow),
    )
}
"""The package's own trackers by name."""


def make_tracker(name: str) -> Tracker:
    """Makes a tracker by its name.

    Raises:
        UnknownName: No tracker has this name.
        BadInput: The package of the tracker is not installed.
    """
    kinds = Plugins(TrackerKind, *TRACKERS.values(), group=GROUP)
    if name not in kinds:
        raise UnknownName(
            f"`log` '{name}' is unknown{nearest(name, kinds)}; use one of {', '.join(kinds)}"
        )
    try:
        return kinds[name].make()
    except ImportError as error:
        raise BadInput(
            f"`log` {name} needs a package that is not installed ({error}): install it with "
            f"`pip install 'broca[{name}]'`"
        ) from error


class Log:
    """A run in a tracker: a context manager, which ends the run, as failed after an error.

    It can also be used as `on_progress`: `broca.localize(..., on_progress=log)`.

    Args:
        tracker: The name of a tracker, or a tracker.
        project: The project or experiment.
        name: Name of the run.
        settings: Settings of the run; nested values become `outer.inner`.
        also: Another report, which receives all progress too.

    Raises:
        BadInput: The tracker is unknown or not installed.
    """

    def __init__(
        self,
        tracker: str | Tracker,
        *,
        project: str = "broca",
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        also: Callable[[str, Progress | None], None] | None = None,
    ) -> None:
        self._tracker = make_tracker(tracker) if isinstance(tracker, str) else tracker
        self._begin = (project, name, flat(settings or {}))
        self._also = also
        self._step = 0
        self._stage = ""
        self._logged = -SECONDS

    def __enter__(self) -> Self:
        self._tracker.begin(*self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        self._tracker.end(failed=kind is not None)

    def __call__(self, stage: str, progress: Progress | None) -> None:
        """Logs the progress of a run, at most every few seconds and at every new stage."""
        if self._also is not None:
            self._also(stage, progress)
        if progress is None:
            return
        now = time.monotonic()
        if stage == self._stage and now - self._logged < SECONDS and progress.done < progress.total:
            return
        self._stage, self._logged = stage, now
        done = {"done": progress.done, "of": progress.total, "tokens": progress.tokens}
        self.log({f"progress/{stage}/{name}": float(value) for name, value in done.items()})

    def log(self, values: Mapping[str, float], *, step: int | None = None) -> None:
        """Logs numbers, by default at a new step."""
        self._step = self._step + 1 if step is None else step
        self._tracker.log(values, self._step)

    def result(self, result: Result, files: Sequence[Path] = ()) -> None:
        """Logs a result: its numbers, its summary, its figure, and its files as an artifact.

        Args:
            result: The result.
            files: The files of `result.save`.
        """
        numbers = numbers_of(result)
        if numbers:
            self.log(numbers)
        self._tracker.text("summary", "\n".join(result.summary()))
        with tempfile.TemporaryDirectory() as folder:
            try:
                figure = result.plot()
            except BadInput:  # this kind has no figure
                figure = None
            if figure is not None:
                self._tracker.figure(figure.name, figure.save(Path(folder) / f"{figure.name}.png"))
            if files:
                self._tracker.artifact(result.kind.replace(" ", "-"), files)


def numbers_of(result: Result) -> dict[str, float]:
    """Returns the scores and drops of a result, by name."""
    if isinstance(result, Localization):
        return {
            **numbers_of(result.verification),
            "selected": float(len(result.selected)),
            "rows": float(result.cost.rows),
        }
    if isinstance(result, Verification):
        numbers = {f"intact/{name}": value for name, value in result.baseline.items()}
        numbers |= {f"ablated/{name}": value for name, value in result.after.items()}
        numbers |= {f"drop/{line.task}": line.drop for line in result.drops}
        numbers["specific_drop"] = result.specific_drop
        if result.off_target_drop is not None:
            numbers["off_target_drop"] = result.off_target_drop
        return numbers
    if isinstance(result, Comparison):
        numbers = {
            f"changed/{line.model}/{line.task}": float(len(line.changed))
            for line in result.differences
        }
        return numbers | {
            f"score/{line.model}/{line.task}/{line.selection or 'intact'}": line.score
            for line in result.scores
        }
    if isinstance(result, Atlas):
        return {f"intact/{task.name}": task.intact for task in result.tasks}
    return {}


def flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Flattens nested settings: `outer.inner`."""
    flattened: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flattened |= flat(value, f"{above}{name}.")
        else:
            flattened[f"{above}{name}"] = value
    return flattened
