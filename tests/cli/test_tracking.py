"""`--log` sends settings, progress and the result to a tracker."""

import pytest
from cli.running import assert_refused, broca
from integrations.recorder import Recorder

from broca.integrations import tracking


@pytest.fixture
def recorder(monkeypatch):
    """A tracker that `--log recorder` uses and that records its calls."""
    recorder = Recorder()
    monkeypatch.setattr(tracking, "TRACKERS", {"recorder": recorder.kind})
    return recorder


def test_a_run_is_logged(recorder, tmp_path):
    """The tracker gets the settings, scores, progress, files and the end of the run."""
    done = broca(
        "compare", "reference-small", "reference-small", "--tasks", "capitals", "--rows", 120,
        "--items", 12, "--limit", 20, "--out", tmp_path, "--log", "recorder", "--log-project", "p",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    project, settings = recorder.named("begin")[0]
    assert (project, settings["verb"], settings["tasks"]) == ("p", "compare", "capitals")
    assert settings["chat_template"] is False
    values = {key for numbers, _ in recorder.named("log") for key in numbers}
    assert "score/reference-small/capitals/intact" in values
    assert any(key.startswith("progress/") for key in values)
    name, _, files = recorder.named("result")[0]
    assert (name, [file.name for file in files]) == (
        "comparison", ["comparison.json", "comparison.html"],
    )  # fmt: skip
    assert recorder.calls[-1] == ("end", (), {"failed": False})


def test_a_localization_is_logged_with_its_verdict(recorder, tmp_path):
    """The tracker gets the figures of the verification and a summary as text."""
    done = broca(
        "localize", "reference-small", "--task", "capitals", "--others", "", "--rows", 300,
        "--items", 12, "--limit", 60, "--method", "cs-stratified", "--out", tmp_path,
        "--log", "recorder",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert recorder.named("begin")[0][1]["task"] == "capitals"
    values = {key for numbers, _ in recorder.named("log") for key in numbers}
    assert {"intact/capitals", "drop/capitals", "specific_drop"} <= values
    assert "capitals" in recorder.named("result")[0][1]


def test_an_unknown_tracker_is_one_line(tmp_path):
    """An unknown tracker is refused in one line with the nearest name."""
    assert_refused(
        broca(
            "localize", "reference-small", "--task", "capitals", "--out", tmp_path,
            "--log", "wandbb",
        ),
        "--log 'wandbb' is unknown; did you mean 'wandb'",
    )  # fmt: skip
