"""`broca.stress` on a model with planted heads, and its journal."""

import pytest
from results.samples import make_result

from broca.errors import BadInput, UnknownName
from broca.results.base import ModelInfo
from broca.store import Journal
from broca.stress_tests.patcher import AnswerLogProbs, HeadOutputs
from broca.verbs.stress import stress

SORTING = ["L3H12", "L0H3", "L3H1", "L0H4"]
FEW = {"pairs": 16, "sets": 2}
RETRAINED = make_result(task="sorting", model=ModelInfo("planted", "abc"))


@pytest.fixture(scope="module")
def sorting(planted):
    """The planted sorting heads, tested on sorting against reversing."""
    return stress(planted, heads=SORTING, **FEW)


def batches(path):
    """Returns a journal's numbers of batches and vectors; every batch must have read tokens."""
    with Journal(path, read_only=True) as journal:
        lines = list(journal.lines("batches"))
    assert all(line.tokens for line in lines)
    return len(lines), sum(line.rows for line in lines)


def test_planted_heads_transfer(sorting):
    """The planted heads transfer, are decodable and are necessary to their family alone."""
    assert sorting.verdict == "transfers", sorting.text
    assert sorting.positive_control.low > 0
    assert sorting.probe.accuracy > 0.9 > sorting.probe.surface
    assert [line.ablation for line in sorting.necessity] == ["zero", "mean", "resample"]
    for line in sorting.necessity:
        assert (line.rank, len(line.null)) == (1, 2)
        assert line.selective == line.drop.value - line.controls["sums"] > 1
    assert [part.part for part in sorting.reversals] == [
        *(f"{name} alone" for name in SORTING), "the last token", "all but the last token",
        "4 of 64 dimensions",
    ]  # fmt: skip
    real, *controls = sorting.shifts
    assert real.transfer.low > 0
    assert all(control.beyond.low > 0 for control in controls)
    assert [control.source for control in controls] == [
        "the same operation, other operands", "the operation word neutralised",
        "an unrelated family", "noise of the same norm", "random heads",
    ]  # fmt: skip
    assert sorting.heads == tuple(SORTING)
    assert sorting.pairs == 16


def test_an_ended_test_goes_on_where_it_was(planted, sorting, tmp_path, monkeypatch):
    """A test ended before the transfer measures what is missing; a third call, nothing."""
    journal = tmp_path / "journal.sqlite"

    def end(stage, progress):
        if stage == "transfer":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stress(planted, heads=SORTING, journal=journal, on_progress=end, **FEW)
    _, measured = batches(journal)
    # 2 families, each 3 sets under 3 kinds and intact; the heads' outputs; 7 restored parts
    assert measured == 2 * (3 * 3 + 1) + 1 + 7
    assert stress(planted, heads=SORTING, journal=journal, **FEW) == sorting
    count, total = batches(journal)
    # self-patch; targets, 5 writes and 2 random sets; neutral prompts, intact and with 2 offsets
    assert total - measured == 1 + 1 + 5 + 2 + 3
    for cls in (AnswerLogProbs, HeadOutputs):
        monkeypatch.setattr(cls, "observe", None)
    assert stress(planted, heads="+".join(SORTING), journal=journal, **FEW) == sorting
    assert batches(journal) == (count, total)


@pytest.mark.long
def test_another_question_is_measured(planted, tmp_path):
    """Another seed draws other random sets; vectors that both seeds need are measured once."""
    journal = tmp_path / "journal.sqlite"
    first = stress(planted, heads=["L0H3"], journal=journal, **FEW)
    _, measured = batches(journal)
    second = stress(planted, heads=["L0H3"], journal=journal, seed=1, **FEW)
    assert first.necessity[0].drop == second.necessity[0].drop
    assert first.necessity[0].null != second.necessity[0].null
    assert measured < batches(journal)[1] < 2 * measured


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": SORTING, "pairs": 15}, "`pairs` must be at least 16, not 15"),
        ({"heads": []}, "no heads are named: give `heads`"),
        ({"heads": ["L0H3", "L0H3"]}, "named twice"),
        ({"heads": SORTING, "family": "sums"}, "one operation"),
        ({"heads": SORTING, "family": "leters"}, "did you mean 'letters'"),
        ({"heads": SORTING, "control": ["sum"]}, "did you mean 'sums'"),
        ({"heads": make_result()}, "the run is about task 'adding'"),
        ({"target": RETRAINED}, "'planted' are not those of the run"),
    ],
)
def test_bad_input_is_refused(planted, arguments, message):
    """Too few pairs, bad heads, unknown families, another task and other weights are refused."""
    with pytest.raises((BadInput, UnknownName), match=message):
        stress(**{"target": planted, **arguments})
