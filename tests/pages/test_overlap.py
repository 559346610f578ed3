"""The overlap of tasks' neurons has a matrix, a figure and a page."""

import pytest
from broca.results.pages.overlap import matrix
from results.samples import make_experiment

from broca.errors import BadInput
from broca.results.base import ModelInfo
from broca.results.files import decode, encode
from broca.results.neurons import ComparedHalves, NeuronExperiment, Overlap, Overlaps

SHARES = {("a/1", "a/2"): 0.5, ("a/1", "b/1"): 0.2, ("a/1", "b/2"): 0.4, ("a/2", "b/1"): 0.0,
          ("a/2", "b/2"): 0.2, ("b/1", "b/2"): None}  # fmt: skip
PAIRS = tuple(
    ComparedHalves(first, second, "", (3, 4), Overlap(1, 0.5, 0.5, share, 0.5, 0.1, 0.1))
    for (first, second), share in SHARES.items()
)


def make_overlap():
    """Returns an experiment with these pairs."""
    return NeuronExperiment(
        command="broca neurons overlap",
        model=ModelInfo(name="<b>", fingerprint=""),
        settings={},
        result=Overlaps(("a", "b"), PAIRS, {}),
    )


def test_matrix_has_the_halves_on_its_diagonal():
    """Entries off the diagonal are means of four pairs; unknown values remain unknown."""
    (first, across), (mirrored, unknown) = matrix(["a", "b"], PAIRS)
    assert (first, unknown) == (0.5, None)
    assert across == mirrored == pytest.approx(0.2)


def test_page_and_figure_are_made_of_a_file_too(tmp_path):
    """A decoded result is saved with its page and plotted, and the model's name is escaped."""
    again = decode(NeuronExperiment, encode(make_overlap()))
    files = again.save(tmp_path)
    assert [file.name for file in files] == ["overlap.json", "overlap.html"]
    assert "&lt;b&gt;" in files[1].read_text()
    assert again.plot().chart.rows == ("a", "b")


def test_other_experiments_have_no_figure(tmp_path):
    """Other experiments have a page of tables, and `plot` refuses them."""
    files = make_experiment("erase").save(tmp_path)
    assert [file.name for file in files] == ["erase.json", "erase.html"]
    with pytest.raises(BadInput, match="no figure"):
        make_experiment("erase").plot()
