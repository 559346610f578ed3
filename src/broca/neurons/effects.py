"""What becomes of scores and of p(answer) when neurons are scaled: every row with its own set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.engine import Engine, EngineOptions
from broca.errors import BadInput
from broca.neurons.locating import NeuronModel, Tell
from broca.neurons.questions import Question, QuestionSet
from broca.neurons.selection import Columns
from broca.tasks import LogLikelihood, Margin, Output, Request


@dataclass(frozen=True)
class Answers:
    """What the model made of some questions, one value a row.

    Attributes:
        scores: The data set's own metric.
        log_probability: Of the gold answer as a whole, in nats.
    """

    scores: NDArray[np.float64]
    log_probability: NDArray[np.float64]

    @property
    def probability(self) -> NDArray[np.float64]:
        """p(gold answer)."""
        return np.exp(self.log_probability)


@dataclass(frozen=True)
class Scaled:
    """Neurons whose activations are multiplied, at every token, by a factor: 0 erases, 2 amplifies.

    Attributes:
        columns: The neurons.
        factor: What they are multiplied with.
    """

    columns: Columns
    factor: float = 0.0


INTACT = Scaled(np.zeros(0, dtype=np.intp), 1.0)
"""Nothing is scaled."""


class Measurer:
    """Asks questions under scaled neurons.

    Args:
        neurons: The model; `neurons` must be among its components.
        token_budget: Most tokens of a batch; found from the free memory if None.
        tell: Receives how far it is.

    Raises:
        BadInput: The model was loaded without gates on neurons.
    """

    def __init__(
        self, neurons: NeuronModel, *, token_budget: int | None = None, tell: Tell | None = None
    ) -> None:
        components = neurons.model.components
        self._gated = np.array(
            [column for column, one in enumerate(components) if one.kind == "neuron"], dtype=np.intp
        )
        if len(self._gated) != len(neurons):
            raise BadInput(
                "the model's neurons have no gates: load it with components='neurons' or "
                "'heads+neurons'"
            )
        self._components = len(components)
        self._stage = "measuring"
        self._engine = Engine(
            neurons.model,
            EngineOptions(token_budget=token_budget),
            on_progress=None if tell is None else lambda progress: tell(self._stage, progress),
        )
        self.rows = 0
        """(set, question) rows measured so far."""

    @property
    def tokens(self) -> int:
        """Tokens read or written so far, padding excluded."""
        return self._engine.tokens

    def gates(self, sets: Sequence[Scaled]) -> NDArray[np.float32]:
        """Gates of some sets, `(sets, components)`."""
        gates = np.ones((len(sets), self._components), dtype=np.float32)
        for row, one in enumerate(sets):
            gates[row, self._gated[one.columns]] = one.factor
        return gates

    def rows_under(
        self,
        questions: Sequence[Question],
        sets: Sequence[Scaled],
        index: Sequence[int] | NDArray[np.intp],
        *,
        stage: str = "measuring",
        scored: bool = True,
    ) -> Answers:
        """Asks every question under its own set.

        Args:
            questions: One a row.
            sets: What is scaled.
            index: For every row its set, `(rows,)`.
            stage: What to call it where progress is shown.
            scored: Whether to ask what the metric needs too; without, only the gold answer's
                probability is measured and the scores are NaN.
        """
        self._stage = stage
        requests: list[Request] = []
        spans: list[tuple[int, int, int]] = []
        for question in questions:
            start = len(requests)
            if scored:
                requests += question.asked
            end = len(requests)
            if question.gold in requests[start:end]:
                gold = start + requests[start:end].index(question.gold)
            else:
                gold = end
                requests.append(question.gold)
            spans.append((start, end, gold))
        counts = np.diff([start for start, _, _ in spans] + [len(requests)])
        answers = self._engine.run(
            requests, self.gates(sets), np.repeat(np.asarray(index, dtype=np.intp), counts)
        )
        self.rows += len(questions)
        return Answers(
            np.array(
                [
                    question.score(answers[start:end]) if scored else np.nan
                    for question, (start, end, _) in zip(questions, spans, strict=True)
                ]
            ),
            np.array([_value(answers[gold]) for _, _, gold in spans]),
        )

    def gradients_under(
        self,
        questions: Sequence[Question],
        sets: Sequence[Scaled],
        index: Sequence[int] | NDArray[np.intp],
        *,
        stage: str = "measuring gradients",
    ) -> NDArray[np.float32]:
        """How every neuron's gate would change the gold answer's mean log-probability.

        Args:
            questions: One a row.
            sets: What is scaled.
            index: For every row its set, `(rows,)`.
            stage: What to call it where progress is shown.

        Returns:
            `(rows, neurons)`, in nats a token for a unit of gate. Each counts as three rows.
        """
        self._stage = stage
        margins = [Margin((question.gold,), None) for question in questions]
        _, gradients = self._engine.differentiate(
            margins, self.gates(sets), np.asarray(index, dtype=np.intp)
        )
        self.rows += 3 * len(questions)
        return gradients[:, self._gated]

    def under(
        self,
        questions: QuestionSet,
        sets: Sequence[Scaled],
        *,
        stage: str = "",
        scored: bool = True,
    ) -> list[Answers]:
        """Asks all questions under every set: answers by set, rows in the questions' order."""
        rows = list(questions.questions) * len(sets)
        index = np.repeat(np.arange(len(sets)), len(questions))
        whole = self.rows_under(
            rows, sets, index, stage=stage or f"measuring {questions.name}", scored=scored
        )
        cut = (len(sets), len(questions))
        return [
            Answers(scores, logs)
            for scores, logs in zip(
                whole.scores.reshape(cut), whole.log_probability.reshape(cut), strict=True
            )
        ]


def _value(output: Output) -> float:
    assert isinstance(output, LogLikelihood)
    return output.value
