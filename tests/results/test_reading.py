"""Files and folders that broca wrote are recognized by their content; others are refused."""

import shutil
from pathlib import Path

import pytest
from results.samples import make_stress
from results.samples import make_result
from results.samples import make_atlas

import broca
from broca.errors import BadInput
from broca.results.files import encode
from broca.results.neurons import NeuronExperiment
from broca.results.reading import KINDS, read
from broca.results.reproduction import Reproduction

DATA = Path(__file__).parent / "data"
OLD = {
    "result.json": "localization", "verification.json": "verification", "atlas.json": "atlas",
    "stress.json": "stress test", "neurons.json": "neuron set", "erase.json": "neuron experiment",
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_old_files_are_found_by_name(name, tmp_path):
    """Files of schema 1 are read by their path and by their folder."""
    shutil.copy(DATA / name.replace(".json", ".schema1.json"), tmp_path / name)
    assert read(tmp_path / name).kind == read(tmp_path).kind == OLD[name]


@pytest.mark.parametrize("result", [make_result(), make_atlas(), make_stress()])
def test_files_say_what_they_are(result, tmp_path):
    """A file is recognized under any name."""
    (tmp_path / "renamed.json").write_text(encode(result))
    assert read(tmp_path / "renamed.json") == read(tmp_path) == result
    assert broca.read(str(tmp_path / "renamed.json")) == result


def test_a_run_is_read_as_its_localization(tmp_path):
    """A folder of a run is read as its localization; other files are read by their path."""
    make_result().save(tmp_path)
    make_stress().save(tmp_path)
    assert read(tmp_path) == make_result()
    assert read(tmp_path / "stress.json") == make_stress()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"kind": "other"}', "\ufeff"])
def test_other_files_are_refused(text, tmp_path):
    """The message says what to give."""
    (tmp_path / "any.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="is not a result of broca: give an out folder"):
        read(tmp_path / "any.json")
    with pytest.raises(BadInput, match=r"holds no result of broca \(result\.json"):
        read(tmp_path)
    with pytest.raises(BadInput, match="does not exist"):
        read(tmp_path / "nowhere.json")


def test_a_file_of_another_kind_is_refused(tmp_path):
    """The message names the file and the expected kind."""
    (tmp_path / "result.json").write_text(encode(make_atlas()))
    with pytest.raises(BadInput, match=r"result\.json' is not a localization of broca"):
        type(make_result()).read(tmp_path)


def test_every_kind_is_told_apart():
    """Kinds have different names and, except for experiments and reproductions, files."""
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    files = [kind.FILE for kind in KINDS if kind not in (NeuronExperiment, Reproduction)]
    assert len(set(files)) == len(files)
    assert all(files)


def test_the_old_way_to_save_warns(tmp_path):
    """`broca.save` saves like `Result.save` and warns of its deprecation."""
    with pytest.warns(DeprecationWarning, match=r"result\.save"):
        assert broca.save(make_result(), tmp_path)[0] == tmp_path / "result.json"
