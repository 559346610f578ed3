"""Rows in the journal are not measured again; measured rows are stored chunk by chunk."""

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from journals import totals

from broca.errors import BadResponse, NotInJournal
from broca.executors.journaled import JournaledExecutor, chunks
from broca.measurement import Measurement, Plan
from broca.store import Condition, ItemRecord, Journal, Replay, read_run
from broca.tasks.items import Generation, LogLikelihood

CONDITION = Condition("w", "t", "float32", "zero", 0.0, 0, "", "accuracy")
NAMES = tuple(f"L0H{number}" for number in range(12))


class Counting:
    """An executor that computes numbers from mask and item, and records what it is asked."""

    runner = SimpleNamespace(concurrent=False)
    tokens = 0

    def __init__(self):
        self.requested = []

    def rescored(self, plan):
        """Returns that no row is scored by a function of the caller."""
        return np.zeros(len(plan), dtype=bool)

    def stream(self, plans):
        """Yields the measurement of each plan."""
        for number, plan in enumerate(plans):
            yield number, self.run(plan)

    def stream_answers(self, plans):
        """Yields the answers to each plan."""
        for number, plan in enumerate(plans):
            yield number, self.answers(plan)

    def stream_observations(self, batches):
        """Yields a vector for each observation, filled with its key."""
        for number, batch in enumerate(batches):
            keys = [observation.key for observation in batch]
            self.requested += keys
            yield number, [np.full(3, int(key), dtype=np.float32) for key in keys]

    def run(self, plan):
        """Returns responses and gradients computed from masks and items."""
        for mask, item in zip(plan.mask_index, plan.item_index, strict=True):
            self.requested.append((plan.masks[mask].tobytes(), int(item)))
        weights = np.linspace(-1, 1, plan.masks.shape[1])
        responses = plan.masks[plan.mask_index] @ weights + plan.item_index / 7
        slopes = (weights * plan.item_index[:, None]).astype(np.float32)
        return Measurement(plan, responses, slopes if plan.gradients else None)

    def answers(self, plan):
        """Returns answers that name the row's item."""
        self.run(plan)
        return [(Generation(f"é {item}", 2), LogLikelihood(-0.1, True)) for item in plan.item_index]


class Searching(JournaledExecutor):
    """An executor whose plans are rows of a search."""

    def run(self, plan, role="search"):
        """Measures a plan as rows of a search, by default with margins as responses."""
        return super().run(replace(plan, response=plan.response or "margin"), role=role)


def executor(journal, inner, kind=Searching, **options):
    """Returns the executor of a run of 30 items, 10 tokens each, in chunks of 100 tokens."""
    items = journal.items([ItemRecord(bytes([n]), "task", n) for n in range(30)])
    components = journal.components(NAMES)
    run = journal.begin_run(b"r", settings={}, components=components, items=items, process="p")
    return kind(
        executor=inner, journal=journal, number=run, condition=CONDITION, components=components,
        items=items, lengths=np.full(30, 10, dtype=np.int64), chunk_tokens=100, **options,
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
def test_answers_are_those_of_the_inner_executor(plan, gradients):
    """Responses equal the inner executor's; each distinct row is measured once over two runs."""
    plan = replace(plan, gradients=gradients)
    direct = Counting().run(plan)
    inner = Counting()
    with Journal() as journal:
        journaled = executor(journal, inner)
        first, second = journaled.run(plan), journaled.run(plan)
    for measurement in (first, second):
        np.testing.assert_array_equal(measurement.responses, direct.responses)
        if gradients:
            np.testing.assert_array_equal(measurement.gradients, direct.gradients)
    assert len(inner.requested) == len(set(inner.requested)) == journaled.measured < 300
    assert journaled.cost["search"] == 2 * plan.cost


def test_another_run_reuses_what_the_first_measured(plan, tmp_path):
    """A second run on the same file measures only the rows that the first did not."""
    with Journal(tmp_path / "j.sqlite") as journal:
        executor(journal, Counting()).run(plan)
    more = np.vstack([plan.masks[::-1], np.ones((1, 12), dtype=bool)])
    longer = Plan(more, np.append(19 - plan.mask_index, 20), np.append(plan.item_index, 29))
    inner = Counting()
    with Journal(tmp_path / "j.sqlite") as journal:
        measurement = executor(journal, inner).run(longer)
    assert inner.requested == [(more[20].tobytes(), 29)]
    np.testing.assert_array_equal(measurement.responses, Counting().run(longer).responses)


@pytest.mark.parametrize("after", [0, 1, 3, 7])
def test_a_break_loses_at_most_one_chunk(plan, tmp_path, after):
    """A run that continues after an error measures the remaining chunks, and no row twice."""

    class Dying(Counting):
        calls = 0

        def run(self, plan):
            if self.calls == after:
                raise RuntimeError("power cut")
            self.calls += 1
            return super().run(plan)

    dying, continuing, unbroken = Dying(), Counting(), Counting()
    with Journal(tmp_path / "j.sqlite") as journal, pytest.raises(RuntimeError, match="power"):
        executor(journal, dying).run(plan)
    with Journal(tmp_path / "j.sqlite") as journal:
        measurement = executor(journal, continuing).run(plan)
    with Journal() as journal:
        expected = executor(journal, unbroken).run(plan)
    np.testing.assert_array_equal(measurement.responses, expected.responses)
    assert dying.requested + continuing.requested == unbroken.requested


def test_chunks_cover_a_plan_and_keep_masks_together():
    """A chunk ends with a mask unless it would exceed 200 tokens; chunks hold every row once."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        groups = rng.integers(1, 30, rng.integers(1, 20))
        masks = np.eye(len(groups), dtype=bool)
        plan = Plan(
            masks, np.repeat(np.arange(len(groups)), groups), rng.integers(0, 9, sum(groups))
        )
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
    assert list(chunks(Plan(masks, np.array([], int), np.array([], int)), lengths, 9)) == []


def test_what_is_no_number_is_refused_and_not_kept(plan):
    """A NaN response raises `BadResponse`, and no row is stored."""

    class Broken(Counting):
        def run(self, plan):
            measured = super().run(plan)
            measured.responses[3] = np.nan
            return measured

    with Journal() as journal:
        with pytest.raises(BadResponse, match="is nan"):
            executor(journal, Broken()).run(plan)
        assert totals(journal)["rows"] == 0


def test_a_run_can_be_read_back_without_a_model(plan, tmp_path):
    """A finished run is read back as matrices and replayed; rows that it lacks are refused."""
    with Journal(tmp_path / "j.sqlite") as journal:
        expected = executor(journal, Counting()).run(plan)
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        rows = read_run(journal, 1)
        first = np.sort(np.unique(rows_of(plan), axis=0, return_index=True)[1])
        np.testing.assert_array_equal(rows.responses, expected.responses[first])
        np.testing.assert_array_equal(rows.masks, plan.masks[plan.mask_index[first]])
        numbers = [rows.records[item].number for item in rows.items.tolist()]
        assert numbers == plan.item_index[first].tolist()
        assert rows.components == NAMES
        again = Replay(journal, 1)
        np.testing.assert_array_equal(again.run(plan).responses, expected.responses)
        with pytest.raises(NotInJournal, match="ended after 1 plans"):
            again.run(plan)
        with pytest.raises(NotInJournal, match="other masks"):
            Replay(journal, 1).run(replace(plan, masks=~plan.masks))
        items = plan.item_index.copy()
        items[0] = (items[0] + 1) % 30
        with pytest.raises(NotInJournal, match="other items"):
            Replay(journal, 1).run(replace(plan, item_index=items))


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
        assert journaled.cost["scores"] == 2 * 5 * 300
        assert journaled.requested("search") == 0


def test_kept_outputs_are_a_share_drawn_by_row():
    """`keep_outputs` of 0.5 stores the outputs of about half of the rows, the same each time."""

    class Speaking(Counting):
        def run(self, plan):
            words = tuple((Generation(f"item {item}", 2),) for item in plan.item_index)
            return replace(super().run(plan), outputs=words)

    outputs = []
    for _ in range(2):
        with Journal() as journal:
            plan = Plan.crossed(np.eye(12, dtype=bool), np.arange(30))
            executor(journal, Speaking(), keep_outputs=0.5).run(plan)
            lines = list(journal.lines("batches", "kind = 'outputs'"))
            keys = np.concatenate([np.frombuffer(line.keys, "<i8") for line in lines])
            texts = journal.contents(journal.find("outputs", lines[0].condition, keys))
            outputs.append(dict(zip(keys.tolist(), texts, strict=True)))
    assert outputs[0] == outputs[1]
    assert 120 < len(outputs[0]) < 240
    for key, text in outputs[0].items():
        assert json.loads(text) == [{"text": f"item {(key & 0xFFFFFFFF) - 1}", "tokens": 2}]


def test_answers_are_kept_and_asked_once(plan, tmp_path):
    """Answers are stored, read back equal from the reopened journal, and asked once each."""
    inner = Counting()
    with Journal(tmp_path / "j.sqlite") as journal:
        first = executor(journal, inner).answers(plan)
    with Journal(tmp_path / "j.sqlite") as journal:
        assert executor(journal, Counting()).answers(plan) == first == Counting().answers(plan)
    assert len(inner.requested) == len(set(inner.requested)) < 300


def test_rows_of_another_scale_are_other_rows(plan, tmp_path):
    """Rows under another scale are measured and stored separately, and replayed without a model."""
    inner = Counting()
    with Journal(tmp_path / "j.sqlite") as journal:
        journaled = executor(journal, inner)
        journaled.run(plan)
        different_rows = journaled.measured
        scaled = journaled.run(replace(plan, scale=0.5))
        assert journaled.measured == 2 * different_rows
        journaled.run(replace(plan, scale=0.5))
        journaled.run(replace(plan, scale=0.0))  # the scale of the run itself
        assert journaled.measured == 2 * different_rows
        replay = Replay(journal, 1)
        replay.run(plan)
        again = replay.run(replace(plan, scale=0.5)).responses
        np.testing.assert_array_equal(again, scaled.responses)


def test_plans_may_ask_for_another_response(plan):
    """Rows with another response are measured and stored separately."""
    inner = Counting()
    with Journal() as journal:
        journaled = executor(journal, inner)
        for response in (None, "margin", "probability", "accuracy", "accuracy"):
            journaled.run(replace(plan, response=response))
        assert len({line.condition for line in journal.lines("batches")}) == 3
    assert len(inner.requested) == 3 * len(set(inner.requested))


@dataclass(frozen=True)
class Number:
    """An observation that is a number."""

    key: str
    kind: str = "number"
    length: int = 40


def test_observations_are_taken_once_and_kept(tmp_path):
    """Equal observations are taken once, and read back from the reopened journal."""
    observations = [Number(str(n % 7)) for n in range(20)]
    inner = Counting()
    with Journal(tmp_path / "j.sqlite") as journal:
        first = executor(journal, inner).observe(observations)
    with Journal(tmp_path / "j.sqlite") as journal:
        again = executor(journal, Counting()).observe(observations)
        assert totals(journal)["vectors"] == 7
    assert inner.requested == [str(n) for n in range(7)]
    for vectors in (first, again):
        assert [vector[0] for vector in vectors] == [n % 7 for n in range(20)]
    assert executor(Journal(), Counting()).observe([]) == []


def test_a_vector_of_the_caller_is_measured_once(tmp_path):
    """A vector of a kind and a key is measured once; it counts no row, and is kept for its run."""
    speeds = iter([np.array([3.5], dtype=np.float32), np.array([9.0], dtype=np.float32)])
    with Journal(tmp_path / "j.sqlite") as journal:
        journaled = executor(journal, Counting())
        assert journaled.once("timing", "run", lambda: next(speeds)).tolist() == [3.5]
    with Journal(tmp_path / "j.sqlite") as journal:
        journaled = executor(journal, Counting())
        assert journaled.once("timing", "run", lambda: next(speeds)).tolist() == [3.5]
        assert journaled.once("timing", "other", lambda: next(speeds)).tolist() == [9.0]
        assert journal.cost(1) == (0, 0)
        assert totals(journal)["vectors"] == 2


class Rescoring(Counting):
    """An executor that scores items of even number by a function of the caller."""

    def __init__(self, bonus):
        super().__init__()
        self.bonus = bonus

    def rescored(self, plan):
        """Returns whether each row's item has an even number."""
        return plan.item_index % 2 == 0

    def scores(self, plan, outputs):
        """Returns the length of each text plus the bonus."""
        return np.array([len(answer[0].text) + self.bonus for answer in outputs], dtype=float)


def test_a_callers_metric_is_applied_to_outputs_and_never_kept(plan):
    """Two metrics share outputs, and no score of a caller's metric is stored."""
    executors = [Rescoring(bonus) for bonus in (0.0, 10.0)]
    with Journal() as journal:
        scored = [executor(journal, inner, JournaledExecutor).run(plan) for inner in executors]
        kept = [
            np.frombuffer(line.keys, "<i8") & 0xFFFFFFFF
            for line in journal.lines("batches", "kind = 'rows'")
        ]
    even = plan.item_index % 2 == 0
    assert (np.concatenate(kept) % 2 == 0).all()  # ids begin at 1: items of odd number
    np.testing.assert_array_equal(scored[1].responses - scored[0].responses, 10.0 * even)
    np.testing.assert_array_equal(
        scored[0].responses[even], [len(f"é {item}") for item in plan.item_index[even]]
    )
    assert not set(executors[0].requested) & set(executors[1].requested)  # outputs are shared
