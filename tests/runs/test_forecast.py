"""Forecasts of a run, on a clock that the tests set."""

import numpy as np
import pytest

from broca.runs.forecast import Forecast, Outlook, Step


class Clock:
    """A clock that shows the time that the test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        """Returns the time."""
        return self.now


STEPS = (
    Step("intact", 300),
    Step("search", 2000, "search"),
    Step("proof", 900),
)
SECONDS_A_ROW = {"scores": 0.25, "search": 0.04}


def simulate(steps, measured, *, chunk=20, noise=0.0, between=0.0):
    """Runs the steps on a clock; returns the stages, outlooks and seconds that then remained.

    Args:
        steps: The steps as they are expected.
        measured: Rows that each of them measures.
        chunk: Rows between two reports.
        noise: Relative scatter of a chunk's time.
        between: Seconds of a search between two chunks.
    """
    clock, rng = Clock(), np.random.default_rng(0)
    forecast, outlooks = Forecast(steps, clock=clock), []
    for step in steps:
        forecast.enter(step.stage)
        for start in range(0, measured[step.stage], chunk):
            rows = min(chunk, measured[step.stage] - start)
            pace = SECONDS_A_ROW[step.kind] * (1 + noise * rng.uniform(-1, 1))
            clock.now += rows * pace + between * (step.kind == "search")
            forecast.measure(rows)
            outlooks.append((step.stage, clock.now, forecast.outlook()))
    return [(stage, outlook, clock.now - now) for stage, now, outlook in outlooks]


@pytest.mark.parametrize(("noise", "between"), [(0.0, 0.0), (0.5, 0.0), (0.3, 0.4)])
def test_the_time_left_is_true_once_every_speed_is_known(noise, between):
    """From the third report of the search on, the error of the time left is at most 20 % or 3 s."""
    outlooks = simulate(
        STEPS, {step.stage: step.rows for step in STEPS}, noise=noise, between=between
    )
    pairs = [(outlook, seconds) for stage, outlook, seconds in outlooks if stage != "intact"][2:]
    assert len(pairs) > 100
    for outlook, seconds in pairs:
        assert not outlook.guessed
        assert outlook.seconds_left == pytest.approx(seconds, rel=0.2, abs=3.0)


def test_a_speed_that_is_not_known_is_guessed_from_the_slowest():
    """While the intact model is scored, the search is assumed to be as slow, marked as a guess."""
    outlooks = simulate(STEPS, {step.stage: step.rows for step in STEPS})
    stage, outlook, _ = outlooks[3]
    assert (stage, outlook.guessed) == ("intact", True)
    rows_left = sum(step.rows for step in STEPS) - 80
    assert outlook.seconds_left == pytest.approx(rows_left * SECONDS_A_ROW["scores"])


def test_speeds_that_change_are_followed():
    """A speed that halves is followed within two minutes."""
    clock = Clock()
    forecast = Forecast([Step("intact", 400), Step("proof", 4000)], clock=clock)
    forecast.enter("intact")
    for _ in range(40):
        clock.now += 1.0
        forecast.measure(10)
    forecast.enter("proof")
    for _ in range(60):
        clock.now += 2.0
        forecast.measure(10)
    seconds = (4000 - 600) * 0.2
    assert forecast.outlook().seconds_left == pytest.approx(seconds, rel=0.1)


def test_a_step_that_ends_early_leaves_the_total():
    """When a search stops at half its budget, the share never falls and ends at one."""
    outlooks = simulate(STEPS, {"intact": 300, "search": 1000, "proof": 900})
    shares = [outlook.done / outlook.total for _, outlook, _ in outlooks]
    assert shares == sorted(shares)
    assert outlooks[-1][1] == Outlook(2200, 2200, 0.0, guessed=False)
    proof = [(outlook, seconds) for stage, outlook, seconds in outlooks if stage == "proof"]
    assert all(o.seconds_left == pytest.approx(seconds, rel=0.15, abs=1.0) for o, seconds in proof)


def test_a_step_that_measures_more_adds_to_the_total():
    """When random sets are doubled, the done rows never exceed the total."""
    outlooks = simulate(STEPS, {"intact": 300, "search": 2000, "proof": 1700})
    assert all(outlook.done <= outlook.total for _, outlook, _ in outlooks)
    assert outlooks[-1][1] == Outlook(4000, 4000, 0.0, guessed=False)


def test_a_plan_beyond_the_step_counts_before_it_is_measured():
    """The rows of a step of unknown size are in the total as soon as they are planned."""
    clock = Clock()
    forecast = Forecast([Step("intact", 10), Step("alone", 0)], clock=clock)
    forecast.enter("intact")
    clock.now += 5.0
    forecast.measure(10)
    forecast.enter("alone")
    forecast.plan(60)
    assert forecast.outlook() == Outlook(10, 70, 30.0, guessed=False)


def test_a_step_that_is_left_out_leaves_the_total():
    """If a later step is entered, the rows of the steps between are removed from the total."""
    forecast = Forecast([*STEPS, Step("pairs", 10)], clock=Clock())
    forecast.enter("intact")
    forecast.enter("pairs")
    assert forecast.outlook().total == 10


def test_rows_that_were_known_have_no_speed():
    """Rows from the journal are done but do not change the measured speed."""
    clock = Clock()
    forecast = Forecast(STEPS, clock=clock)
    forecast.enter("intact")
    clock.now += 0.5
    forecast.skip(200)
    assert forecast.outlook() == Outlook(200, 3200, None, guessed=True)
    clock.now += 5.0
    forecast.measure(20)
    assert forecast.outlook().seconds_left == pytest.approx(2980 * 0.25)


def test_a_stage_that_is_no_step_counts_nothing():
    """Rows of a stage that is not an expected step change neither done rows nor total."""
    clock = Clock()
    forecast = Forecast(STEPS, clock=clock)
    forecast.enter("intact")
    forecast.enter("looking at it")
    clock.now += 1.0
    forecast.measure(50)
    assert (forecast.outlook().done, forecast.outlook().total) == (0, 2900)


CELLS = tuple(Step(f"cell {number}", 1000, "focus", verb=True) for number in range(4))


def test_later_verbs_are_expected_to_take_what_the_first_took():
    """A search that stops at half its budget halves the expected rows of its method's cells."""
    clock = Clock()
    forecast = Forecast([*CELLS, Step("another", 1000, "greedy", verb=True)], clock=clock)
    forecast.enter("cell 0")
    clock.now += 50.0
    forecast.follow(500, 500, 0.0, guessed=False)
    forecast.enter("cell 1")
    assert forecast.outlook() == Outlook(500, 3000, 250.0, guessed=True)


def test_the_time_of_a_verb_is_its_own():
    """The verb's own time is used for the current step, and its speed for the others."""
    clock = Clock()
    forecast = Forecast(CELLS[:2], clock=clock)
    forecast.enter("cell 0")
    clock.now += 10.0
    forecast.follow(100, 1000, 30.0, guessed=True)
    assert forecast.outlook() == Outlook(100, 2000, 130.0, guessed=True)


def test_a_step_that_the_run_comes_back_to():
    """Alternating steps keep their rows until they are completed."""
    clock = Clock()
    steps = [Step("table", 60, returns=True), *CELLS[:2], Step("figure", 30, returns=True)]
    forecast = Forecast(steps, clock=clock)
    for stage in ("cell 0", "cell 1"):
        forecast.enter("table")
        forecast.enter(stage)
        clock.now += 10.0
        forecast.follow(1000, 1000, 0.0, guessed=False)
        forecast.enter("table")
        clock.now += 1.0
        forecast.measure(10)
    assert (forecast.outlook().done, forecast.outlook().total) == (2020, 2090)
    forecast.complete("table")
    forecast.enter("figure")
    assert (forecast.outlook().done, forecast.outlook().total) == (2020, 2050)


def test_steps_replace_the_one_that_stood_for_them():
    """Steps that replace another take its place before the later steps."""
    forecast = Forecast([CELLS[0], Step("model 1", 1000), Step("model 2", 1000)], clock=Clock())
    forecast.enter("cell 0")
    forecast.add([Step("a", 10), Step("b", 10)], instead_of="model 1")
    forecast.enter("b")
    assert forecast.outlook().total == 1010
    forecast.enter("model 2")
    assert forecast.outlook().total == 1000
