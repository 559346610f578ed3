"""One run of a neuron command: the model, its data sets cut into parts, and the out folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.models import SHIPPED_MODELS, GatedModel
from broca.neurons.corpora import load_texts
from broca.neurons.crossing import Parts
from broca.neurons.effects import Measurer
from broca.neurons.locating import NeuronModel, Tell
from broca.neurons.methods import KNOWLEDGE_SHARE, KNOWLEDGE_THRESHOLD, Choice, choose
from broca.neurons.questions import QuestionSet, from_benchmark, from_texts
from broca.neurons.results import neuron_model_info
from broca.neurons.selection import Rule
from broca.neurons.sensing import SensingOptions, sense
from broca.results.base import ModelInfo
from broca.tasks import Catalog, RequestTokenizer, split_items
from broca.tasks.data_sets import PREFIX

BOOK = "scores.bin"
"""Item scores in the out folder: a run that was killed goes on where it was."""


@dataclass(frozen=True)
class Settings:
    """What the neuron commands have in common.

    Attributes:
        rule: Which neurons stand out.
        steps: S, steps of the integrated gradients.
        method: How neurons are chosen.
        threshold: Knowledge neurons: share of an item's highest score to exceed.
        knowledge_share: Knowledge neurons: share of items that must hold a neuron.
        items: Most items to locate on.
        report_items: Most items to measure on.
        answer_tokens: Of `data:` sets, only the first so many tokens of an answer count.
        fields: Of `data:` sets, the columns of prompt and answer.
        sensing: How `sensing` searches.
        seed: Seed of everything random.
    """

    rule: Rule = field(default_factory=Rule)
    steps: int = 19
    method: str = "cnl"
    threshold: float = KNOWLEDGE_THRESHOLD
    knowledge_share: float = KNOWLEDGE_SHARE
    items: int = 100
    report_items: int = 100
    answer_tokens: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    sensing: SensingOptions = field(default_factory=SensingOptions)
    seed: int = 0

    def record(self) -> dict[str, Any]:
        """The settings as they are written into results."""
        record = asdict(self)
        rule = record.pop("rule")
        return {**rule, **record}


class Session:
    """Names in, located neurons and measurements out.

    Args:
        model: The model, with `neurons` among its components.
        settings: The settings.
        out: Folder of the item scores; None keeps them in memory.
        include_path: A folder of lm-eval YAML tasks to add.
        tell: Receives what is going on.
    """

    def __init__(
        self,
        model: GatedModel,
        settings: Settings | None = None,
        *,
        out: Path | None = None,
        include_path: str | Path | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.neurons = NeuronModel(model)
        self.tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
        self.tell = tell
        self.book = None if out is None else out / BOOK
        self._catalog = Catalog(include_path)
        self._parts: dict[str, Parts] = {}
        self._choices: dict[tuple[str, str, Rule], Choice] = {}
        if self.settings.report_items < 1:
            raise BadInput(f"--report-items must be at least 1, not {self.settings.report_items}")

    @cached_property
    def model_info(self) -> ModelInfo:
        """What results say of the model."""
        return neuron_model_info(self.neurons)

    @cached_property
    def measurer(self) -> Measurer:
        """Asks questions under scaled neurons."""
        return Measurer(self.neurons, tell=self.tell)

    def other_tasks(self, task: str, others: str) -> list[str]:
        """Resolves `--others`: names joined by commas, or `auto`."""
        if others != "auto":
            names = [name.strip() for name in others.split(",") if name.strip()]
            if task in names:
                raise BadInput(f"task '{task}' is also named in --others: it is no control")
            return names
        shipped = self.neurons.model.name in SHIPPED_MODELS
        names = list(self._catalog.shipped if shipped else self._catalog.included)
        return [name for name in names if name != task]

    def parts(self, name: str) -> Parts:
        """A data set cut by seed into parts to locate, to confirm and to report on.

        Args:
            name: A task, or `data:` and a data set.
        """
        if name in self._parts:
            return self._parts[name]
        if self.tell is not None:
            self.tell(f"building {name}", None)
        one = self.settings
        if name.startswith(PREFIX):
            wanted = 4 * max(one.items, one.report_items)
            texts, capability = load_texts(name, limit=wanted, fields=one.fields)
            whole = from_texts(
                name, texts, self.tokenizer, capability=capability, answer_tokens=one.answer_tokens
            )
            split = split_items(name, len(whole), items=one.items, seed=one.seed)
            cut = [whole.take(numbers) for numbers in (split.locate, split.confirm, split.report)]
        else:
            benchmark = self._catalog.load(name, self.tokenizer)
            split = benchmark.split(items=one.items, seed=one.seed)
            cut = [
                from_benchmark(benchmark, numbers)
                for numbers in (split.locate, split.confirm, split.report)
            ]
        report = cut[2].take(range(min(len(cut[2]), one.report_items)))
        self._parts[name] = Parts(cut[0], cut[1], report)
        return self._parts[name]

    def choose(
        self,
        name: str,
        *,
        method: str | None = None,
        rule: Rule | None = None,
        others: Sequence[str] = (),
    ) -> Choice:
        """The neurons of a data set, by the method of the settings or another.

        Args:
            name: The data set.
            method: Another method than that of the settings.
            rule: Another rule.
            others: Data sets to contrast with, for `activation`.
        """
        one = self.settings
        method, rule = method or one.method, rule or one.rule
        key = (name, method, rule)
        if key not in self._choices:
            questions = self.parts(name).locate
            if method == "sensing":
                self._choices[key] = self._sense(questions, rule)
            else:
                self._choices[key] = choose(
                    self.neurons,
                    questions,
                    method=method,
                    rule=rule,
                    steps=one.steps,
                    contrast=[self.parts(other).locate for other in others]
                    if method == "activation"
                    else (),
                    threshold=one.threshold,
                    share=one.knowledge_share,
                    seed=one.seed,
                    book=self.book,
                    tell=self.tell,
                )
        return self._choices[key]

    def _sense(self, questions: QuestionSet, rule: Rule) -> Choice:
        found = sense(
            self.neurons,
            questions,
            measurer=self.measurer,
            options=self.settings.sensing,
            rule=rule,
            steps=self.settings.steps,
            seed=self.settings.seed,
        )
        return Choice("sensing", found.scores, np.asarray(found.columns, dtype=np.intp), None)
