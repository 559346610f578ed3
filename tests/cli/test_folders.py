"""Out folders: records, finished runs, continued runs, Ctrl+C and refusals."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from datetime import date, datetime
from types import SimpleNamespace

import pytest
from cli.running import SMALL, broca
from journals import totals
from transformers.utils import chat_template_utils

from broca.models.checkpoints import shipped_model_folder
from broca.store import Journal


def test_reproduce_json_says_what_ran(finished):
    """The record has the command, its settings, versions, digests and the machine."""
    record = json.loads((finished / "reproduce.json").read_text())
    assert shlex.split(record["command"])[:3] == ["broca", "localize", "reference-small"]
    assert record["options"]["seed"] == 0
    assert {"python", "broca", "torch", "lm-eval", "sqlite"} <= set(record["versions"])
    assert {"run", "weights", "tokenizer", "tasks", "items", "dtype"} == set(record["digests"])
    assert record["machine"]["cores"] == os.cpu_count()


def test_a_finished_run_has_nothing_to_do(finished):
    """A finished run is reported without importing torch, and its files do not change."""
    files = ("result.json", "report.html", "reproduce.json")
    before = [(finished / name).read_bytes() for name in files]
    code = (
        "import sys\nfrom broca.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n"
        "    heavy = {'torch', 'transformers', 'lm_eval', 'datasets'} & set(sys.modules)\n"
        "    sys.exit(f'imported: {heavy}' if heavy else end.code)"
    )
    command = [sys.executable, "-c", code, *map(str, SMALL), "--out", str(finished)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"finished; nothing to do: {finished} holds the result; --fresh measures it again\n"
    )
    assert f"report: {finished / 'report.html'}" in "".join(done.stdout.splitlines())
    assert [(finished / name).read_bytes() for name in files] == before


@pytest.mark.long
def test_a_run_of_a_changed_file_is_checked_in_full(finished):
    """A changed file time leads to a full check from the journal, with an equal result."""
    record = json.loads((finished / "finished.json").read_text())
    stamps = record["localize"]["stamps"]
    stamps[next(name for name in stamps if name.endswith(".safetensors"))][1] -= 1
    (finished / "finished.json").write_text(json.dumps(record))
    before = json.loads((finished / "result.json").read_text())
    done = broca(*SMALL, "--out", finished, "--json")
    assert "going on with the run" in done.stderr
    assert (finished / "result.json").read_text() == done.stdout
    again = json.loads(done.stdout)
    assert again["cost"].pop("wall_s") < before["cost"].pop("wall_s")
    assert again == before
    assert broca(*SMALL, "--out", finished).stderr.startswith("finished; nothing to do")


def rows_in(journal):
    """Returns the number of rows of a journal: 0 while it is being created."""
    try:
        return totals(journal)["rows"]
    except Exception:  # noqa: BLE001
        return 0


@pytest.mark.long
def test_ctrl_c_keeps_everything_and_prints_what_goes_on(tmp_path):
    """Ctrl+C gives exit code 130, and the printed command continues and finishes the run."""
    out = tmp_path / "out"
    arguments = [
        "localize", "reference-small", "--task", "sorting", "--others", "", "--items", "50",
        "--no-verify", "--out", str(out),
    ]  # fmt: skip
    command = [sys.executable, "-m", "broca", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    journal = out / "journal.sqlite"
    for _ in range(600):
        time.sleep(0.1)
        if rows_in(journal):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    measured = rows_in(journal)
    assert measured > 0
    last = errors.splitlines()[-1]
    assert last.startswith("broca: interrupted; what was measured is kept in")
    going_on = shlex.split(last.split("goes on: ")[1])
    assert going_on == ["broca", *arguments]
    done = broca(*going_on[1:])
    assert done.returncode == 0, done.stderr
    assert "going on with the run" in done.stderr
    assert rows_in(journal) > measured


def set_day(monkeypatch, day):
    """Changes the date, of broca and of transformers."""
    today = SimpleNamespace(today=lambda: date.fromisoformat(day))
    monkeypatch.setattr("broca.runs.session.date", today, raising=False)
    now = SimpleNamespace(now=lambda: datetime.fromisoformat(day))
    monkeypatch.setattr(chat_template_utils, "datetime", now)


def first_words(out):
    """Returns the words with which the prompts of a run begin."""
    with Journal(out / "journal.sqlite", read_only=True) as journal:
        return {item.prompt.split()[0] for item in journal.lines("items")}


@pytest.mark.long
def test_a_run_keeps_the_date_of_its_chat_template(monkeypatch, tmp_path):
    """A run that goes on, or is repeated, on another day asks what it asked; a new run does not."""
    folder = shutil.copytree(shipped_model_folder("reference-small"), tmp_path / "dated")
    (folder / "chat_template.jinja").write_text(
        "{{ strftime_now('%d') }} {% for message in messages %}{{ message['content'] }}{% endfor %}"
    )
    command = (
        "localize", folder, "--task", "capitals", "--others", "brackets", "--rows", 700,
        "--items", 6, "--no-verify", "--chat-template",
    )  # fmt: skip
    out = tmp_path / "out"
    set_day(monkeypatch, "2026-03-01")
    assert broca(*command, "--out", out).returncode == 0
    assert first_words(out) == {"01"}
    result = (out / "result.json").read_text()
    (out / "result.json").unlink()
    set_day(monkeypatch, "2026-03-02")
    resumed = broca(*command, "--out", out)
    assert resumed.returncode == 0, resumed.stderr
    assert first_words(out) == {"01"}
    before, now = json.loads(result), json.loads((out / "result.json").read_text())
    assert [before.pop("cost"), now.pop("cost")]
    assert before == now
    again = broca("rerun", out, "--from-scratch")
    assert (again.returncode, again.stdout) == (0, "identical\n"), again.stderr
    assert broca(*command, "--out", tmp_path / "new").returncode == 0
    assert first_words(tmp_path / "new") == {"02"}
    set_day(monkeypatch, "2026-03-03")
    chosen = broca(*command, "--chat-template-date", "2026-03-02", "--out", tmp_path / "chosen")
    assert chosen.returncode == 0, chosen.stderr
    assert first_words(tmp_path / "chosen") == {"02"}
