"""Finished parts of a stress test are kept: a killed one goes on and ends the same."""

import pytest

from broca.errors import BadInput
from broca.results.stress_test import Probe, Reversal
from broca.results.verification import Interval
from broca.stress_tests.families import load_family
from broca.stress_tests.keeping import NAME, Parts, digest
from broca.stress_tests.measure import stress
from broca.stress_tests.patching import Patcher

FEW = {"count": 16, "sets": 1}


def test_a_killed_test_goes_on_where_it_was(planted, tmp_path, monkeypatch):
    """Ended before the transfer, it measures neither necessity nor reversal again; all is equal."""
    family, heads, keep = load_family("letters"), ["L3H12", "L0H3"], tmp_path / NAME
    passes = []
    forward = Patcher.log_probs
    monkeypatch.setattr(
        Patcher, "log_probs", lambda *arguments: passes.append(1) or forward(*arguments)
    )

    def killed(stage):
        if stage == "transfer":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stress(planted, heads, family, **FEW, keep=keep, report=killed)
    before = len(passes)
    assert [line.split('"name": "')[1].split('"')[0] for line in keep.read_text().splitlines()] == [
        "necessity, zero", "necessity, mean", "necessity, resample", "probe", "reversals",
    ]  # fmt: skip
    found = stress(planted, heads, family, **FEW, keep=keep)
    rest = len(passes) - before
    passes.clear()
    assert found == stress(planted, heads, family, **FEW)
    assert len(passes) == before + rest
    passes.clear()
    assert found == stress(planted, heads, family, **FEW, keep=keep)
    assert len(passes) == 2  # what proves that patching is exact is never taken from a file


def test_parts_come_back_as_they_were(tmp_path):
    """Dataclasses, tuples of them, None and plain numbers, to the bit."""
    values = {
        "probe": (Probe, Probe(1 / 3, None, 0.5, 0.1, 0.25, 32)),
        "nothing": (Probe | None, None),
        "reversals": (tuple[Reversal, ...], (Reversal("a part", Interval(0.1 + 0.2, -1.0, 2.0)),)),
        "control": (Interval, Interval(1e-17, 0.0, 1.0)),
    }
    for _ in range(2):
        parts = Parts("asked", tmp_path / NAME)
        for name, (kind, value) in values.items():
            assert parts.get(name, kind, lambda value=value: value) == value
    assert len((tmp_path / NAME).read_text().splitlines()) == len(values)
    other = Parts("asked otherwise", tmp_path / NAME)
    assert other.get("control", Interval, lambda: Interval(9.0, 9.0, 9.0)).value == 9.0


def test_another_question_is_another_test(planted, tiny):
    """Heads, numbers, seed, prompts and weights all count."""
    letters, sums = load_family("letters"), load_family("sums")
    numbers = {"count": 16, "sets": 3, "seed": 0}
    every = [digest(planted, [1, 2], [letters, sums], **numbers)]
    every += [digest(planted, [1, 2], [letters, sums], **{**numbers, one: 7}) for one in numbers]
    every += [
        digest(planted, [2, 1], [letters, sums], **numbers),
        digest(planted, [1, 2], [letters], **numbers),
        digest(tiny, [1, 2], [letters, sums], **numbers),
    ]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("line", ["{}", "[]", '{"asked": 1, "name": "x", "value": 2}', "no json"])
def test_a_foreign_file_is_refused(tmp_path, line):
    """One line that says where."""
    (tmp_path / NAME).write_text(line + "\n")
    with pytest.raises(BadInput, match=r"line 1 of .*stress-parts\.jsonl"):
        Parts("asked", tmp_path / NAME)
