"""A task and a runner without a model: every row has a number, computed from gates and item."""

from dataclasses import dataclass

import numpy as np

from broca.engine import Answers
from broca.tasks import Item, LogLikelihood, Margin, Request


@dataclass(frozen=True)
class Numbers:
    """A task whose scores and margins are the runner's numbers; one item may have no margin."""

    name: str = "task"
    higher_is_better: bool = True
    rescored: bool = False
    bonus: float = 0.0
    unanswered: int | None = None

    def score(self, item, outputs):
        """Returns the number plus a bonus."""
        return outputs[0].value + self.bonus

    def margin(self, item):
        """Returns the margin of a single answer, which is its log-likelihood."""
        return None if item.number == self.unanswered else Margin(item.requests, None)


class Counting:
    """A runner that computes numbers from gates and item, and records what it is asked."""

    concurrent = False
    steepness = 1.0

    def __init__(self, breaks_after=None):
        self.jobs, self.requested, self.breaks_after = [], [], breaks_after

    def stream(self, jobs, *, rows):
        """Answers the jobs."""
        for number, job in enumerate(jobs):
            if number == self.breaks_after:
                raise RuntimeError("power cut")
            self.jobs.append(job)
            if job.observations:
                keys = [observation.key for observation in job.observations]
                self.requested += keys
                vectors = tuple(np.full(3, int(key), dtype=np.float32) for key in keys)
                yield Answers(job.number, vectors=vectors)
                continue
            requests = [margin.requests for margin in job.margins] or job.requests
            items = np.array([row[0].context[0] for row in requests])
            gates = job.gates[job.gate_index]
            self.requested += [
                (mask.tobytes(), item) for mask, item in zip(gates == 0, items, strict=True)
            ]
            weights = np.linspace(-1, 1, gates.shape[1])
            values = (1 - gates) @ weights + items / 7
            if job.margins:
                slopes = (self.steepness * weights * items[:, None]).astype(np.float32)
                yield Answers(job.number, values=values, gradients=slopes)
            else:
                outputs = tuple((LogLikelihood(value, True),) for value in values.tolist())
                yield Answers(job.number, outputs=outputs)


def bank_of(task=None, *, of_caller=None):
    """Returns 30 items, those of even number by the task `of_caller` if there is one."""
    task = task or Numbers()
    requests = [(Request("loglikelihood", (number,), (1,)),) for number in range(30)]
    items = [Item("task", number, "", "", row) for number, row in enumerate(requests)]
    return [(of_caller if of_caller and item.number % 2 == 0 else task, item) for item in items]
