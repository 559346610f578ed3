"""Runs plans in this process."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from broca.engine import Engine
from broca.errors import BadLogits
from broca.executors.asking import Answers, Asker, Observations, Questions, answer
from broca.executors.base import WeightDelta
from broca.executors.records import ExecutorKind, ExecutorSpec
from broca.measurement import Measurement, Observation, Plan
from broca.tasks import Output


class LocalExecutor:
    """Measures rows with an engine of this process.

    Args:
        engine: Runs the requests.
        asker: Turns plans into questions, and answers into responses.
        delta: Weights that are changed while it measures.
    """

    concurrent = False

    def __init__(self, engine: Engine, asker: Asker, *, delta: WeightDelta | None = None) -> None:
        self.runner = engine
        self._asker = asker
        self._delta = delta

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan.

        Returns:
            The responses: the margin or its probability, or the task's metric, negated if lower is
            better.

        Raises:
            TaskUnusable: The response is a margin, and an item has no reference answer.
        """
        questions = self._asker.questions(plan)
        return self._asker.measurement(plan, questions, self._answer(plan, questions))

    def answers(self, plan: Plan) -> list[tuple[Output, ...]]:
        """Returns the model's answers to the requests of each row's item."""
        questions = self._asker.questions(plan, outputs=True)
        return self._asker.outputs(questions, self._answer(plan, questions))

    def stream(self, plans: Sequence[Plan]) -> Generator[tuple[int, Measurement], None, None]:
        """Yields the position of every plan with its measurement, in their order."""
        for number, plan in enumerate(plans):
            yield number, self.run(plan)

    def stream_answers(
        self, plans: Sequence[Plan]
    ) -> Generator[tuple[int, list[tuple[Output, ...]]], None, None]:
        """Yields the position of every plan with its answers, in their order."""
        for number, plan in enumerate(plans):
            yield number, self.answers(plan)

    def stream_observations(
        self, batches: Sequence[Sequence[Observation]]
    ) -> Generator[tuple[int, list[NDArray[np.float32]]], None, None]:
        """Yields the position of every batch with its vectors, in their order."""
        for number, batch in enumerate(batches):
            with self._changed():
                yield number, list(answer(self.runner, Observations(tuple(batch))).vectors)

    def _answer(self, plan: Plan, questions: Questions) -> Answers:
        try:
            with self._changed():
                return answer(self.runner, questions)
        except BadLogits as error:
            raise self._asker.named(error, plan, questions) from error

    def _changed(self) -> AbstractContextManager[None]:
        return nullcontext() if self._delta is None else self._delta.applied(self.runner.model)


class LocalHost:
    """Runs engines in this process."""

    def executor(self, spec: ExecutorSpec) -> LocalExecutor:
        """Makes an executor with its own engine."""
        model, setting = spec.model, spec.setting
        donors = dict(zip(model.points, setting.donors, strict=True)) if setting.donors else {}
        engine = Engine(model, spec.engine_options, donors=donors, on_progress=spec.on_progress)
        return LocalExecutor(engine, spec.asker, delta=setting.delta)

    def close(self) -> None:
        """Does nothing: nothing was started."""


LOCAL = ExecutorKind(
    name="local", help="In this process.", open=lambda options: LocalHost()
)
