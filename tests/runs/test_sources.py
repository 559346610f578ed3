"""The files from which a result was computed."""

from types import SimpleNamespace

import pytest

from broca.models import hub
from broca.runs.sources import sources_of
from broca.tasks import Catalog


class Built:
    """A catalog with some built tasks."""

    def __init__(self, *tasks, include_path=None):
        self.built = tasks
        self.include_path = include_path


def task(source, path=None, **options):
    """Returns a task of lm-eval that is defined in a file."""
    metadata = {} if source is None else {"config_source": str(source)}
    config = SimpleNamespace(metadata=metadata, dataset_path=path, dataset_kwargs=options)
    return SimpleNamespace(config=config)


def names(*tasks, model="reference-small", include_path=None):
    """Returns the names of the source files, without those of the package."""
    paths = sources_of(model, None, [Built(*tasks, include_path=include_path)])
    return paths and {path.name for path in paths if "broca" not in path.parts}


def test_a_shipped_model_on_shipped_tasks():
    """The sources are the weights, the task's definition and data, and broca's modules."""
    (built,) = Catalog().harness_tasks("sorting")[0]
    paths = sources_of("reference-small", None, [Built(("sorting", (built,)))])
    last = {"/".join(path.parts[-2:]) for path in paths}
    assert {"reference-small/model.safetensors", "shipped/sorting.yaml", "runs/sources.py"} <= last
    assert any("data/sorting" in path.as_posix() and path.suffix == ".jsonl" for path in paths)
    assert all(path.exists() for path in paths)


def test_a_folder_of_tasks_with_data_beside_it(tmp_path):
    """The sources are all files of the folder, and the data wherever they are."""
    tasks, data = tmp_path / "tasks", tmp_path / "data.jsonl"
    tasks.mkdir()
    (tasks / "own.yaml").write_text("")
    (tasks / "utils.py").write_text("")
    data.write_text("")
    built = ("own", (task(tasks / "own.yaml", "json", data_files={"test": [str(data)]}),))
    source_names = names(built, include_path=tasks)
    assert source_names == {"tasks", "own.yaml", "utils.py", "data.jsonl"}


def test_examples_and_a_model_of_ones_own(tmp_path):
    """The sources are the file of examples and all files of the model's folder."""
    model, examples = tmp_path / "model", tmp_path / "mine.jsonl"
    model.mkdir()
    (model / "config.json").write_text("{}")
    examples.write_text("")
    source_names = names((str(examples), ()), model=str(model))
    assert source_names == {"model", "config.json", "mine.jsonl"}


@pytest.mark.parametrize(
    "unknown",
    [
        task(None),
        task("/somewhere/else/own.yaml"),
        task("own.yaml", "json", data_files="https://example.org/data.json"),
        task("own.yaml", "somebody/not-in-the-cache"),
    ],
    ids=["no definition", "a function of its own", "an address", "not cached"],
)
def test_what_cannot_be_told_is_not_guessed(unknown):
    """Without known sources the result is None, so that the run is checked in full."""
    assert names(("own", (unknown,))) is None


def test_repositories_of_the_hub_are_known_by_their_cache(tmp_path, monkeypatch):
    """The sources are the commit of the branch and the files of its snapshot."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "datasets--a--b"
    (folder / "refs").mkdir(parents=True)
    (folder / "snapshots" / "c0ffee").mkdir(parents=True)
    (folder / "refs" / "main").write_text("c0ffee")
    (folder / "snapshots" / "c0ffee" / "train.parquet").write_text("")
    assert hub.cached_files("a/b", "model") == []
    assert hub.cached_files("a/b", "dataset", "other") == []
    for revision in (None, "c0ffee"):
        paths = hub.cached_files("a/b", "dataset", revision)
        assert paths[-1].name == "train.parquet"
    assert names(("t", (task("/nowhere/t.yaml", "a/b"),))) == {"nowhere", "main", "train.parquet"}
