"""Runs plans in this process."""

from __future__ import annotations

from collections.abc import Sequence

from broca.engine import Ablation, Engine
from broca.errors import BadLogits
from broca.executors.asking import Answers, Asker, Questions, answer
from broca.measurement import Measurement, Plan, Response
from broca.tasks import Benchmark, Item, Output


class LocalExecutor:
    """Measures the rows of plans with an engine of this process.

    Args:
        engine: Runs the requests.
        bank: The items that plans refer to by position, each with the task that scores it.
        response: What plans return that do not say it themselves.
        ablation: What becomes of ablated components.
        donors: Positions in the bank of the items whose activations the engine's donors are, for
            `resample`: no row gets its own item's.
        donor_keys: Seed of every bank item's draws of donors; its position if None.
        keep_outputs: Whether to hand over what the model answered.
    """

    def __init__(
        self,
        engine: Engine,
        bank: Sequence[tuple[Benchmark, Item]],
        *,
        response: Response = "accuracy",
        ablation: Ablation | None = None,
        donors: Sequence[int] = (),
        donor_keys: Sequence[int] | None = None,
        keep_outputs: bool = False,
    ) -> None:
        self._engine = engine
        self._asker = Asker(
            bank,
            response=response,
            ablation=ablation,
            donors=donors,
            donor_keys=donor_keys,
            keep_outputs=keep_outputs,
        )
        self.rows = 0
        """Rows measured so far; a row with its gradient counts as three."""

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan.

        Returns:
            The responses: the margin or its probability, or the task's metric, negated where
            lower is better.

        Raises:
            TaskUnusable: Margins are wanted, and an item has no answer to compare with.
        """
        questions = self._asker.questions(plan)
        measured = self._asker.measurement(plan, questions, self._answer(plan, questions))
        self.rows += plan.cost
        return measured

    def answers(self, plan: Plan) -> list[tuple[Output, ...]]:
        """What the model answers in every row of a plan, to its item's own requests."""
        questions = self._asker.questions(plan, own=True)
        found = self._asker.outputs(questions, self._answer(plan, questions))
        self.rows += plan.cost
        return found

    def _answer(self, plan: Plan, questions: Questions) -> Answers:
        try:
            return answer(self._engine, questions)
        except BadLogits as error:
            raise self._asker.named(error, plan, questions) from error
