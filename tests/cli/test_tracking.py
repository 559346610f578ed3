"""`--log` sends settings, progress and the result to a tracker."""

from cli.running import broca
from integrations.recorder import Recorder

from broca.integrations import tracking


def test_a_run_is_logged(monkeypatch, tmp_path):
    """The tracker gets the settings, scores, progress, files and the end of the run."""
    recorder = Recorder()
    monkeypatch.setattr(tracking, "TRACKERS", {"recorder": recorder.begin})
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
