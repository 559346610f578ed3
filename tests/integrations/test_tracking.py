"""Logged values, and calls of each tracker's library."""

import sys
from contextlib import suppress
from unittest.mock import ANY

import pytest
from integrations.recorder import Recorder
from results.samples import make_comparison, make_result
from simulated import toy_verification

from broca.engine import Progress
from broca.errors import MissingExtra
from broca.integrations import Log, tracking
from broca.integrations.tracking import TRACKERS, numbers_of


def test_progress_is_logged_now_and_then(monkeypatch):
    """Progress is logged at new stages, every few seconds and at the end; `also` gets all."""
    now = [0.0]
    monkeypatch.setattr(tracking.time, "monotonic", lambda: now[0])
    recorder = Recorder()
    heard = []
    with Log(recorder.kind, also=lambda *words: heard.append(words)) as log:
        log("searching", None)
        for second, done in ((0, 1), (1, 2), (6, 3), (7, 4)):
            now[0] = float(second)
            log("searching", Progress(done, 4, 10 * done))
        log("verifying", Progress(1, 9, 1))
    done = [values.get("progress/searching/done") for values, _ in recorder.named("log")]
    assert done == [1.0, 3.0, 4.0, None]
    assert [step for _, step in recorder.named("log")] == [1, 2, 3, 4]
    assert len(heard) == 6


def test_numbers_are_those_of_the_results():
    """Results give scores, drops and counts as numbers."""
    verification = toy_verification()
    numbers = numbers_of(make_result(verification=verification))
    assert numbers["drop/adding"] == verification.drop
    assert numbers["specific_drop"] == verification.specific_drop
    assert numbers["selected"] == 2
    assert numbers_of(make_comparison()) == {
        "score/base/adding/intact": 0.9,
        "score/base/adding/base, adding": 0.6,
    }


def ended(name, file, summary):
    """Returns a library's calls in a run that logs x = 1 at step 7 and a result, and fails."""
    if name == "mlflow":
        return [
            ("set_experiment", ("project",), {}), ("start_run", (), {}),
            ("log_params", ({"a": "1"},), {}), ("log_metrics", ({"x": 1.0},), {"step": 7}),
            ("log_text", (summary, "summary.txt"), {}),
            ("log_artifact", (file, "localization"), {}), ("end_run", ("FAILED",), {}),
        ]  # fmt: skip
    options = {"auto_log_gpu": False, "embed": False} if name == "trackio" else {}
    return [
        ("init", (), {"project": "project", "config": {"a": 1}, **options}),
        ("log", ({"x": 1.0},), {"step": 7}), ("log", ({"summary": summary},), {}),
        ("Artifact", ("localization",), {"type": "broca-result"}), ("add_file", (file,), {}),
        ("log_artifact", (ANY,), {}), ("finish", (), {"exit_code": 1} if name == "wandb" else {}),
    ]  # fmt: skip


@pytest.mark.parametrize("name", TRACKERS)
def test_each_library_is_called(name, monkeypatch):
    """Each library's functions for begin, numbers, files and end are called with the values."""
    monkeypatch.setitem(sys.modules, name, Recorder())
    result = make_result(verification=toy_verification())
    with suppress(RuntimeError), Log(name, project="project", settings={"a": 1}) as log:
        log.log({"x": 1.0}, step=7)
        log.result(result, ["result.json"])
        raise RuntimeError
    calls = [call for call in sys.modules[name].calls if call[2] != {"step": 8}]
    assert calls == ended(name, "result.json", "\n".join(result.summary()))


def test_a_function_is_a_tracker(monkeypatch):
    """A function that begins a run is a tracker; one that is not installed is refused."""
    recorder = Recorder()
    with Log(recorder.begin) as log:
        log.log({"x": 1.0})
    assert recorder.calls == [
        ("begin", ("broca", {}), {}), ("log", ({"x": 1.0}, 1), {}), ("end", (), {"failed": False}),
    ]  # fmt: skip
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'broca\[wandb\]'"):
        Log("wandb").__enter__()
