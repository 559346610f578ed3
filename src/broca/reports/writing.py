"""The page and the figure of any result, and the files of an out folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from broca.errors import BadInput
from broca.reports import result_figures
from broca.reports.atlas import matrix_figure, mean_figure, render_atlas_page
from broca.reports.comparison import comparison_figures, render_comparison_page
from broca.reports.figure import Figure
from broca.reports.neurons import (
    neurons_by_layer,
    render_experiment_page,
    render_neurons_page,
)
from broca.reports.overlap import is_overlap, overlap_figure, overlap_page
from broca.reports.page import render_html, render_refit_page
from broca.reports.stress import render_stress_page
from broca.reports.verification import render_verification_page
from broca.results.atlas import Atlas
from broca.results.base import Result
from broca.results.codec import encode
from broca.results.comparison import Comparison
from broca.results.files import check_out_folder, write_beside
from broca.results.localization import Localization
from broca.results.neurons import NeuronExperiment, NeuronSet
from broca.results.refit import Refit
from broca.results.reproduction import Reproduction
from broca.results.stress_test import StressTest
from broca.results.verification import Verification

LaterT = TypeVar("LaterT", Verification, StressTest)

_PAGES: dict[type[Result], Callable[[Any], str]] = {
    Localization: render_html,
    Verification: render_verification_page,
    Atlas: render_atlas_page,
    StressTest: render_stress_page,
    Refit: render_refit_page,
    NeuronSet: render_neurons_page,
    NeuronExperiment: render_experiment_page,
    Comparison: render_comparison_page,
}
_FIGURES: dict[type[Result], Callable[[Any], tuple[Figure, ...]]] = {
    Localization: lambda result: (
        result_figures.components(result), *_of_verification(result.verification)
    ),
    Refit: lambda result: (result_figures.components(result),),
    Verification: lambda result: (*_of_verification(result), result_figures.members(result)),
    Atlas: lambda result: (matrix_figure(result), mean_figure(result)),
    StressTest: lambda result: (result_figures.shifts(result), result_figures.necessity(result)),
    NeuronSet: lambda result: (result_figures.located(result), neurons_by_layer(result)),
    Comparison: comparison_figures,
}  # fmt: skip
"""The figures of each kind of result, the main one first."""


def _of_verification(verification: Verification) -> tuple[Figure, ...]:
    """Returns the figures of a verification."""
    drawn = [result_figures.before_after(verification)]
    if verification.controls:
        drawn.append(result_figures.controls(verification.controls))
    if verification.curve is not None:
        drawn.append(result_figures.curve(verification.curve))
    return tuple(drawn)


def render(result: Result) -> str:
    """Renders a result as a self-contained HTML page; text is escaped.

    Raises:
        BadInput: This kind of result has no page.
    """
    if is_overlap(result):
        return overlap_page(result)
    page: str = _of(_PAGES, result, "page")(result)
    return page


def plot(result: Result) -> Figure:
    """Returns the main figure of a result.

    Raises:
        BadInput: This kind of result has no figure.
    """
    return plots(result)[0]


def plots(result: Result) -> tuple[Figure, ...]:
    """Returns all figures of a result, the main figure first.

    Raises:
        BadInput: This kind of result has no figure.
    """
    if is_overlap(result):
        return (overlap_figure(result),)
    drawn: tuple[Figure, ...] = _of(_FIGURES, result, "figure")(result)
    return drawn


def write(
    result: Result, folder: str | Path, *, run: Localization | None = None
) -> tuple[Path, ...]:
    """Writes a result and its page, by temporary files that are renamed.

    The page of a verification or a stress test of a run's selection is the report of the run, which
    is written again. The run is `run`, or the run in the folder.

    Args:
        result: The result.
        folder: The folder, which is created.
        run: The localization that a verification or a stress test belongs to.

    Returns:
        The files: the result first, its page last.

    Raises:
        BadInput: The folder cannot be written.
    """
    place = check_out_folder(folder)
    return _written(place, {_file_of(result): encode(result)} | _pages(result, place, run))


def write_page(result: Result, folder: str | Path) -> tuple[Path, ...]:
    """Writes only the page of a result.

    Raises:
        BadInput: This kind of result has no page, or the folder cannot be written.
    """
    place = check_out_folder(folder)
    pages = _pages(result, place, None)
    if not pages:
        raise BadInput(f"{result.described()} has no page: use `to_frame()`")
    return _written(place, pages)


def _file_of(result: Result) -> str:
    """Returns the name of a result's file."""
    if isinstance(result, Reproduction):
        return f"{result.name}.json"
    if isinstance(result, NeuronExperiment):
        return f"{result.verb}.json"
    return result.FILE


def _pages(result: Result, place: Path, run: Localization | None) -> dict[str, str]:
    """Returns the pages that a result changes in a folder, by name."""
    texts: dict[str, str] = {}
    if isinstance(result, Localization):
        texts[result.PAGE] = _report(result, place)
    elif isinstance(result, Verification):
        localization = run or _run_in(place, result)
        if localization is None:
            texts[result.PAGE] = render(result)
        else:
            texts[localization.PAGE] = _report(localization, place, verification=result)
    elif isinstance(result, StressTest):
        localization = run or _run_in(place, result)
        if localization is not None and _is_of(result, localization):
            texts[localization.PAGE] = _report(localization, place, stress=result)
        texts[result.PAGE] = render(result)
    elif type(result) in _PAGES:
        texts[result.PAGE or f"{Path(_file_of(result)).stem}.html"] = render(result)
    return texts


def _written(place: Path, texts: dict[str, str]) -> tuple[Path, ...]:
    for file, text in texts.items():
        write_beside(place / file, text)
    return tuple(place / file for file in texts)


def _of(table: dict[type[Result], Callable[[Any], Any]], result: Result, what: str) -> Any:
    if type(result) not in table:
        raise BadInput(f"{result.described()} has no {what}: use `to_frame()`")
    return table[type(result)]


def _report(
    run: Localization,
    folder: Path,
    *,
    verification: Verification | None = None,
    stress: StressTest | None = None,
) -> str:
    """Renders the report of a run, with the results of later commands on the same components.

    Results that are not given are read from the folder, and are used if they concern the run's
    model and selection.
    """
    return render_html(
        run,
        verification or _later(Verification, run, folder),
        stress or _later(StressTest, run, folder),
    )


def _later(kind: type[LaterT], run: Localization, folder: Path) -> LaterT | None:
    if not (folder / kind.FILE).is_file():
        return None
    result = kind.read(folder)
    return result if _is_of(result, run) else None


def _is_of(result: Verification | StressTest, run: Localization) -> bool:
    """Whether a result has the weights, the components and, if it names one, the task of a run."""
    return (
        result.model.fingerprint == run.model.fingerprint
        and set(result.heads) == set(run.selected)
        and getattr(result, "task", run.task) == run.task
    )


def _run_in(folder: Path, result: Verification | StressTest) -> Localization | None:
    """Returns the localization in a folder if the result concerns its selection."""
    try:
        run = Localization.read(folder)
    except BadInput:  # there is no file, or another kind of file
        return None
    return run if _is_of(result, run) else None
