"""Files of schema 1, written by broca 0.1.0, are read, and every number keeps its value."""

import json
from pathlib import Path

import pytest
from broca.results.upgrades import upgraded

from broca.errors import BadInput
from broca.results.atlas import Atlas
from broca.results.base import Interval
from broca.results.files import decode, encode
from broca.results.localization import Localization
from broca.results.neurons import NeuronExperiment, NeuronSet
from broca.results.stress_test import StressTest
from broca.results.verification import Verification

DATA = Path(__file__).parent / "data"


def old(name):
    """Returns a file of schema 1, parsed."""
    return json.loads((DATA / f"{name}.schema1.json").read_text())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("result", Localization),
        ("result-without-evidence", Localization),
        ("verification", Verification),
        ("atlas", Atlas),
        ("stress", StressTest),
        ("neurons", NeuronSet),
        ("erase", NeuronExperiment),
    ],
)
def test_every_old_file_is_read_and_written_as_schema_2(name, kind):
    """A file of schema 1 is read as schema 2, and its new encoding is read as an equal result."""
    read = kind.read(DATA / f"{name}.schema1.json")
    assert (read.schema, read.kind) == (2, kind.kind)
    assert decode(kind, encode(read)) == read


def test_a_localization_keeps_its_numbers():
    """Scores, drops, intervals, controls and verdict of the old `evidence` are kept."""
    data, read = old("result"), Localization.read(DATA / "result.schema1.json")
    evidence, verification = data["evidence"], read.verification
    assert read.selected == tuple(data["selected"]) == verification.heads
    assert [line.effect for line in read.ranking] == [line["effect"] for line in data["ranking"]]
    assert verification.after == data["verification"]["after"]
    assert verification.baseline == read.baseline == data["baseline"]
    assert verification.drop == data["verification"]["drop"]
    assert verification.off_target_drop == data["verification"]["off_target_drop"]
    assert verification.specific_drop == data["verification"]["specific_drop"]
    assert verification.specific == Interval(**evidence["specific"])
    for line, before in zip(verification.drops, evidence["drops"], strict=True):
        assert line.interval == Interval(**before["drop"])
        assert (line.p, line.p_holm, line.items) == (before["p"], before["p_holm"], before["items"])
        assert data["verification"]["items"][line.task] == line.items
        assert data["metrics"][line.task] == line.metric
    assert verification.controls[0].drop.rank == evidence["controls"][0]["drop"]["rank"]
    assert read.verdict.text == evidence["verdict"]["text"]
    assert verification.rows == data["cost"]["verification_rows"]


def test_a_localization_without_statistics_keeps_its_scores():
    """The result has no verdict, and the drops follow from the scores."""
    data = old("result-without-evidence")
    read = Localization.read(DATA / "result-without-evidence.schema1.json")
    assert read.verdict is None
    assert read.verification.drop == data["verification"]["drop"]
    assert {line.task: line.items for line in read.verification.drops} == (
        data["verification"]["items"]
    )
    assert [line.role for line in read.verification.drops] == ["task", "other"]


def test_a_verification_keeps_its_numbers():
    """The model has its name and fingerprint, and scores move to `baseline` and `after`."""
    data, read = old("verification"), Verification.read(DATA / "verification.schema1.json")
    assert (read.model.name, read.model.fingerprint) == (data["model"], data["fingerprint"])
    assert (read.ablation.kind, read.ablation.scale) == (data["ablation"], data["scale"])
    for line, before in zip(read.drops, data["drops"], strict=True):
        assert read.baseline[line.task] == before["before"]
        assert read.after[line.task] == before["after"]
        assert line.drop == before["drop"]["value"]
    assert read.off_target == Interval(**data["off_target"])
    assert read.specific_drop == data["specific"]["value"]
    assert read.rows == data["rows"]


def test_the_others_keep_their_numbers():
    """Atlas, stress test and neurons keep their numbers."""
    atlas = Atlas.read(DATA / "atlas.schema1.json")
    assert [list(row) for row in atlas.effects] == old("atlas")["effects"]
    stress = StressTest.read(DATA / "stress.schema1.json")
    assert stress.model.fingerprint == old("stress")["fingerprint"]
    assert stress.verdict == old("stress")["verdict"]
    neurons = NeuronSet.read(DATA / "neurons.schema1.json")
    assert [(neuron.name, neuron.score) for neuron in neurons.selected] == [
        (neuron["name"], neuron["score"]) for neuron in old("neurons")["selected"]
    ]
    erased = NeuronExperiment.read(DATA / "erase.schema1.json").result
    for line, before in zip(erased, old("erase")["result"], strict=True):
        assert (line.method, line.questions, line.neurons) == ("cnl", before["questions"], 19)
        assert list(line.random_drops) == before["random_drops"]
        for name in ("before", "after", "drop", "random_drop", "excess", "log_probability_drop"):
            interval = getattr(line, name)
            ends = {"mean": interval.value, "low": interval.low, "high": interval.high}
            assert {**ends, "n": 100} == before[name]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("localization", {"verification": {"members": [{"beside": "intact"}, {}]}}),
        ("verification", {"members": [{"beside": "intact"}, {}]}),
        ("comparison", {"carries": [{"own": "base, adding"}, {"own": None}]}),
        ("diagnosis", {"checks": [{"found": "3.11"}]}),
    ],
)
def test_former_names_of_keys_are_read(kind, data):
    """Keys that were renamed have their values under the new name; the file is not changed."""
    before = json.dumps({**data, "schema": 2})
    read = upgraded(kind, json.loads(before), to=2)
    expected = before
    for former, name in (("beside", "other_members"), ("own", "own_selection"),
                         ("found", "description")):  # fmt: skip
        expected = expected.replace(f'"{former}"', f'"{name}"')
    assert expected != before
    assert read == json.loads(expected)


@pytest.mark.parametrize("missing", ["verification", "baseline", "cost", "metrics"])
def test_an_incomplete_old_file_is_refused(missing):
    """The message is the same as for any other file."""
    data = old("result-without-evidence")
    del data[missing]
    with pytest.raises(BadInput, match="not a localization of broca"):
        decode(Localization, json.dumps(data))
