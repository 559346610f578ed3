"""Out folders: claimed, gone on with, replaced, given back."""

import pytest

from broca.errors import BadInput, OutFolderTaken
from broca.runs.folder import RunFolder


def claim(folder, *, seed=0, **options):
    """Claims a folder for a small command."""
    folder.mkdir(exist_ok=True)
    return RunFolder.claim(
        folder, verb="localize", asked={"task": "a", "seed": seed}, how={}, command=["broca"],
        **options,
    )  # fmt: skip


def test_another_command_is_refused_with_the_first_difference(tmp_path):
    """The same goes on, whatever only decides how it is computed."""
    assert not claim(tmp_path / "out").resumed
    assert claim(tmp_path / "out").resumed
    with pytest.raises(OutFolderTaken, match=r"there `seed` is 0, here 1; .*`fresh`"):
        claim(tmp_path / "out", seed=1)
    with pytest.raises(BadInput, match="exclude each other"):
        claim(tmp_path / "out", fresh=True, resume=True)


def test_fresh_replaces_results_and_sets_the_journal_aside(tmp_path):
    """Nothing that was measured is deleted."""
    folder = tmp_path / "out"
    claim(folder)
    for round_ in (1, 2):
        (folder / "journal.sqlite").write_text(f"rows {round_}")
        (folder / "result.json").write_text("{}")
        assert not claim(folder, seed=round_, fresh=True).resumed
        assert not (folder / "result.json").exists()
        assert (folder / f"journal.old{round_}.sqlite").read_text() == f"rows {round_}"


def test_resume_needs_a_run(tmp_path):
    """And a result of unknown origin is not overwritten."""
    with pytest.raises(BadInput, match="holds no run to go on with"):
        claim(tmp_path / "out", resume=True)
    claim(tmp_path / "out")
    assert claim(tmp_path / "out", resume=True).resumed
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "result.json").write_text("{}")
    with pytest.raises(OutFolderTaken, match="unknown origin"):
        claim(tmp_path / "other")


def test_changed_weights_or_tasks_are_told(tmp_path):
    """A run is not continued with other weights in silence."""
    folder = claim(tmp_path / "out")
    folder.note({"run": "1", "weights": "a" * 32, "items": "c" * 32})
    again = claim(tmp_path / "out")
    with pytest.raises(OutFolderTaken, match="other weights"):
        again.note({"run": "2", "weights": "b" * 32, "items": "c" * 32})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 9}', '{"schema": 1}', "\ufeff", "1"])
def test_broken_reproduce_json_is_one_line(tmp_path, text):
    """Whatever is in it."""
    (tmp_path / "reproduce.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"reproduce\.json"):
        claim(tmp_path)
