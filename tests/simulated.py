"""A simulated model with known heads for every task, measured like a real one."""

import zlib
from dataclasses import dataclass

import numpy as np

from broca.components import Component, ComponentSet
from broca.engine import Ablation
from broca.measurement import Measurement
from broca.results.base import ModelInfo
from broca.runs.provenance import verification_of
from broca.tasks import Generation, Item
from broca.verification import Examiner, Scope, Trial

LAYERS, HEADS = 6, 16
COMPONENTS = ComponentSet(
    tuple(Component(layer, "head", head) for layer in range(LAYERS) for head in range(HEADS))
)


@dataclass(frozen=True)
class SimulatedTask:
    """A task scored right or wrong; lower is better where so stated."""

    metric: str = "acc"
    higher_is_better: bool = True
    chance: float = 0.0

    def at_chance(self, score, *, items):
        """As `Benchmark.at_chance`, where guessing gives nothing."""
        return score <= 0

    def aggregate(self, values):
        """The mean."""
        return float(np.mean(values))

    def loss(self, before, after):
        """As `Benchmark.loss`."""
        return before - after if self.higher_is_better else after - before


class SimulatedModel:
    """Each task loses each of its own heads' effect; `everyone` are heads that all tasks need.

    Args:
        heads: For each task, its heads and the share of items that each of them costs.
        everyone: Heads that every task needs, with the share of items each costs.
        items: Items of each task.
        babble: Whether items that are lost to `everyone` become a loop of one word.
    """

    def __init__(self, heads, *, everyone=None, items=80, babble=False):
        self.heads, self.everyone, self.babble = heads, everyone or {}, babble
        self.names = list(heads)
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
        """Right or wrong, with 5 % of wrong answers in any state."""
        self.rows += len(plan)
        return Measurement(
            plan,
            np.array(
                [
                    float(
                        self._draw(item, "base") > 0.05
                        and self._lost_to(plan.masks[mask], item) is None
                    )
                    for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
                ]
            ),
        )

    def answer(self, plan):
        """The right answer, another, or a loop."""
        found = []
        for mask, item in zip(plan.mask_index, plan.item_index, strict=True):
            lost = self._lost_to(plan.masks[mask], item)
            text = f"answer {item}" if lost is None else f"guess {item * 7}"
            if lost == "everyone" and self.babble:
                text = f"{item} the " + "same words again and again " * 4
            found.append((Generation(text, len(text)),))
        return found

    def examiner(self, task=None, *, same_skill=(), **scope):
        """An examiner of this model; no curve unless asked for."""
        task = task or self.names[0]
        others = tuple(n for n in self.names if n != task and n not in same_skill)
        places = {
            name: np.arange(number * self.count, (number + 1) * self.count)
            for number, name in enumerate(self.names)
        }
        benchmarks = {name: SimulatedTask() for name in self.names}
        return Examiner(
            Trial(task, tuple(same_skill), others, benchmarks, places),
            COMPONENTS,
            self.execute,
            self.answer,
            self.items,
            np.linspace(1, 2, len(COMPONENTS)),
            {},
            Scope(**{"curve": 0, "resamples": 500, "failure_items": 20, **scope}),
        )

    def verdict(self, heads, task=None, **options):
        """The verdict on a set."""
        return self.examiner(task, **options).examine(heads, report=lambda text: None).verdict


def five_tasks(**options):
    """Five tasks with four heads of their own each, in layers 0 to 3."""
    return SimulatedModel(
        {
            name: {f"L{layer}H{3 * number}": 0.5 for layer in range(4)}
            for number, name in enumerate(("adding", "sorting", "rhyming", "facts", "code"))
        },
        **options,
    )


def toy_verification(*, name="toy", notes=()):
    """What a verification of one task's heads leaves: controls, failures, outputs side by side."""
    heads = [f"L{layer}H0" for layer in range(4)]
    examiner = five_tasks().examiner(curve=3)
    examined = examiner.examine(heads, report=lambda text: None)
    return verification_of(
        ModelInfo(name, "abc"), heads, Ablation(), examiner.trial, examined.before, examined.after,
        examination=examined, rows=5, notes=notes,
    )  # fmt: skip
