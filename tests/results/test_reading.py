"""Any file or folder that broca wrote is found to be what it is; anything else is refused."""

import shutil
from pathlib import Path

import pytest
from reports.test_escaping import make_stress
from reports.test_page import make_result
from results.test_atlas import make_atlas

import broca
from broca.errors import BadInput
from broca.results.codec import encode
from broca.results.neurons import NeuronExperiment
from broca.results.reading import KINDS, read

DATA = Path(__file__).parent / "data"
OLD = {
    "result.json": "localization", "verification.json": "verification", "atlas.json": "atlas",
    "stress.json": "stress test", "neurons.json": "neuron set", "erase.json": "neuron experiment",
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_old_files_are_found_by_name(name, tmp_path):
    """A file, and the folder that holds it alone; experiments by what they hold."""
    shutil.copy(DATA / name.replace(".json", ".schema1.json"), tmp_path / name)
    assert read(tmp_path / name).kind == read(tmp_path).kind == OLD[name]


@pytest.mark.parametrize("result", [make_result(), make_atlas(), make_stress()])
def test_files_say_what_they_are(result, tmp_path):
    """Under any name."""
    (tmp_path / "renamed.json").write_text(encode(result))
    assert read(tmp_path / "renamed.json") == read(tmp_path) == result
    assert broca.read(str(tmp_path / "renamed.json")) == result


def test_a_run_is_read_as_its_localization(tmp_path):
    """Whatever lies beside it, unless its file is named."""
    make_result().save(tmp_path)
    make_stress().save(tmp_path)
    assert read(tmp_path) == make_result()
    assert read(tmp_path / "stress.json") == make_stress()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"kind": "other"}', "\ufeff"])
def test_other_files_are_refused(text, tmp_path):
    """In one line that says what to give."""
    (tmp_path / "any.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="is not a result of broca: give an out folder"):
        read(tmp_path / "any.json")
    with pytest.raises(BadInput, match=r"holds no result of broca \(result\.json"):
        read(tmp_path)
    with pytest.raises(BadInput, match="does not exist"):
        read(tmp_path / "nowhere.json")


def test_a_file_of_another_kind_is_refused(tmp_path):
    """Its message names the file, what it is not, and where such a thing is found."""
    (tmp_path / "result.json").write_text(encode(make_atlas()))
    with pytest.raises(BadInput, match=r"result\.json' is not a localization of broca"):
        type(make_result()).read(tmp_path)


def test_every_kind_is_told_apart():
    """By its own word; and by its own file, experiments aside."""
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    files = [kind.FILE for kind in KINDS if kind is not NeuronExperiment]
    assert len(set(files)) == len(files)
    assert all(files)


def test_the_old_way_to_save_warns(tmp_path):
    """And does the same."""
    with pytest.warns(DeprecationWarning, match=r"result\.save"):
        assert broca.save(make_result(), tmp_path)[0] == tmp_path / "result.json"
