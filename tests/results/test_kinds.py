"""What the summaries and tables of each kind of result state."""

from dataclasses import fields, replace
from math import nan

import pytest
from results import samples

from broca.errors import BadInput
from broca.results.base import Interval
from broca.results.checks import Check
from broca.results.files import decode, encode, plain
from broca.results.neurons import EXPERIMENTS, NeuronExperiment
from broca.results.runs import MethodCost, Repetition


def test_cells_and_selections_of_an_atlas_by_name():
    """Effects and selections are looked up by the names of tasks and components."""
    atlas = samples.make_atlas()
    assert atlas.effect("sorting", "L0H1") == 0.02
    assert atlas.selected("adding") == ("L0H0",)
    assert atlas.selected("sorting") == ()


def test_a_frame_has_a_line_for_each_part():
    """Lines have the documented columns; what the first model or a block lacks is unknown."""
    frame = samples.make_comparison().to_frame()
    assert frame.query("model == 'base'")["difference"].isna().all()
    changed = frame.query("changed == True")
    assert changed[["model", "component", "difference"]].values.tolist() == [["tuned", "L0H0", 0.1]]
    lines = samples.make_estimate().records()
    assert [line["problem"] for line in lines] == ["", "too few"]
    assert set(lines[0]) == {field.name for field in fields(MethodCost)}
    export = samples.make_export(scale=0.5)
    assert export.selected == ("L1H2", "L0H0")
    assert export.to_frame().to_dict("list") == {
        "component": ["L1H2", "L0H0"], "ablation": ["zero", "zero"], "scale": [0.5, 0.5],
    }  # fmt: skip
    refit = samples.make_refit()
    assert {line["component"] for line in refit.records() if line["selected"]} == set(
        refit.selected
    )
    assert samples.make_reproduction().columns == ("model", "drop", "published")
    assert samples.make_reproduction().records()[0] == {
        "model": "m",
        "drop": 0.5,
        "published": None,
    }
    lines = samples.make_scan().records()
    assert lines[1] == {"component": "L0H1", "kind": "head", "layer": 0, "index": 1}
    assert (lines[2]["kind"], lines[2]["index"]) == ("mlp", None)
    assert [tuple(line.values()) for line in samples.make_list().records()] == [
        ("addition", "shipped"), ("all", "included_groups"), ("boolq", "paper"),
    ]  # fmt: skip
    assert samples.make_neurons().records()[0] == {
        "component": "L0N1", "layer": 0, "index": 1, "score": 0.75, "sigmas": 3.0,
    }  # fmt: skip


def test_what_failed_is_told_apart_from_what_is_missing():
    """A missing feature does not stop broca; a failed check does, and other effects are no copy."""
    assert samples.make_diagnosis().can_run
    assert not samples.make_diagnosis("broken").can_run
    assert samples.make_scan().passed
    assert not samples.make_scan(self_test=(Check("gates of zero", False, "0.5", 0.1),)).passed
    grades = ("identical", "equal within the tolerance", "same selection", "different")
    assert [Repetition(grade).passed for grade in grades] == [True, True, False, False]
    assert samples.make_list().names == ("addition", "all")


def test_curves_follow_the_selected_components_over_the_models():
    """Curves have intervals and follow the order of the models."""
    curves = samples.make_comparison(("step1", "step2", "step3")).curves()
    assert set(curves) == {("adding", "L0H0"), ("adding", "L1H1")}
    values = [round(point.value, 6) for point in curves["adding", "L0H0"]]
    assert values == [-0.4, -0.3, -0.2]
    assert all(point.low < point.value < point.high for point in curves["adding", "L1H1"])


def test_a_journal_has_a_line_for_each_run():
    """A line names what a run of any verb did."""
    contents = samples.make_contents()
    assert [(line["run"], line["task"], line["seed"]) for line in contents.records()] == [
        (1, "sorting", 3), (2, "sorting", 3),
    ]  # fmt: skip
    for settings, subject, procedure in (
        ({"task": "sorting", "method": "greedy"}, "sorting", "greedy"),
        ({"verb": "plan", "task": "sorting"}, "sorting", "plan"),
        ({"measures": "sorting"}, "sorting", "verify"),
        ({"verb": "atlas", "tasks": ["sorting", "capitals"]}, "sorting+capitals", "atlas"),
        ({"verb": "stress", "heads": ["L0H1", "L0H2"]}, "L0H1+L0H2", "stress"),
    ):
        line = replace(contents.runs[0], settings=settings)
        assert (line.subject, line.procedure) == (subject, procedure)


def test_every_interval_of_a_stress_test_has_a_line():
    """Each record has the value and both ends."""
    stress = replace(samples.make_stress(), positive_control=Interval(3.0, 2.0, 4.5))
    assert [(line["measure"], line["of"]) for line in stress.records()] == [
        ("necessity", "zero"),
        ("reversal", "the last token"),
        ("transfer", "same template"),
        ("transfer", "noise"),
        ("copying", "same template"),
        ("positive control", ""),
    ]
    last = stress.records()[-1]
    assert (last["value"], last["low"], last["high"]) == (3.0, 2.0, 4.5)


@pytest.mark.parametrize("verb", EXPERIMENTS)
def test_every_experiment_is_restored_and_shown(verb, tmp_path):
    """The file gives an equal result of the same data classes; text, tables and page are made."""
    experiment = samples.make_experiment(verb)
    assert experiment.result == samples.RESULTS[verb]
    again = NeuronExperiment.read(experiment.save(tmp_path)[0])
    assert again == experiment
    assert (tmp_path / f"{verb}.html").is_file()
    assert repr(again).startswith(f"broca neurons {verb} of toy")
    records = plain(samples.RESULTS[verb])
    assert again.records() == (records if isinstance(records, list) else [records])
    assert again.tables
    assert all(len(again.to_frame(table=name)) for name in again.tables)


def test_what_is_not_finite_is_none_as_in_the_file():
    """NaN and intervals of NaN of a measured result are None."""
    arm = replace(samples.RESULTS["enhance"][0], losses=(0.5, nan))
    assert samples.make_experiment("enhance", result=(arm,)).result == samples.RESULTS["enhance"]
    unknown = replace(samples.DECOUPLED, of_first=Interval(nan, nan, nan))
    experiment = samples.make_experiment("decouple", result=(unknown,))
    assert experiment.result == (samples.DECOUPLED,)
    assert decode(NeuronExperiment, encode(experiment)) == experiment


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("broca neurons erase", [{"a": 1}]),
        ("broca neurons erase", [{**plain(samples.ERASED), "more": 1}]),
        ("broca neurons enhance", [plain(samples.ERASED)]),
        ("broca neurons locate", []),
        ("broca neurons", {}),
    ],
)
def test_a_result_of_another_experiment_is_refused(command, result):
    """A file whose result is not that of its command, or whose command is none, is refused."""
    data = {**plain(samples.make_experiment()), "command": command, "result": result}
    with pytest.raises(BadInput, match="this is not a neuron experiment of broca"):
        decode(NeuronExperiment, encode(data))
