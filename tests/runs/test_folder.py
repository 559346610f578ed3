"""Out folders are claimed, resumed, replaced and recognized as finished."""

import json
from dataclasses import replace

import pytest
from cli.running import broca as command
from results.samples import make_result

import broca
from broca.errors import BadInput, BrocaError, JournalBusy, OutFolderTaken
from broca.options import GRANTS, LocalizeOptions, ModelOptions, RunOptions, TaskOptions, flat
from broca.runs.folder import RunFolder, finished_files, note_finished, options_of_run
from broca.store import Journal


def claim(folder, options=None, *, seed=0, **arguments):
    """Claims a folder for the command of some options, by default a small one."""
    folder.mkdir(exist_ok=True)
    options = options or LocalizeOptions("reference", task="sorting", seed=seed)
    return RunFolder.claim(folder, verb="localize", options=options, command=["broca"], **arguments)


def test_another_command_is_refused_with_the_first_difference(tmp_path):
    """The same command resumes; another one is refused, as is a result of unknown origin."""
    assert not claim(tmp_path / "out").resumed
    assert claim(tmp_path / "out").resumed
    with pytest.raises(OutFolderTaken, match=r"there `seed` is 0, here 1; .*`fresh`"):
        claim(tmp_path / "out", seed=1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "result.json").write_text("{}")
    with pytest.raises(OutFolderTaken, match="unknown origin"):
        claim(tmp_path / "other")


def test_fresh_removes_everything_that_a_run_writes(tmp_path):
    """Results, pages and journals of the run and of later verbs are removed; other files stay."""
    folder = tmp_path / "out"
    claim(folder)
    written = [
        "result.json", "report.html", "verification.json", "verification.html", "atlas.json",
        "refit.json", "journal.sqlite", "journal.sqlite-wal", "result.json.part",
    ]  # fmt: skip
    for name in (*written, "notes.txt", "journal.txt", "plan.json", "export.json"):
        (folder / name).write_text("")
    (folder / "figures").mkdir()
    assert not claim(folder, seed=1, fresh=True).resumed
    assert {path.name for path in folder.iterdir()} == {
        "reproduce.json", "notes.txt", "journal.txt", "figures", "plan.json", "export.json",
    }  # fmt: skip


def test_fresh_leaves_a_journal_that_is_being_written(tmp_path):
    """A folder into which another process measures is refused, before a model is loaded.

    If that process takes the journal later, its record outlasts the refusal.
    """
    first, second = claim(tmp_path / "out"), claim(tmp_path / "out", fresh=True)
    first.note({"run": "1"})
    second.release(nothing=False)
    assert RunFolder.read(tmp_path / "out").record.digests == {"run": "1"}
    with Journal(journal := tmp_path / "out" / "journal.sqlite"), pytest.raises(JournalBusy):
        claim(tmp_path / "out", fresh=True)
    with Journal(journal), pytest.raises(JournalBusy):
        broca.localize("no-model", task="addition", journal=journal)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("model/more", ""), ("model/weights", "2"), ("model/weights", None), ("control.jsonl", "2"),
        ("moved/result.json", "[]"), ("moved/finished.json", "[]"), ("moved/finished.json", "{"),
        ("moved/finished.json", '{"localize": 3}'), ("right.py", "2"), ("model/reproduce.json", ""),
        ("moved/finished.json", '{"localize": {"files": 1}}'), ("own", "2"), ("asked", "2"),
    ],
)  # fmt: skip
def test_a_finished_command_is_known_by_its_options_and_files(tmp_path, monkeypatch, file, text):
    """A moved folder is known; other options, files and versions, and an edited result, are not.

    The files are those of a run that the options name, too: one lies in the folder of the model.
    """
    model, out, moved = (tmp_path / name for name in ("model", "out", "moved"))
    model.mkdir()
    out.mkdir()
    for name in ("model/weights", "out/result.json", "control.jsonl", "asked", "right.py", "own"):
        (tmp_path / name).write_text("{}")
    monkeypatch.chdir(tmp_path)
    RunFolder.claim(model, verb="localize", options=LocalizeOptions("m", task="own"), command=[])
    others, asked = "control.jsonl, data:asked", TaskOptions(reference="right.py:function")
    run_options = RunOptions(task_options=asked)
    options = LocalizeOptions(str(model), task="a", others=others, run_options=run_options)
    note_finished(out, "localize", options, [out / "result.json"])
    out.rename(moved)
    assert finished_files(moved, "localize", options) == (moved / "result.json",)
    quick = replace(run_options, model_options=ModelOptions(device="cpu"))
    # it decides only how the result is computed
    assert finished_files(moved, "localize", replace(options, run_options=quick))
    assert not finished_files(moved, "localize", replace(options, seed=1))
    with monkeypatch.context() as patch:
        patch.setattr("broca.runs.folder.versions", lambda: {"torch": "0.1"})
        assert not finished_files(moved, "localize", options)
    (tmp_path / file).unlink(missing_ok=True)
    if text is not None:
        (tmp_path / file).write_text(text)
    assert not finished_files(moved, "localize", options)


@pytest.mark.parametrize("most", [9, 50_000])
def test_only_options_that_name_places_are_walked(tmp_path, monkeypatch, most):
    """Other texts are no paths; of large folders, the first files count."""
    monkeypatch.setattr("broca.runs.folder._MOST_FILES", most)
    prompt = RunOptions(task_options=TaskOptions(system_prompt=str(tmp_path)))
    (tmp_path / "other").touch()
    options = LocalizeOptions("m", task="a", run_options=prompt)
    note_finished(tmp_path, "localize", options, [tmp_path / "result.json"])
    stamps = json.loads((tmp_path / "finished.json").read_text())["localize"]["stamps"]
    assert "other" not in stamps
    assert 0 < len(stamps) <= most


def test_changed_weights_or_tasks_are_told(tmp_path):
    """A run with other weights, or another definition of a task, is refused by its name."""
    folder = claim(tmp_path / "out")
    folder.note({"run": "1", "weights": "a" * 32, "tasks": {"sums": "d"}, "items": "c" * 32})
    again = claim(tmp_path / "out")
    with pytest.raises(OutFolderTaken, match="other weights"):
        again.note({"run": "2", "weights": "b" * 32, "items": "c" * 32})
    with pytest.raises(OutFolderTaken, match=r"other sums \(digest d, now e\)"):
        again.note({"run": "2", "weights": "a" * 32, "tasks": {"sums": "e"}, "items": "c" * 32})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 9}', '{"schema": 1}', "\ufeff", "1"])
def test_broken_reproduce_json_is_one_line(tmp_path, text):
    """Any content that is not a record is refused with the name of the file."""
    (tmp_path / "reproduce.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"reproduce\.json"):
        claim(tmp_path)


def test_a_run_is_loaded_again_as_its_record_says(tmp_path):
    """Options come from the run's record unless they are given."""
    recorded = LocalizeOptions.of(
        {
            "model": "reference", "task": "sorting", "revision": "step9", "dtype": "bfloat16",
            "components": "heads+mlp", "device": "cpu", "merge_adapter": False, "num_fewshot": 2,
            "gen_kwargs": "max_gen_toks=9",
        }
    )  # fmt: skip
    folder = tmp_path / "out"
    assert claim(folder, recorded).options == RunFolder.read(folder).options == recorded
    run_options = RunOptions(
        model_options=ModelOptions(dtype="float32"), task_options=TaskOptions(limit=8)
    )
    options = options_of_run(folder, run_options)
    assert options_of_run(folder / "reproduce.json", run_options) == options
    assert options.model_options == ModelOptions(
        revision="step9", dtype="float32", components="heads+mlp", device="cpu", merge_adapter=False
    )
    assert options.task_options == TaskOptions(
        num_fewshot=2, limit=8, gen_kwargs={"max_gen_toks": 9}
    )
    (tmp_path / "none").mkdir()
    assert options_of_run(tmp_path / "none", run_options) is run_options


GRANTED = {"include_path": "/tasks", "reference": "/planted.py:run", "journal": "/j.sqlite"}


@pytest.mark.parametrize("name", sorted(GRANTS.keys() - {"address"}))
def test_a_folder_grants_nothing(tmp_path, name):
    """What the recorded command permitted is named, and asked for again."""
    given = {"model": "reference", "task": "sorting", name: GRANTED.get(name, True)}
    options = LocalizeOptions.of(given)
    claim(tmp_path, options)
    with pytest.raises(BadInput, match=f"`{name}` .*, which no folder grants"):
        options_of_run(tmp_path, RunOptions())
    again = options_of_run(tmp_path, options.run_options)
    assert flat(again.decisive()) == flat(options.run_options.decisive())
    assert again.journal_options == options.run_options.journal_options


MORE = {"rerun": {"from_scratch": True}}
"""What a verb needs to run what is in a folder."""


@pytest.mark.parametrize(
    ("verb", "place"),
    [(verb, "reproduce.json") for verb in ("verify", "explore", "rerun")]
    + [("verify", "result.json")],
)
def test_a_planted_function_is_not_run(tmp_path, verb, place):
    """A reference function that stands in a folder of others is refused before it runs."""
    folder, planted = tmp_path / "out", tmp_path / "planted.py"
    planted.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef run(document): pass\n")
    claim(folder, LocalizeOptions("reference-small", task="sorting"))
    make_result().save(folder, replace=True)
    data = json.loads((folder / place).read_text())
    holder = data if place == "result.json" else data["options"]["run_options"]
    holder["task_options"]["reference"] = f"{planted}:run"
    (folder / place).write_text(json.dumps(data))
    with pytest.raises(BadInput, match="which no folder grants"):
        getattr(broca, verb)(folder, **MORE.get(verb, {}))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("verb", ["verify", "explore", "rerun"])
@pytest.mark.parametrize("within", [True, False])
def test_a_task_file_of_a_folder_is_not_run(tmp_path, verb, within):
    """A YAML file that a folder of others names, in it or elsewhere, is refused unread."""
    folder = tmp_path / "out"
    planted = (folder if within else tmp_path) / "planted.yaml"
    folder.mkdir()
    planted.write_text("task: planted\ndoc_to_text: !function planted.run\n")
    planted.with_suffix(".py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    claim(folder, LocalizeOptions("reference-small", task="sorting", others=[str(planted)]))
    result = make_result()
    model = replace(result.model, name="reference-small")
    replace(result, model=model, task="sorting", others=(str(planted),)).save(folder, replace=True)
    with pytest.raises(BadInput, match=f"names '{planted}'.* name it in `trust`"):
        getattr(broca, verb)(folder, **MORE.get(verb, {}))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("verb", "names"),
    [(verb, "model") for verb in ("verify", "explore", "stress", "rerun", "chat", "export")]
    + [(verb, "task") for verb in ("verify", "explore", "rerun")]
    + [("verify", "data")],
)
def test_what_a_folder_names_elsewhere_is_confirmed(tmp_path, verb, names):
    """A model or a file of examples outside of the folder is named, and opened once trusted."""
    theirs, folder = tmp_path / f"theirs.{names}.jsonl", tmp_path / "out"
    theirs.write_text("no example")
    given = {"model": "reference-small", "task": "sorting", names: str(theirs)}
    if names == "data":
        given["task"] = f"data:{given.pop('data')}"
    claim(folder, LocalizeOptions.of(given))
    make_result().save(folder, replace=True)
    data = json.loads((folder / "result.json").read_text())
    data["model"]["name"], data["task"], data["others"] = given["model"], given["task"], []
    (folder / "result.json").write_text(json.dumps(data))
    more = (MORE | {"export": {"to": tmp_path / "new"}}).get(verb, {})
    with pytest.raises(BadInput, match=f"names '{theirs}'.* name it in `trust`"):
        getattr(broca, verb)(folder, **more)
    if not more:
        done = command(verb, folder)
        assert (done.returncode, f"names '{theirs}'" in done.stderr) == (2, True)
    with pytest.raises(BrocaError) as refused:
        getattr(broca, verb)(folder, **more, trust=tmp_path)
    assert "`trust`" not in str(refused.value)
