"""An executor without a journal: plans are measured at once."""

from dataclasses import replace

from broca.executors.executor import Executor


class DirectExecutor(Executor):
    """Measures whole plans; `response` is that of plans that name none."""

    def __init__(self, runner, bank, *, response="accuracy", **options):
        super().__init__(runner, bank, **options)
        self.response = response

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
