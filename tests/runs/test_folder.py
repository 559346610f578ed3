"""Out folders are claimed, resumed, replaced and recognized as finished."""

import json
from contextlib import nullcontext

import pytest

from broca.errors import BadInput, JournalBusy, OutFolderTaken
from broca.options import ModelOptions, RunOptions, SourceOptions, TaskOptions
from broca.runs.folder import RunFolder, options_of_run
from broca.store import Journal


def claim(folder, *, seed=0, **options):
    """Claims a folder for a small command."""
    folder.mkdir(exist_ok=True)
    return RunFolder.claim(
        folder, verb="localize", options={"task": "a", "seed": seed}, how={}, command=["broca"],
        **options,
    )  # fmt: skip


def test_another_command_is_refused_with_the_first_difference(tmp_path):
    """The same command resumes; another one is refused, as are `fresh` and `resume` together."""
    assert not claim(tmp_path / "out").resumed
    assert claim(tmp_path / "out").resumed
    with pytest.raises(OutFolderTaken, match=r"there `seed` is 0, here 1; .*`fresh`"):
        claim(tmp_path / "out", seed=1)
    with pytest.raises(BadInput, match="exclude each other"):
        claim(tmp_path / "out", fresh=True, resume=True)


def test_fresh_removes_everything_that_a_run_writes(tmp_path):
    """Results, pages and journals of the run and of later verbs are removed; other files stay."""
    folder = tmp_path / "out"
    claim(folder)
    written = [
        "result.json", "report.html", "verification.json", "verification.html", "atlas.json",
        "refit.json", "journal.sqlite", "journal.sqlite-wal", "journal.old1.sqlite",
        "result.json.part",
    ]  # fmt: skip
    for name in (*written, "notes.txt", "journal.txt"):
        (folder / name).write_text("")
    (folder / "figures").mkdir()
    assert not claim(folder, seed=1, fresh=True).resumed
    assert {path.name for path in folder.iterdir()} == {
        "reproduce.json", "notes.txt", "journal.txt", "figures",
    }  # fmt: skip


def test_fresh_leaves_a_journal_that_is_being_written(tmp_path):
    """A folder into which another process measures is refused."""
    claim(tmp_path / "out")
    with Journal(tmp_path / "out" / "journal.sqlite"), pytest.raises(JournalBusy):
        claim(tmp_path / "out", fresh=True)


def finish(folder, *sources):
    """Finishes a run of the small command."""
    run_folder = claim(folder)
    (folder / "result.json").write_text("{}")
    run_folder.finish(sources, [folder / "result.json"])


def is_finished(folder, **options):
    """Returns whether the small command is finished in the folder."""
    return RunFolder.is_finished(
        folder, verb="localize", options={"task": "a", "seed": 0, **options}
    )


def test_a_finished_run_is_known_by_its_options_and_files(tmp_path):
    """With other options or changed sources, source folders or results a run is not finished."""
    model, out = tmp_path / "model", tmp_path / "out"
    model.mkdir()
    weights = model / "weights"
    weights.write_text("1")
    assert not is_finished(out)
    finish(out, model, weights)
    assert is_finished(out)
    assert not is_finished(out, seed=1)
    for change in (
        lambda: weights.write_text("12"),
        lambda: (model / "more").write_text(""),
        lambda: weights.unlink(),
        lambda: (out / "result.json").write_text("[]"),
    ):
        finish(out, model, weights)
        change()
        assert not is_finished(out)
        weights.write_text("1")


def test_a_moved_folder_is_still_finished(tmp_path):
    """Files in the folder are recorded relative to it."""
    finish(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "moved")
    assert is_finished(tmp_path / "moved")


def test_files_that_cannot_be_told_are_checked_in_full(tmp_path):
    """Runs with unknown sources, claimed again or of other versions are not finished."""
    claim(tmp_path / "out").finish(None, [])
    assert not is_finished(tmp_path / "out")
    finish(tmp_path / "out")
    claim(tmp_path / "out")
    assert not is_finished(tmp_path / "out")
    finish(tmp_path / "out")
    record = json.loads((tmp_path / "out" / "reproduce.json").read_text())
    record["versions"]["torch"] = "0.1"
    (tmp_path / "out" / "reproduce.json").write_text(json.dumps(record))
    assert not is_finished(tmp_path / "out")


def test_resume_needs_a_run(tmp_path):
    """`resume` needs a run in the folder, and a result of unknown origin is not overwritten."""
    with pytest.raises(BadInput, match="holds no run to resume"):
        claim(tmp_path / "out", resume=True)
    claim(tmp_path / "out")
    assert claim(tmp_path / "out", resume=True).resumed
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "result.json").write_text("{}")
    with pytest.raises(OutFolderTaken, match="unknown origin"):
        claim(tmp_path / "other")


def test_changed_weights_or_tasks_are_told(tmp_path):
    """A run with other weights is refused."""
    folder = claim(tmp_path / "out")
    folder.note({"run": "1", "weights": "a" * 32, "items": "c" * 32})
    again = claim(tmp_path / "out")
    with pytest.raises(OutFolderTaken, match="other weights"):
        again.note({"run": "2", "weights": "b" * 32, "items": "c" * 32})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 9}', '{"schema": 1}', "\ufeff", "1"])
def test_broken_reproduce_json_is_one_line(tmp_path, text):
    """Any content that is not a record is refused with the name of the file."""
    (tmp_path / "reproduce.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"reproduce\.json"):
        claim(tmp_path)


def test_a_run_is_loaded_again_as_its_record_says(tmp_path):
    """Options come from the run's record unless they are given."""
    recorded = {
        "task": "a", "seed": 0, "include_path": "/tasks", "allow_code": True, "revision": "step9",
        "dtype": "bfloat16", "components": "heads+mlp", "merge_adapter": False,
        "task_options": {"num_fewshot": 2, "gen_kwargs": "max_gen_toks=9"},
    }  # fmt: skip
    (tmp_path / "out").mkdir()
    RunFolder.claim(
        tmp_path / "out", verb="localize", options=recorded, how={"device": "cpu"},
        command=["broca"], journal=tmp_path / "shared.sqlite",
    )  # fmt: skip
    run_options = RunOptions(
        model_options=ModelOptions(dtype="float32"), task_options=TaskOptions(limit=8)
    )
    options = options_of_run(tmp_path / "out", run_options)
    assert options.source_options == SourceOptions(include_path="/tasks", allow_code=True)
    assert options.model_options == ModelOptions(
        revision="step9", dtype="float32", components="heads+mlp", device="cpu", merge_adapter=False
    )
    assert options.task_options == TaskOptions(
        num_fewshot=2, limit=8, gen_kwargs={"max_gen_toks": 9}
    )
    assert options.journal_options.journal == str(tmp_path / "shared.sqlite")
    (tmp_path / "none").mkdir()
    assert options_of_run(tmp_path / "none", run_options) is run_options


def test_the_former_name_of_the_options_is_read(tmp_path):
    """A folder whose record calls the options `asked` is resumed, and refused for another run."""
    claim(tmp_path / "out")
    file = tmp_path / "out" / "reproduce.json"
    record = json.loads(file.read_text())
    record["asked"] = record.pop("options")
    for seed, refusal in ((0, nullcontext()), (1, pytest.raises(OutFolderTaken, match="seed"))):
        file.write_text(json.dumps(record))
        with refusal:
            assert claim(tmp_path / "out", seed=seed).resumed


def test_options_that_an_older_version_lacks_have_their_defaults(tmp_path):
    """The folder of an older version is resumed unless an option that it lacks is set."""
    (tmp_path / "out").mkdir()
    older = {"task": "a", "task_options": {"metric": None}}
    newer = {**older, "trust_remote_code": False}
    newer["task_options"] = {"metric": None, "gen_kwargs": None}
    for options in (older, newer):
        RunFolder.claim(
            tmp_path / "out", verb="localize", options=options, how={}, command=["broca"]
        )
    changed = {**newer, "task_options": {"metric": None, "gen_kwargs": "{}"}}
    with pytest.raises(OutFolderTaken, match="`task_options`"):
        RunFolder.claim(
            tmp_path / "out", verb="localize", options=changed, how={}, command=["broca"]
        )
