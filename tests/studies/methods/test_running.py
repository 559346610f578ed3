"""Cells select and score like `localize`, run once and are reproducible."""

from dataclasses import replace

import pytest
from journals import totals

import broca
from broca.errors import BadInput, UnknownName
from broca.measurement import Plan
from broca.options import TaskOptions
from broca.studies.methods import Grid, method_cells, parse_methods
from broca.studies.methods import running as module
from broca.studies.methods.ground_truth import SingleEffects
from broca.studies.methods.running import run_cell, run_cells

FEW = TaskOptions(limit=60)
SMALL = Grid(
    ("gradient", "thompson"), (48, 250), (0, 1), items=15, report_items=30, task_options=FEW
)


def key_of(setup, task, method, budget=None, seed=0, *, report_items=1000):
    """Returns the key of one cell."""
    grid = Grid(
        (method,), (budget,), (seed,), items=15, report_items=report_items, task_options=FEW
    )
    (key,) = grid.keys(setup.session.model.fingerprint, [task], setup.benchmarks)
    return key


@pytest.mark.parametrize(
    ("method", "budget", "rows"), [("focus", 300, 600), ("thompson", 400, 400)]
)
def test_a_cell_is_what_localize_finds(setup, method, budget, rows):
    """A cell has the selection, drops and rows of `localize` with the same settings and seed."""
    cell = run_cell(setup, key_of(setup, "addition", method, budget, 3))
    result = broca.localize(
        setup.session.model,
        task="addition",
        others=["rhyming"],
        method=method,
        rows=rows,
        items=15,
        seed=3,
        verify=False,
        task_options=FEW,
        journal=setup.session.workspace,
    )
    assert not cell.refused
    assert cell.selected == result.selected
    assert cell.rows == result.cost.rows
    assert cell.drop == result.verification.drop
    assert cell.off_target == result.verification.off_target_drop
    assert cell.specific == result.verification.specific_drop


def test_tasks_of_the_same_capability_are_not_measured(setup):
    """Tasks of the same capability are not among the cell's other tasks."""
    assert key_of(setup, "addition", "focus").others == ("rhyming",)
    assert key_of(setup, "rhyming", "focus").others == ("addition", "addition_words")


def test_report_items_limit_the_report(setup, whole_run):
    """`report_items` takes evenly spread items of the task, and as many of the others together."""
    limited, every = (
        broca.localize(
            setup.session.model, "rhyming", others=["addition", "capitals"], method="one-shot",
            rows=970, items=15, verify=False, task_options=FEW, journal=setup.session.workspace,
            report_items=count,
        )
        for count in (12, None)
    )  # fmt: skip
    items = {drop.task: drop.items for drop in limited.verification.drops}
    assert items == {"rhyming": 12, "addition": 6, "capitals": 6}
    assert limited.selected == every.selected
    mask = setup.session.model.components.mask(limited.selected)
    assert all(drop.items == 30 for drop in every.verification.drops)
    report = setup.benchmarks["rhyming"].split(items=15, seed=0).report
    spread = [report[round(place * 29 / 11)] for place in range(12)]
    places = whole_run.tasks.places["report"]["rhyming"][spread]
    responses = whole_run.measure(Plan.crossed(mask[None], places)).responses
    assert limited.verification.after["rhyming"] == pytest.approx(responses.mean())
    with pytest.raises(BadInput, match="`report_items` must be at least 1"):
        broca.localize(setup.session.model, "rhyming", report_items=0)


def test_no_row_is_scored_twice(setup):
    """A second run of the same cell adds no row to the journal."""
    first = key_of(setup, "rhyming", "one-shot", 200, 7)
    run_cell(setup, first)
    journal = setup.session.workspace.journal
    before = totals(journal)
    cell = run_cell(setup, first)
    assert cell.rows > 0
    assert totals(journal) == before


def test_a_task_that_the_model_cannot_do_is_refused_not_hidden(setup, tiny):
    """A cell of a random model, which has nothing to localize, states the refusal."""
    random = replace(setup, session=replace(setup.session, model=tiny))
    cell = run_cell(random, replace(key_of(setup, "rhyming", "one-shot"), others=()))
    assert "nothing to localize" in cell.refused
    assert cell.specific == 0


def test_an_interrupt_loses_no_finished_cell(setup, tmp_path, monkeypatch):
    """After an interrupt in the third cell, the same grid runs the six missing cells only."""
    keys = list(SMALL.keys(setup.session.model.fingerprint, ["rhyming"], setup.benchmarks))
    cells = method_cells(tmp_path)
    ran = []

    def dying(setup, key, **options):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(key)
        return run_cell(setup, key, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "run_cell", dying)
        with pytest.raises(KeyboardInterrupt):
            run_cells(setup, keys, cells)
    assert [key in cells for key in keys] == [key in ran for key in keys]
    assert run_cells(setup, keys, cells) == 6
    assert len(cells.read()) == len(keys) == 8
    assert run_cells(setup, keys, cells) == 0


def test_budgets_that_a_method_refuses_are_recorded(setup):
    """A cell whose budget is too small records the method's message and spends no rows."""
    cell = run_cell(setup, key_of(setup, "rhyming", "thompson", 48))
    assert "`rows` 48 is too few for thompson" in cell.refused
    assert (cell.rows, cell.selected, cell.intervals) == (0, (), 0)


def test_same_seed_same_cell(setup):
    """Two runs with the same seed give equal cells except for the seconds."""
    key = key_of(setup, "addition", "cs-fresh", 200, 4)
    first, second = (replace(run_cell(setup, key), seconds=0.0) for _ in range(2))
    assert first == second
    assert first.rows <= 200


def test_intervals_are_compared_in_the_response_that_they_are_in(setup):
    """Intervals are compared with effects in the search's response: accuracy or probability."""
    names = setup.session.model.components.names
    everywhere = SingleEffects(9, dict.fromkeys(names, -0.5))
    nowhere = SingleEffects(9, dict.fromkeys(names, 9.0))
    for method, response in (("focus", "accuracy"), ("cs-fresh", "probability")):
        effects = {("addition", "accuracy"): nowhere, ("addition", "probability"): nowhere}
        effects["addition", response] = everywhere
        cell = run_cell(replace(setup, effects=effects), key_of(setup, "addition", method, 300))
        assert cell.intervals == 96
        result = setup.localize(cell.key, lambda stage, progress: None)
        assert result.search.response == response
        held = sum(low <= -0.5 <= high for low, high in (line.ci for line in result.ranking))
        assert cell.held == held


def test_methods_by_name():
    """`all` names every method; an empty list and unknown names are refused."""
    assert parse_methods("greedy, focus,greedy") == ("greedy", "focus")
    assert len(parse_methods("all")) > 10
    with pytest.raises(UnknownName, match="did you mean 'greedy'"):
        parse_methods("gredy")
    with pytest.raises(BadInput, match="`methods`"):
        parse_methods(" , ")
