"""What the summaries and tables of each kind of result state."""

from dataclasses import replace

import pytest
from results import samples
from simulated import toy_verification

from broca.errors import BadInput
from broca.results.claim import Claim


def test_a_frame_has_a_line_for_each_part():
    """What the first model or a block lacks is unknown; a run of a journal names what it did."""
    frame = samples.make_comparison().to_frame()
    assert frame.query("model == 'base'")["difference"].isna().all()
    changed = frame.query("changed == True")
    assert changed[["model", "component", "difference"]].values.tolist() == [["tuned", "L0H0", 0.1]]
    assert [line["published"] for line in samples.make_reproduction().records()] == [None, 0.25]
    _, head, block = (tuple(line.values()) for line in samples.make_scan().records())
    assert (head, block) == (("L0H1", "head", 0, 1), ("L0M", "mlp", 0, None))
    assert [tuple(line.values()) for line in samples.make_list().records()] == [
        ("addition", "shipped"), ("all", "included_groups"), ("boolq", "paper"),
    ]  # fmt: skip
    with pytest.raises(BadInput, match="an atlas cannot be shown"):
        replace(samples.make_atlas(), selections=()).to_frame()
    assert samples.make_atlas().to_frame().query("selected")["component"].tolist() == ["L0H0"]
    frame = samples.make_result().to_frame().set_index("component")
    assert list(frame.index[frame["selected"]]) == ["L1H2", "L0H0"]
    assert (frame.loc["L0H0", "low"], frame.loc["L0H0", "high"]) == (-0.2, -0.02)


def test_a_claim_names_the_tasks_of_its_mean():
    """A task at chance can show no loss: it is not among the others that lose little."""
    run = toy_verification()
    drops = tuple(replace(d, role="at_chance") if d is run.worst else d for d in run.drops)
    run = replace(run, drops=drops)
    claim = Claim.of(samples.make_result(verification=run, selected=run.heads))
    assert claim.others == tuple(line.task for line in run.roles("other"))


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
    listed = [(line["run"], line["task"], line["seed"]) for line in contents.records()]
    assert listed == [(1, "sorting", 3), (2, "sorting", 3)]
    for settings, subject, procedure in (
        ({"task": "sorting", "method": "greedy"}, "sorting", "greedy"),
        ({"verb": "plan", "task": "sorting"}, "sorting", "plan"),
        ({"measures": "sorting"}, "sorting", "verify"),
        ({"verb": "atlas", "tasks": ["sorting", "capitals"]}, "sorting+capitals", "atlas"),
        ({"verb": "stress", "heads": ["L0H1", "L0H2"]}, "L0H1+L0H2", "stress"),
    ):
        line = replace(contents.runs[0], settings=settings)
        assert (line.subject, line.procedure) == (subject, procedure)
