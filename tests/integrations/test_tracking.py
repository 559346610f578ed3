"""Logged values, and calls of each tracker's library."""

import inspect
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from integrations.recorder import Recorder, recording
from results.samples import make_result
from results.samples import make_atlas
from results.samples import make_comparison
from simulated import toy_verification

from broca.engine import Progress
from broca.errors import BadInput, UnknownName
from broca.integrations import tracking
from broca.integrations.tracking import TRACKERS, Log, flat, make_tracker, numbers_of


def test_a_run_is_begun_logged_and_ended():
    """A run logs flat settings, the result's numbers, a text, a figure and the files, then ends."""
    kind, recorder = recording()
    result = make_result(verification=toy_verification())
    with Log(kind.make(), project="p", name="n", settings={"a": 1, "b": {"c": 2}}) as log:
        log.result(result, ["file"])
    begin, *middle, end = recorder.calls
    assert begin == ("begin", ("p", "n", {"a": 1, "b.c": 2}), {})
    assert [name for name, _, _ in middle] == ["log", "text", "figure", "artifact"]
    assert recorder.named("log")[0][0] == numbers_of(result)
    assert recorder.named("text")[0] == ("summary", "\n".join(result.summary()))
    name, file = recorder.named("figure")[0]
    assert (name, file.suffix) == ("components", ".png")
    assert recorder.named("artifact")[0] == ("localization", ["file"])
    assert end == ("end", (), {"failed": False})


def test_an_error_ends_the_run_as_failed():
    """An error ends the run as failed and is raised again."""
    kind, recorder = recording()

    def fail():
        with Log(kind.make()):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert recorder.calls[-1] == ("end", (), {"failed": True})


def test_progress_is_logged_now_and_then(monkeypatch):
    """Progress is logged at new stages, every few seconds and at the end; `also` gets all."""
    now = [0.0]
    monkeypatch.setattr(tracking.time, "monotonic", lambda: now[0])
    kind, recorder = recording()
    heard = []
    with Log(kind.make(), also=lambda *words: heard.append(words)) as log:
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
    """Results give scores, drops and counts as numbers; nested settings become flat."""
    verification = toy_verification()
    numbers = numbers_of(make_result(verification=verification))
    assert numbers["drop/adding"] == verification.drop
    assert numbers["specific_drop"] == verification.specific_drop
    assert numbers["selected"] == 2
    assert numbers_of(make_comparison()) == {
        "changed/tuned/adding": 1.0,
        "score/base/adding/intact": 0.9,
        "score/base/adding/base, adding": 0.6,
    }
    atlas = make_atlas()
    assert numbers_of(atlas)[f"intact/{atlas.tasks[0].name}"] == atlas.tasks[0].intact
    assert flat({"a": {"b": {"c": 1}}, "d": 2}) == {"a.b.c": 1, "d": 2}


class Library(Recorder):
    """A stand-in for a tracker's library; objects that it makes record calls too."""

    def __init__(self):
        super().__init__()
        self.summary = {}

    def __getattr__(self, name):
        returned = Library()

        def call(*words, **options):
            self.calls.append((name, words, options))
            return returned

        self.__dict__.setdefault("returned", []).append(returned)
        return call


@pytest.mark.parametrize("name", TRACKERS)
def test_each_library_is_called(name, monkeypatch, tmp_path):
    """Each library's functions for begin, numbers, files and end are called with the values."""
    library = Library()
    monkeypatch.setitem(sys.modules, name, library)
    tracker = make_tracker(name)
    file = tmp_path / "f.png"
    file.write_text("")
    tracker.begin("project", "name", {"a": 1})
    tracker.log({"x": 1.0}, 7)
    tracker.text("summary", "words")
    tracker.figure("map", file)
    tracker.artifact("result", [file])
    tracker.end(failed=True)

    def calls(recorder):
        yield from recorder.calls
        for returned in recorder.__dict__.get("returned", []):
            yield from calls(returned)

    arguments = {called: (words, options) for called, words, options in calls(library)}
    begin = "set_experiment" if name == "mlflow" else "init"
    assert "project" in (*arguments[begin][0], *arguments[begin][1].values())
    logged = "log_metrics" if name == "mlflow" else "log"
    assert any(
        called == logged and words == ({"x": 1.0},) and options == {"step": 7}
        for called, words, options in calls(library)
    )
    ends = {"trackio": "finish", "wandb": "finish", "mlflow": "end_run"}
    assert ends[name] in arguments
    if name != "trackio":
        assert arguments[ends[name]] in ((("FAILED",), {}), ((), {"exit_code": 1}))
    assert "log_artifact" in arguments


def test_trackers_of_other_packages_are_found(monkeypatch):
    """Trackers of other packages are found by entry point; unknown or missing ones are refused."""
    kind, recorder = recording("elsewhere")
    module = SimpleNamespace(KIND=kind)
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    entry = EntryPoint("elsewhere", "elsewhere:KIND", tracking.GROUP)
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group: [entry] if group == tracking.GROUP else [],
    )
    assert make_tracker("elsewhere") is recorder
    with pytest.raises(UnknownName, match="`log` 'wandbb' is unknown; did you mean 'wandb'"):
        make_tracker("wandbb")
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(BadInput, match=r"pip install 'broca\[wandb\]'"):
        make_tracker("wandb")


def test_the_protocol_is_what_trackers_have():
    """Every tracker has the protocol's methods with the same parameters."""
    parameters = {
        name: list(inspect.signature(method).parameters)
        for name, method in vars(tracking.Tracker).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    for cls in (tracking._Trackio, tracking._Wandb, tracking._Mlflow):
        assert parameters == {
            name: list(inspect.signature(getattr(cls, name)).parameters) for name in parameters
        }
