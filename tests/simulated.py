"""A simulated model with known heads for every task, measured like a real one."""

import zlib
from dataclasses import dataclass, replace

import numpy as np

from broca.components import Component, ComponentSet
from broca.engine import Ablation
from broca.measurement import Measurement
from broca.results.base import ModelInfo
from broca.results.verification import TextChange
from broca.tasks import Generation, Item
from broca.verification import Examiner, Scope, Trial

LAYERS, HEADS = 6, 16
COMPONENTS = ComponentSet(
    tuple(Component(layer, "head", head) for layer in range(LAYERS) for head in range(HEADS))
)


@dataclass(frozen=True)
class SimulatedTask:
    """A task whose items are right or wrong, with the methods of `Benchmark` that are needed."""

    metric: str = "acc"
    higher_is_better: bool = True
    chance: float = 0.0
    capability: str = ""

    def at_chance(self, score, *, items):
        """Returns whether the score is that of guessing, which is 0 here."""
        return score <= 0

    def choices(self, item):
        """Returns no choices: answers are generated."""
        return []

    def aggregate(self, values, items=None):
        """Returns the mean."""
        return float(np.mean(values))

    def loss(self, before, after):
        """Returns the decrease of the score, or its increase where lower is better."""
        return before - after if self.higher_is_better else after - before


class MiddleTask(SimulatedTask):
    """A task whose ten middle items weigh as much as all others."""

    def aggregate(self, values, items=None):
        """Returns the mean of both parts' means."""
        few = np.array([45 <= item.number < 55 for item in items])
        return np.mean([np.mean(np.array(values)[part]) for part in (few, ~few) if any(part)])


class SimulatedModel:
    """A model whose tasks lose a share of their items to every ablated head that they need.

    Args:
        heads: The heads of each task, with the share of its items that each head costs.
        everyone: Heads that every task needs, with the share of items that each head costs.
        items: Number of items of each task.
        babble: Whether items that are lost to `everyone` are answered by repeated words.
        name: Name of the model.
        garbled: Divergence of its text without any set.
    """

    def __init__(self, heads, *, everyone=None, items=80, babble=False, name="toy", garbled=0.0):
        self.heads, self.everyone, self.babble = heads, everyone or {}, babble
        self.garbled = garbled
        self.names, self.name = list(heads), name
        self.items = [
            Item(name, number, f"{name} {number}", f"answer {number}", ())
            for name in self.names
            for number in range(items)
        ]
        self.count = items
        self.rows = 0

    def _draw(self, position, salt):
        seed = zlib.crc32(f"{salt} {position}".encode())
        return np.random.default_rng(seed).uniform()

    def _lost_to(self, mask, position):
        name = self.items[position].task
        for which, table in (("everyone", self.everyone), ("own", self.heads[name])):
            for head, share in table.items():
                if mask[COMPONENTS.column(head)] and self._draw(position, head) < share:
                    return which
        return None

    def execute(self, plan):
        """Scores every row 1 (right) or 0 (wrong); 5 % of the items are wrong under any mask."""
        self.rows += len(plan)
        right = [
            self._draw(item, "base") > 0.05 and self._lost_to(plan.masks[mask], item) is None
            for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
        ]
        return Measurement(plan, np.array(right, dtype=float))

    def answer(self, plan):
        """Returns a generation for each row: the right answer, a wrong one or repeated words."""
        generations = []
        for mask, item in zip(plan.mask_index, plan.item_index, strict=True):
            lost = self._lost_to(plan.masks[mask], item)
            text = f"answer {item}" if lost is None else f"guess {item * 7}"
            if lost == "everyone" and self.babble:
                text = f"{item} the " + "same words again and again " * 4
            generations.append((Generation(text, len(text)),))
        return generations

    def examiner(self, task=None, *, same_skill=(), **scope):
        """Returns an examiner of this model."""
        task = task or self.names[0]
        others = tuple(n for n in self.names if n != task and n not in same_skill)
        places = {
            name: np.arange(number * self.count, (number + 1) * self.count)
            for number, name in enumerate(self.names)
        }
        benchmarks = {name: SimulatedTask() for name in self.names}
        trial = Trial(task, tuple(same_skill), others, benchmarks, places, self.items)
        norms, change = np.linspace(1, 2, len(COMPONENTS)), TextChange(100, 5.0, 5.0, self.garbled)
        settings = Scope(**{"resamples": 500, "failure_items": 20, **scope})
        return Examiner(
            ModelInfo(self.name, "abc"), Ablation(), trial, COMPONENTS, self.execute, self.answer,
            norms, lambda columns: change, lambda: self.rows, {}, settings,
        )  # fmt: skip

    def verdict(self, heads, task=None, **options):
        """Returns the verdict on a set of heads."""
        return self.examiner(task, **options).examine(heads, report=lambda text: None).verdict


def five_tasks(**options):
    """Returns a model of five tasks, each of which needs four heads in layers 0 to 3."""
    names = enumerate(("adding", "sorting", "rhyming", "facts", "code"))
    heads = {name: {f"L{layer}H{3 * n}": 0.5 for layer in range(4)} for n, name in names}
    return SimulatedModel(heads, **options)


def toy_verification(*, name="toy"):
    """Returns a verification of one task's heads with controls, failures and paired outputs."""
    heads = [f"L{layer}H0" for layer in range(4)]
    examiner = five_tasks(name=name).examiner()
    examined = examiner.examine(heads, report=lambda text: None)
    return replace(examined, rows=5, notes=("a note",))
