"""Out folders, resuming, Ctrl+C and repetition, as a user meets them."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from cli.running import assert_refused, broca

from broca.errors import BadInput, OutFolderTaken
from broca.journal import Journal
from broca.models import loading
from broca.runs.folder import RunFolder

ASKED = ("--task", "sorting", "--others", "", "--rows", 300, "--items", 12, "--no-verify")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The out folder of a small run."""
    out = tmp_path_factory.mktemp("kept") / "out"
    done = broca("localize", "reference-small", *ASKED, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_reproduce_json_says_what_ran(finished):
    """Command, settings, versions, digests, machine."""
    record = json.loads((finished / "reproduce.json").read_text())
    assert shlex.split(record["command"])[:3] == ["broca", "localize", "reference-small"]
    assert record["asked"]["seed"] == 0
    assert {"python", "broca", "torch", "lm-eval", "sqlite"} <= set(record["versions"])
    assert {"run", "weights", "tokenizer", "tasks", "items", "dtype"} == set(record["digests"])
    assert record["machine"]["cores"] == os.cpu_count()


def test_rerun_from_the_journal_is_identical_and_loads_no_model(finished, monkeypatch):
    """The ranking comes out byte by byte; a changed result is told."""

    def refuse(*_, **__):
        raise SystemError("a model was loaded")

    monkeypatch.setattr(loading, "_loaded", refuse)
    done = broca("rerun", finished)
    assert (done.returncode, done.stdout) == (0, "identical\n"), done.stderr


def test_a_result_that_was_changed_does_not_come_out_again(finished, tmp_path):
    """Exit code 1, with the difference."""
    from shutil import copytree

    copytree(finished, tmp_path / "copy")
    file = tmp_path / "copy" / "result.json"
    data = json.loads(file.read_text())
    largest = max(data["ranking"], key=lambda head: abs(head["effect"]))
    largest["effect"] *= 1.01
    file.write_text(json.dumps(data))
    done = broca("rerun", tmp_path / "copy")
    assert done.returncode == 1
    assert "same selection" in done.stdout
    assert "did not come out again" in done.stderr


def test_ctrl_c_keeps_everything_and_prints_what_goes_on(tmp_path):
    """Exit code 130; the printed command ends the run as if nothing had been."""
    out = tmp_path / "out"
    arguments = [
        "localize", "reference-small", "--task", "sorting", "--others", "", "--items", "50",
        "--no-verify", "--out", str(out),
    ]  # fmt: skip
    code = "from broca.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    journal = out / "journal.sqlite"
    for _ in range(600):
        time.sleep(0.1)
        if "batches" in _tables(journal) and _rows(journal) > 0:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    kept = _rows(journal)
    assert kept > 0
    last = errors.splitlines()[-1]
    assert last.startswith("broca: interrupted; what was measured is kept in")
    going_on = shlex.split(last.split("goes on: ")[1])
    assert going_on == ["broca", *arguments]
    done = broca(*going_on[1:])
    assert done.returncode == 0, done.stderr
    assert "going on with the run" in done.stderr
    assert _rows(journal) > kept


def _tables(path):
    if not path.exists():
        return set()
    try:
        with Journal(path, read_only=True) as journal:
            return {name for (name,) in journal.query("SELECT name FROM sqlite_master")}
    except Exception:  # noqa: BLE001  # it is just being made
        return set()


def _rows(path):
    with Journal(path, read_only=True) as journal:
        return journal.query("SELECT count(*) FROM rows")[0][0]


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


def test_shares_out_of_range_are_refused(tmp_path):
    """Before anything is loaded."""
    done = broca("localize", "reference", *ASKED, "--keep-outputs", 2, "--out", tmp_path)
    assert_refused(done, "--keep-outputs must lie between 0 and 1")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_out_folders_are_refused(tmp_path):
    """Before anything is measured."""
    tmp_path.chmod(0o500)
    done = broca("localize", "reference", *ASKED, "--out", tmp_path)
    tmp_path.chmod(0o700)
    assert_refused(done, "cannot be written")
