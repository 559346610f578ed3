"""Rows in the journal are not measured again; measured rows are stored chunk by chunk."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from direct import DirectExecutor
from executors.counting import Counting, Numbers, bank_of
from journals import totals

from broca.engine import Engine
from broca.errors import BadLogits, BadResponse
from broca.executors.journaled import JournaledExecutor, chunks
from broca.measurement import Plan
from broca.models import GatedModel
from broca.store import Condition, ItemRecord, Journal
from broca.tasks.items import LogLikelihood

CONDITION = Condition("w", "t", "float32", "zero", 0.0, 0, "", "accuracy")
NAMES = tuple(f"L0H{number}" for number in range(12))


def executor(journal, runner, bank=None, **options):
    """Returns the executor of a run of 30 items, 10 tokens each, in chunks of 100 tokens."""
    items = journal.items([ItemRecord(bytes([n]), "task", n) for n in range(30)])
    components = journal.components(NAMES)
    run = journal.begin_run(b"r", settings={}, components=components, items=items, process="p")
    return JournaledExecutor(
        executor=DirectExecutor(runner, bank or bank_of()), journal=journal,
        number=run, condition=CONDITION, components=components, items=items,
        lengths=np.full(30, 10, dtype=np.int64), chunk_tokens=100, **options,
    )  # fmt: skip


def rows_of(plan):
    """Returns the mask and the item of every row as numbers, `(rows, components + 1)`."""
    return np.column_stack([plan.masks[plan.mask_index], plan.item_index])


@pytest.fixture
def plan():
    """300 rows, some of them repeated, under 20 masks of which two are equal."""
    rng = np.random.default_rng(0)
    masks = rng.random((20, 12)) < 0.3
    masks[7] = masks[3]
    return Plan(masks, rng.integers(0, 20, 300), rng.integers(0, 30, 300))


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("response", [None, "margin"])
def test_answers_are_those_of_the_inner_executor(plan, gradients, response):
    """Responses equal the inner executor's; each distinct row is measured once over two runs."""
    plan = replace(plan, gradients=gradients, response=response)
    direct, runner = DirectExecutor(Counting(), bank_of()).run(plan), Counting()
    with Journal() as journal:
        journaled = executor(journal, runner)
        for _ in range(2):
            measurement = journaled.run(plan, role="search")
            np.testing.assert_array_equal(measurement.responses, direct.responses)
            if gradients:
                np.testing.assert_array_equal(measurement.gradients, direct.gradients)
    assert len(runner.requested) == len(set(runner.requested)) < 300
    assert journaled.cost["search"] == 2 * plan.cost


@pytest.mark.parametrize("after", [0, 1, 3, 7])
def test_a_break_loses_at_most_one_chunk(plan, tmp_path, after):
    """A run that continues after an error measures the remaining chunks, and no row twice."""
    dying, continuing, unbroken = Counting(after), Counting(), Counting()
    with Journal(tmp_path / "j.sqlite") as journal, pytest.raises(RuntimeError, match="power"):
        executor(journal, dying).run(plan)
    with Journal(tmp_path / "j.sqlite") as journal:
        measurement = executor(journal, continuing).run(plan)
    with Journal() as journal:
        expected = executor(journal, unbroken).run(plan)
    np.testing.assert_array_equal(measurement.responses, expected.responses)
    assert dying.requested + continuing.requested == unbroken.requested
    more = np.vstack([plan.masks[::-1], np.ones((1, 12), dtype=bool)])  # in another order, and one
    longer = Plan(more, np.append(19 - plan.mask_index, 20), np.append(plan.item_index, 29))
    later = Counting()
    with Journal(tmp_path / "j.sqlite") as journal:
        measurement = executor(journal, later).run(longer)
    assert later.requested == [(more[20].tobytes(), 29)]
    direct = DirectExecutor(Counting(), bank_of()).run(longer)
    np.testing.assert_array_equal(measurement.responses, direct.responses)


def test_chunks_cover_a_plan_and_keep_masks_together():
    """A chunk ends with a mask unless it would exceed 200 tokens; chunks hold every row once."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        groups = rng.integers(1, 30, rng.integers(1, 20))
        mask_index = np.repeat(np.arange(len(groups)), groups)
        plan = Plan(np.eye(len(groups), dtype=bool), mask_index, rng.integers(0, 9, sum(groups)))
        lengths = rng.integers(1, 20, 9)
        parts = list(chunks(plan, lengths, 100))
        np.testing.assert_array_equal(np.concatenate(parts), np.arange(len(plan)))
        sizes = [lengths[plan.item_index[rows]].sum() for rows in parts]
        assert all(100 <= size <= 200 + lengths.max() for size in sizes[:-1])
        ends = np.cumsum(groups)
        for rows in parts[:-1]:
            end = ends[plan.mask_index[rows[-1]]]
            mask_tokens = lengths[plan.item_index[rows[0] : end]].sum()
            assert rows[-1] + 1 == end or mask_tokens > 200, "a mask is divided"


@pytest.mark.parametrize("wrong", ["response", "gradient"])
def test_what_is_no_number_is_refused_and_not_kept(plan, wrong):
    """A NaN response or gradient raises `BadResponse`, and no row is stored."""
    runner, bank = Counting(), bank_of(Numbers(bonus=np.nan))
    runner.steepness = np.nan
    with Journal() as journal:
        with pytest.raises(BadResponse, match=f"{wrong} of item 16 of task 'task' with 5 .* nan"):
            executor(journal, runner, bank).run(replace(plan, gradients=wrong == "gradient"))
        assert totals(journal)["rows"] == 0


@pytest.mark.parametrize("response", ["accuracy", "margin"])
def test_infinite_logits_name_the_item(reference, bank, monkeypatch, response):
    """NaN logits raise an error that names the task and item of their row."""
    forward = GatedModel.forward

    def poisoned(self, tokens, *args, **kwargs):
        logits, cache = forward(self, tokens, *args, **kwargs)
        letters = torch.tensor(bank[8][1].requests[0].context[-3:])
        bad = (tokens[:, -3:] == letters).all(1) if tokens.shape[1] > 2 else torch.zeros(0).bool()
        if isinstance(keep := kwargs.get("keep"), list):
            bad = bad.repeat_interleave(torch.tensor(keep)) if len(bad) else bad
        logits[bad if len(bad) else []] = float("nan")
        return logits, cache

    monkeypatch.setattr(GatedModel, "forward", poisoned)
    plan = Plan.crossed(np.zeros((1, 96), dtype=bool), np.arange(12))
    where = r"item \d+ of task 'mc_biology' with 0 components ablated: the model returned"
    with Journal() as journal, pytest.raises(BadLogits, match=where):
        executor(journal, Engine(reference), bank).run(replace(plan, response=response))


def test_requested_rows_are_distinct(plan):
    """Repeated rows count once, a row with its gradient three times, an output once, by role."""
    distinct = len(np.unique(rows_of(plan), axis=0))
    with Journal() as journal:
        journaled = executor(journal, Counting())
        for _ in range(2):
            journaled.run(plan, role="scores")
            journaled.run(replace(plan, gradients=True), role="scores")
            journaled.answers(plan, role="scores")
        journaled.observe([Number("1")])
        assert journaled.requested("scores") == 5 * distinct
        assert journaled.requested("search") == 0


def test_kept_outputs_are_a_share_drawn_by_row():
    """`keep_outputs` of 0.5 stores the outputs of about half of the rows, the same each time."""
    outputs = []
    for _ in range(2):
        with Journal() as journal:
            plan = Plan.crossed(np.eye(12, dtype=bool), np.arange(30))
            executor(journal, Counting(), keep_outputs=0.5).run(plan)
            lines = list(journal.lines("batches", "kind = 'outputs'"))
            keys = np.concatenate([np.frombuffer(line.keys, "<i8") for line in lines])
            texts = journal.contents(journal.find("outputs", lines[0].condition, keys))
            outputs.append(dict(zip(keys.tolist(), texts, strict=True)))
    assert outputs[0] == outputs[1]
    assert 120 < len(outputs[0]) < 240
    assert all(LogLikelihood(**json.loads(text)[0]).greedy for text in outputs[0].values())


def test_rows_of_another_scale_or_response_are_other_rows(plan):
    """Rows under another scale or response are measured and stored separately."""
    with Journal() as journal:
        journaled = executor(journal, Counting())
        different = len(np.unique(rows_of(plan), axis=0))
        changed = {}, {"scale": 0.5}, {"response": "margin"}, {"response": "probability"}
        for count, changes in enumerate(changed, 1):
            journaled.run(replace(plan, **changes))
            assert totals(journal)["rows"] == count * different
        journaled.run(replace(plan, scale=0.0, response="accuracy"))  # those of the run itself
        assert totals(journal)["rows"] == 4 * different


@dataclass(frozen=True)
class Number:
    """An observation that is a number."""

    key: str
    kind: str = "number"
    length: int = 40


def test_answers_and_observations_are_kept_and_asked_once(plan, tmp_path):
    """Answers and vectors are asked once each, and read back equal from the reopened journal."""
    runner, observations = Counting(), [Number(str(n % 7)) for n in range(20)]
    with Journal(tmp_path / "j.sqlite") as journal:
        journaled = executor(journal, runner)
        outputs, vectors = journaled.answers(plan), journaled.observe(observations)
        assert journaled.observe([]) == []
    with Journal(tmp_path / "j.sqlite") as journal:
        again = executor(journal, Counting(0))
        assert again.answers(plan) == outputs
        np.testing.assert_array_equal(again.observe(observations), vectors)
        assert totals(journal)["vectors"] == 7
    assert outputs == DirectExecutor(Counting(), bank_of()).answers(plan)
    assert [vector[0] for vector in vectors] == [n % 7 for n in range(20)]
    assert len(runner.requested) == len(set(runner.requested)) < 300
    assert runner.requested[-7:] == [str(n) for n in range(7)]


def test_a_vector_of_the_caller_is_measured_once(tmp_path):
    """A vector of a kind and a key is measured once; it counts no row, and is kept for its run."""
    speeds = iter([np.array([3.5], dtype=np.float32), np.array([9.0], dtype=np.float32)])
    for keys in ({"run": 3.5}, {"run": 3.5, "other": 9.0}):
        with Journal(tmp_path / "j.sqlite") as journal:
            journaled = executor(journal, Counting())
            for key, speed in keys.items():
                assert journaled.once("timing", key, lambda: next(speeds)).tolist() == [speed]
            assert journal.cost(1) == (0, 0)
            assert totals(journal)["vectors"] == len(keys)


def test_a_callers_metric_is_applied_to_outputs_and_never_kept(plan):
    """Two metrics share outputs, and no score of a caller's metric is stored."""
    runners, scored = [Counting(), Counting()], []
    with Journal() as journal:
        for runner, bonus in zip(runners, (0.0, 10.0), strict=True):
            bank = bank_of(of_caller=Numbers(rescored=True, bonus=bonus))
            scored.append(executor(journal, runner, bank).run(plan).responses)
        kept = [line.keys for line in journal.lines("batches", "kind = 'rows'")]
    assert (np.frombuffer(b"".join(kept), "<i8") % 2 == 0).all()  # ids begin at 1: odd numbers
    np.testing.assert_allclose(scored[1] - scored[0], 10.0 * (plan.item_index % 2 == 0), atol=1e-12)
    np.testing.assert_array_equal(
        scored[0], DirectExecutor(Counting(), bank_of()).run(plan).responses
    )
    assert not runners[1].requested  # outputs are shared
