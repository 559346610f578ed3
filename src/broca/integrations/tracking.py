"""Experiment trackers: settings, progress, scores and files of a run."""

import posixpath
import re
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self

from broca.engine import Progress
from broca.errors import MissingExtra, UnknownName, require_known
from broca.results.base import Result
from broca.results.comparison import Comparison
from broca.results.localization import Localization
from broca.results.verification import Verification

SECONDS = 5.0
"""Minimum seconds between two logs of progress."""


class Tracker(Protocol):
    """A run in a tracker."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers."""

    def result(self, name: str, summary: str, files: Sequence[Path]) -> None:
        """Logs the text of a result, and stores its files under its name."""

    def end(self, *, failed: bool) -> None:
        """Ends the run."""


Begin = Callable[[str, Mapping[str, Any]], Tracker]
"""Begins a run with a project and settings."""


class _Wandb:
    """A run of Weights & Biases."""

    library = "wandb"

    def __init__(self, project: str, settings: Mapping[str, Any], **options: Any) -> None:
        self._library = import_module(self.library)
        self._library.init(project=project, config=dict(settings), **options)

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._library.log(dict(values), step=step)

    def result(self, name: str, summary: str, files: Sequence[Path]) -> None:
        self._library.log({"summary": summary})
        artifact = self._library.Artifact(name, type="broca-result")
        for file in files:
            artifact.add_file(str(file))
        self._library.log_artifact(artifact)

    def end(self, *, failed: bool) -> None:
        self._library.finish(exit_code=int(failed))


class _Trackio(_Wandb):
    """A run of trackio, whose functions have the names of wandb's; it has no failed runs."""

    library = "trackio"

    def __init__(self, project: str, settings: Mapping[str, Any]) -> None:
        super().__init__(project, settings, auto_log_gpu=False, embed=False)

    def end(self, *, failed: bool) -> None:
        self._library.finish()


class _Mlflow:
    """A run of an MLflow server, or of MLflow's files."""

    def __init__(self, project: str, settings: Mapping[str, Any]) -> None:
        self._library = import_module("mlflow")
        self._library.set_experiment(project)
        self._library.start_run()
        self._library.log_params({key: str(value)[:500] for key, value in settings.items()})

    def log(self, values: Mapping[str, float], step: int) -> None:
        # of other characters, and of names that are no normal paths, MLflow has no metrics
        plain = (posixpath.normpath(re.sub(r"[^\w/.: -]|\.\./", "_", name)) for name in values)
        self._library.log_metrics(dict(zip(plain, values.values(), strict=True)), step=step)

    def result(self, name: str, summary: str, files: Sequence[Path]) -> None:
        self._library.log_text(summary, "summary.txt")
        for file in files:
            self._library.log_artifact(str(file), name)

    def end(self, *, failed: bool) -> None:
        self._library.end_run("FAILED" if failed else "FINISHED")


TRACKERS: dict[str, Begin] = {"trackio": _Trackio, "wandb": _Wandb, "mlflow": _Mlflow}
"""All trackers by their name in `log`, which is that of the extra that installs them."""


class Log:
    """A run in a tracker: a context manager, which ends the run, as failed after an error.

    It can also be used as `on_progress`: `broca.localize(..., on_progress=log)`.

    Args:
        tracker: Name of a tracker, or a function that begins a run; None logs nothing.
        project: The project or experiment.
        settings: Settings of the run.
        also: Another report, which receives all progress too.

    Raises:
        UnknownName: There is no tracker of this name.
        MissingExtra: Within the context, the tracker is not installed.
    """

    def __init__(
        self,
        tracker: str | Begin | None,
        *,
        project: str = "broca",
        settings: Mapping[str, Any] | None = None,
        also: Callable[[str, Progress | None], None] | None = None,
    ) -> None:
        if isinstance(tracker, str):
            require_known("`log`", tracker, TRACKERS, error=UnknownName)
        self._named, self._project, self._settings = tracker, project, settings or {}
        self._tracker: Tracker | None = None
        self._also, self._step = also, 0
        self._stage, self._logged = "", -SECONDS

    def __enter__(self) -> Self:
        name = self._named
        if name is not None:
            try:
                begin = TRACKERS[name] if isinstance(name, str) else name
                self._tracker = begin(self._project, self._settings)
            except ImportError as error:
                raise MissingExtra(
                    f"`log` {name} needs a package that is not installed ({error}): install it "
                    f"with `pip install 'broca[{name}]'`"
                ) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._tracker is not None:
            self._tracker.end(failed=kind is not None)

    def __call__(self, stage: str, progress: Progress | None) -> None:
        """Logs the progress of a run, at most every few seconds and at every new stage."""
        if self._also is not None:
            self._also(stage, progress)
        if progress is None or self._tracker is None:
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
        if self._tracker is not None and values:
            self._tracker.log(values, self._step)

    def result(self, result: Result, files: Sequence[Path] = ()) -> None:
        """Logs a result: its numbers, its summary, and its files as an artifact.

        Args:
            result: The result.
            files: The files of `result.save`.
        """
        if self._tracker is not None:
            self.log(numbers_of(result))
            name, summary = result.kind.replace(" ", "-"), "\n".join(result.summary())
            self._tracker.result(name, summary, files)


def numbers_of(result: Result) -> dict[str, float]:
    """Returns the scores and drops of a result, by name."""
    numbers: dict[str, float] = {}
    if isinstance(result, Localization):
        numbers = {"selected": float(len(result.selected)), "rows": float(result.cost.rows)}
        result = result.verification
    if isinstance(result, Verification):
        numbers |= {f"intact/{name}": value for name, value in result.baseline.items()}
        numbers |= {f"ablated/{name}": value for name, value in result.after.items()}
        numbers |= {f"drop/{line.task}": line.drop for line in result.drops}
        if result.specific_drop is not None and result.verdict is not None:
            numbers["specific_drop"] = result.specific_drop
    if isinstance(result, Comparison):
        for score in result.scores:
            under = score.selection or "intact"
            numbers[f"score/{score.model}/{score.task}/{under}"] = score.score
    return numbers
