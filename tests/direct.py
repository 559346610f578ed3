"""An executor without a journal: plans are measured at once."""

from dataclasses import dataclass, replace

from broca.executors.executor import Executor


@dataclass(eq=False)
class DirectExecutor(Executor):
    """Measures whole plans; `response` is that of plans that name none."""

    response: str = "accuracy"

    def run(self, plan):
        """Returns the measurement of a plan."""
        plan = replace(plan, response=plan.response or self.response)
        (answers,) = self.runner.stream([self.job(0, plan)], rows=len(plan))
        return self.measurement(plan, answers)

    def answers(self, plan):
        """Returns the model's answers to the requests of each row's item."""
        job = self.job(0, replace(plan, response="accuracy", gradients=False))
        (answers,) = self.runner.stream([job], rows=len(plan))
        return list(answers.outputs)
