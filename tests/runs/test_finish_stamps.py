"""A finished command is recognized by its options and by the files that it read and wrote."""

import json
import os

from broca.runs.finish_stamps import NAME, finished_files, note_finished

ASKED = {"verb": "verify", "seed": 0, "others": ("capitals",)}


def make(folder):
    """Makes a folder with a finished verification; returns its result, its page and its input."""
    folder.mkdir()
    result, page, read = (folder / name for name in ("verification.json", "report.html", "model"))
    for path in (result, page, read):
        path.write_text("first")
    note_finished(folder, ASKED, [read], [result, page])
    return result, page, read


def test_the_same_command_finds_what_it_wrote(tmp_path):
    """Other options, another verb and another folder have no finished files."""
    result, page, _ = make(tmp_path / "out")
    assert finished_files(tmp_path / "out", ASKED) == (result, page)
    assert finished_files(tmp_path / "out", {**ASKED, "seed": 1}) == ()
    assert finished_files(tmp_path / "out", {**ASKED, "verb": "stress"}) == ()
    assert finished_files(tmp_path, ASKED) == ()


def test_changed_files_end_it(tmp_path):
    """A changed input or result invalidates the record; a page may change but must exist."""
    result, page, read = make(tmp_path / "out")
    page.write_text("with another section")
    assert finished_files(tmp_path / "out", ASKED)
    for path in (result, read):
        before = path.stat().st_mtime_ns
        os.utime(path, ns=(before, before + 1))
        assert not finished_files(tmp_path / "out", ASKED)
        os.utime(path, ns=(before, before))
    page.unlink()
    assert not finished_files(tmp_path / "out", ASKED)


def test_commands_have_entries_of_their_own(tmp_path):
    """A command keeps its entry when another finishes; unknown sources remove the entry."""
    result, page, read = make(tmp_path / "out")
    other = tmp_path / "out" / "stress.json"
    other.write_text("{}")
    note_finished(tmp_path / "out", {"verb": "stress"}, [read], [other])
    assert finished_files(tmp_path / "out", ASKED) == (result, page)
    assert finished_files(tmp_path / "out", {"verb": "stress"}) == (other,)
    note_finished(tmp_path / "out", ASKED, None, [result, page])
    assert not finished_files(tmp_path / "out", ASKED)


def test_a_file_of_another_kind_is_no_record(tmp_path):
    """A damaged record counts as no record."""
    make(tmp_path / "out")
    for text in ("", "[]", '{"verify": 3}', json.dumps({"verify": {"options": {}}})):
        (tmp_path / "out" / NAME).write_text(text)
        assert not finished_files(tmp_path / "out", ASKED)


def test_a_folder_that_was_read_has_the_same_files(tmp_path):
    """Python's cache in a source folder changes nothing; a new file of tasks does."""
    result, page, _ = make(tmp_path / "out")
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    (tasks / "sums.yaml").write_text("task: sums")
    note_finished(tmp_path / "out", ASKED, [tasks], [result, page])
    (tasks / "__pycache__").mkdir()
    assert finished_files(tmp_path / "out", ASKED)
    (tasks / "more.yaml").write_text("task: more")
    assert not finished_files(tmp_path / "out", ASKED)
