"""Every result has a short summary and becomes a table, a figure and files."""

import sys

import pytest
import torch
from results.samples import make_stress
from results.samples import make_result
from results.samples import make_atlas
from results.samples import make_comparison
from results.samples import make_estimate
from results.samples import make_diagnosis
from results.samples import make_export
from results.samples import make_contents
from results.samples import make_experiment, make_neurons
from results.samples import make_refit
from results.samples import make_reproduction
from results.samples import make_scan
from results.samples import make_description, make_list
from simulated import toy_verification

from broca.errors import BadInput
from broca.models import GatedModel
from broca.results.base import AblationInfo, ModelInfo, joined_names
from broca.results.reading import KINDS, read
from broca.testing import tiny_llama

MODEL = ModelInfo("toy", "abc")


# number of lines of each table, and its first columns
MAKERS = {
    make_result: (6, ["component", "layer", "head", "effect", "low", "high"]),
    toy_verification: (5, ["task", "role", "metric", "items", "before", "after", "drop"]),
    make_atlas: (6, ["task", "capability", "component", "effect", "low", "high", "selected"]),
    make_stress: (6, ["measure", "of", "value", "low", "high"]),
    make_neurons: (2, ["component", "layer", "index", "score", "sigmas"]),
    make_experiment: (2, ["method", "questions", "neurons", "before"]),
    make_refit: (6, ["component", "layer", "head", "effect"]),
    make_estimate: (2, ["method", "rows", "tokens", "seconds"]),
    make_export: (2, ["component", "ablation", "scale"]),
    make_comparison: (8, ["component", "model", "task", "effect", "low", "high", "difference"]),
    make_reproduction: (2, ["model", "drop", "published"]),
    make_scan: (3, ["component", "kind", "layer", "index"]),
    make_list: (3, ["task", "origin"]),
    make_description: (1, ["name", "tasks", "request_kind", "items"]),
    make_diagnosis: (2, ["name", "state", "description", "remedy"]),
    make_contents: (2, ["run", "task", "method", "seed"]),
}
WITHOUT_FIGURE = (
    make_experiment, make_estimate, make_export, make_reproduction, make_scan, make_list,
    make_description, make_diagnosis, make_contents,
)  # fmt: skip


def test_every_kind_is_tried_here():
    """`MAKERS` has an example of every kind of result."""
    assert {type(make()) for make in MAKERS} == set(KINDS)


@pytest.mark.parametrize("make", MAKERS)
def test_repr_is_short_and_to_frame_has_a_row_for_each_thing(make):
    """The text has at most five lines; the table has the documented rows and columns."""
    result = make()
    rows, columns = MAKERS[make]
    assert 1 <= len(repr(result).splitlines()) <= 5
    frame = result.to_frame()
    assert (len(frame), list(frame.columns)[: len(columns)]) == (rows, columns)


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_saved_is_read_again(make, tmp_path):
    """Every kind is read again from its folder and its file, and its pages are written."""
    result = make()
    first, *pages = result.save(tmp_path / "new")
    assert read(tmp_path / "new") == read(first) == result
    experiment_page = [f"{first.stem}.html"] if make is make_experiment else []
    assert [page.name for page in pages] == ([result.PAGE] if result.PAGE else experiment_page)


def test_the_verdict_comes_first():
    """The text starts with the verdict, or else with the drop or the reason for no selection."""
    verification = toy_verification()
    text = f"{verification.verdict.label}: {verification.verdict.text}"
    assert repr(verification).startswith(text)
    result = make_result(verification=verification)
    assert result.verdict is verification.verdict
    assert repr(result).startswith(text)
    assert repr(make_result()).startswith("not verified: adding loses 96.0 points, 95.0 of them")
    abstained = make_result(selected=(), abstained=True, reason="no harm")
    assert repr(abstained).startswith("nothing selected: no harm")
    assert abstained.verdict is None
    assert repr(make_stress()).startswith("transfers: it does")


def test_selected_components_are_marked_in_the_frame():
    """Selected components have True in the column `selected`; intervals have two columns."""
    frame = make_result().to_frame().set_index("component")
    assert list(frame.index[frame["selected"]]) == ["L1H2", "L0H0"]
    assert (frame.loc["L0H0", "low"], frame.loc["L0H0", "high"]) == (-0.2, -0.02)
    assert make_atlas().to_frame().query("selected")["component"].tolist() == ["L0H0"]


@pytest.mark.parametrize("make", [make for make in MAKERS if make not in WITHOUT_FIGURE])
def test_plot_shows_the_numbers(make):
    """The figure is an SVG element with several marks."""
    drawn = make().plot().svg()
    assert drawn.startswith("<svg")
    assert drawn.count("<rect") + drawn.count("<circle") > 1


@pytest.mark.parametrize("make", WITHOUT_FIGURE)
def test_what_has_no_figure_says_so(make):
    """The message names `to_frame()` instead."""
    with pytest.raises(BadInput, match="has no figure: use `to_frame"):
        make().plot()


def test_long_lists_are_cut():
    """The text ends with the number of names that are left out."""
    assert joined_names(("a", "b")) == "a, b"
    assert joined_names(tuple("abcd"), most=2) == "a, b and 2 more"


def test_a_result_ablates_its_selection_in_any_model():
    """`ablated` takes a gated or a plain model, and the run's factor or another one."""
    plain = tiny_llama(heads=4)
    tokens = torch.tensor([[3, 4, 5]])
    result = make_result(ablation=AblationInfo("zero", 0.5))
    assert result.selected == ("L1H2", "L0H0")
    gated = GatedModel.wrap(plain, None, name="tiny")
    with torch.no_grad():
        intact = plain(tokens).logits
        for scale in (None, 0.0):
            with gated.ablated("L1H2+L0H0", 0.5 if scale is None else scale):
                reference = plain(tokens).logits
            for model in (gated, plain):
                with result.ablated(model, scale):
                    assert torch.equal(plain(tokens).logits, reference)
        assert torch.equal(plain(tokens).logits, intact)
    with pytest.raises(BadInput, match="replaced by mean ablation, which needs the run's items"):
        make_result(ablation=AblationInfo("mean", 0.0)).ablated(plain)
    with pytest.raises(BadInput, match="selects no components"):
        make_result(selected=(), abstained=True, reason="no harm").ablated(plain)
    with pytest.raises(BadInput, match="`model` is a str"):
        result.ablated("reference")


@pytest.mark.parametrize("make", MAKERS)
def test_the_frame_of_polars_has_the_same_cells(make):
    """Columns, rows and values equal those of pandas, and unknown values are null."""
    result = make()
    frame = result.to_frame("polars")
    assert frame.to_dicts() == result.records()
    assert list(frame.columns) == list(result.to_frame().columns)


def test_other_frames_are_refused(monkeypatch):
    """An unknown library is refused, and so is polars if it is not installed."""
    with pytest.raises(BadInput, match="`library` 'arrow' is unknown: use pandas or polars"):
        make_refit().to_frame("arrow")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(BadInput, match="polars is not installed"):
        make_refit().to_frame("polars")
