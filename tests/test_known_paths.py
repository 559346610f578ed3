"""Paths that only a file names are refused; what may be read may not run."""

from dataclasses import replace
from pathlib import Path

import pytest
from results.samples import make_result

from broca.errors import BadInput, BrocaError
from broca.known_paths import named_in, require_named
from broca.models import load
from broca.tasks.data_sets import read_data_set


@pytest.fixture
def file(tmp_path):
    """A task file in a folder."""
    (file := tmp_path / "words.yaml").write_text("task: words")
    return file


@pytest.mark.parametrize("named", ["{0.parent}", "data:{0}", "{0.parent}/link.csv", "result"])
def test_a_file_that_may_be_read_does_not_run(file, named):
    """A folder above a task file, its reading, and a result do not let it run, now or later."""
    (link := file.with_name("link.csv")).symlink_to(file)
    result = replace(make_result(), task=str(file))
    for call in ([result if named == "result" else named.format(file)], [], [str(file.parent)]):
        with named_in(call), pytest.raises(BadInput, match="name it in `trust`"):
            require_named(str(file), exactly=True)
        with named_in([*call, str(link)]):
            require_named(str(link))


def test_what_a_call_named_exactly_is_known_later(file):
    """A task file runs in later calls that do not name it; what lies in a named folder is not."""
    for call in ([f"capitals, {file}"], []):
        with named_in(call):
            require_named(str(file), exactly=True)
    with named_in([str(file.parent)]):
        require_named(str(file))
    with named_in([make_result()]), pytest.raises(BadInput, match=f"names '{file}'"):
        require_named(str(file))


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\udcff"])
def test_a_name_of_several_lines_forges_no_path(file, end):
    """A path is one line of the list, whatever ends a line elsewhere; bytes are no error."""
    for name in (f"{file.parent}/a{end}{file}", f"{file}{end}"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
        require_named(name)  # as code does
    with named_in([]), pytest.raises(BadInput, match="name it in `trust`"):
        require_named(str(file))


@pytest.mark.parametrize(
    "name", ["./base", "./in", "../secret:a.gguf", "./card", "./link", "../secret/default"]
)
def test_what_is_opened_is_what_was_named(tmp_path, monkeypatch, name):
    """Bases of adapters, files of data and links lie in what was named, however it is written."""
    (run := tmp_path / "run").mkdir()
    monkeypatch.chdir(run)
    adapter = '{"base_model_name_or_path": "%s", "peft_type": "A"}'
    for file, text in (
        ("base/adapter_config.json", adapter % "../../secret"),
        ("in/adapter_config.json", adapter % "../secret:a.gguf"),
        ("card/README.md", "---\nconfigs: [{config_name: a, data_files: ../../secret/*}]\n---"),
        ("../secret/a.gguf", ""), ("../secret/a.jsonl", "{}"), ("link/README.md", ""),
    ):  # fmt: skip
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(text)
    Path("link/train.jsonl").symlink_to(tmp_path / "secret/a.jsonl")
    opens = load if name in ("./base", "./in", "../secret:a.gguf") else read_data_set
    with named_in(["."]), pytest.raises(BadInput, match=r"names '.*secret.* `trust`"):
        opens(name)
    with named_in([".", "../secret"]), pytest.raises(BrocaError) as refused:
        opens(name)
    assert "`trust`" not in str(refused.value)
