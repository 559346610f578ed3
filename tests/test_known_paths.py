"""Paths that only a file names are refused; what may be read may not run."""

from dataclasses import replace
from pathlib import Path

import pytest
from results.samples import make_result

from broca.errors import BadInput
from broca.known_paths import named_in, require_named


@pytest.fixture
def task_file(tmp_path, monkeypatch):
    """A task file; this machine has no earlier commands."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "of others" / "words.yaml"
    file.parent.mkdir()
    file.write_text("task: words")
    return file


@pytest.mark.parametrize("named", ["{0.parent}", "data:{0}", "{0.parent}/link.csv", "{0}/"])
def test_a_file_that_may_be_read_does_not_run(task_file, named):
    """Neither a folder above it nor its reading lets a task file run, in this call or a later."""
    (task_file.parent / "link.csv").symlink_to(task_file)
    for call in ([named.format(task_file)], [], [str(task_file.parent)]):
        with named_in(call):
            if call:
                require_named(str(task_file.parent / "link.csv"))
            with pytest.raises(BadInput, match="name it in `trust`"):
                require_named(str(task_file), exactly=True)


@pytest.mark.parametrize("exactly", [True, False])
def test_a_result_grants_nothing(task_file, exactly):
    """A result may have been read from a file of others: what it names is asked for."""
    result = replace(make_result(), task=str(task_file))
    with named_in([result]), pytest.raises(BadInput, match=f"names '{task_file}'"):
        require_named(str(task_file), exactly=exactly)


def test_a_task_file_that_a_call_named_runs_later(task_file):
    """Its functions run in later calls, which need not name it; what lies beside it does not."""
    beside = task_file.with_name("beside.yaml")
    beside.write_text("task: beside")
    for call in ([f"capitals, {task_file}"], [], [str(task_file.parent)]):
        with named_in(call):
            require_named(str(task_file), exactly=True)
    with named_in([str(task_file.parent)]):
        require_named(str(beside))
    with named_in([]), pytest.raises(BadInput, match=f"names '{beside}'"):
        require_named(str(beside))


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\udcff"])
def test_a_name_of_several_lines_forges_no_path(task_file, end):
    """A path is one line of the list, whatever ends a line elsewhere; bytes are no error."""
    for name in (f"{task_file.parent}/a{end}{task_file}", f"{task_file}{end}"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
        require_named(name)  # as code does
    with named_in([]), pytest.raises(BadInput, match="name it in `trust`"):
        require_named(str(task_file))
