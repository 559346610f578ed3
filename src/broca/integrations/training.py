"""A callback of transformers' Trainer that measures components during training."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from numbers import Integral
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback as Base

from broca.engine import Ablation
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import ModelOptions, RunOptions
from broca.runs.run import Run
from broca.runs.session import open_run, open_workspace, require_names
from broca.runs.task_sets import TaskSet
from broca.tasks import Task

if TYPE_CHECKING:
    from broca.integrations.tracking import Log

_LOCATED = 8
"""Number of `locate` items, of which every run has some and the callback needs none."""


class TrainerCallback(Base):  # type: ignore[misc]  # transformers has no types
    """Measures the drop of a task without a set of components every few steps.

    Every `every` steps, and at the end, the model is put into evaluation mode and scored on report
    items, intact and with the set ablated; then its state is restored. Values are
    `broca/intact/TASK`, `broca/ablated/TASK`, `broca/drop` and `broca/specific_drop` (the drop
    minus the mean drop of the others). They are added to `history`, the trainer's
    `state.log_history`, and a tracker.

    Sharded weights (FSDP, DeepSpeed's third stage) are not covered: every process must have the
    whole model, and the first process measures.

    Args:
        task: The task.
        heads: The set: names, components, or a result that selected it.
        others: Other tasks, whose mean drop is subtracted.
        tokenizer: The tokenizer; by default the trainer's `processing_class`.
        every: Steps between two measurements.
        limit: Maximum number of report items of each task.
        seed: Seed of the items.
        log: The run of a tracker, which receives the values too.
        journal: File that keeps every measured row under the digest of the step's weights; a
            training that is repeated or resumed does not measure its steps again. With None rows
            are kept in memory until the training ends.
        run_options: How rows are measured and kept, with the kinds of components of the set, and
            the factor of their outputs.
        keywords: Any of these options by its name, such as `include_path` or `scale`.

    Attributes:
        history: The values of each measurement, with `step`.

    Raises:
        BadInput: No component is named, or a number is out of range.
    """

    def __init__(
        self,
        task: str | Task,
        heads: Any,
        *,
        others: Sequence[str | Task] = (),
        tokenizer: Any = None,
        every: int = 500,
        limit: int = 100,
        seed: int = 0,
        log: Log | None = None,
        run_options: RunOptions | None = None,
        **keywords: Any,
    ) -> None:
        numbers: dict[str, Any] = {"every": every, "limit": limit, "seed": seed}
        for name, number in numbers.items():
            least = int(name != "seed")
            if not isinstance(number, Integral) or number < least:
                raise BadInput(f"`{name}` must be a whole number from {least}, not {number!r}")
        self.history: list[dict[str, float]] = []
        self._task, self._heads, self._others = task, require_names(heads), others
        self._tokenizer, self._every, self._limit = tokenizer, every, limit
        self._seed, self._log = seed, log
        self._run_options, self._opened = RunOptions.of(keywords, run_options), ExitStack()
        kinds = self._run_options.model_options.components
        given = {**keywords, "run_options": run_options}
        ModelOptions.require_unused(given, components=kinds, model="the model in training")
        if self._run_options.ablation_options.ablation != "zero":
            raise BadInput("`ablation`: a training measures zeros, or a `scale`")
        Ablation(scale=self._run_options.ablation_options.scale)  # a scale of 1 is refused
        if log is not None and not hasattr(log, "log"):
            raise BadInput(f"`log` is {log!r}: give an open `broca.integrations.Log`")

    def on_train_begin(self, args: Any, state: Any, control: Any, **arguments: Any) -> None:
        """Opens the journal and the workers, which all measurements share.

        Raises:
            BrocaError: There is no such task or component, or no tokenizer.
        """
        self._opened.close()  # those of a training that was interrupted
        journal, executor = self._run_options.journal_options, self._run_options.executor_options
        space = self._opened.enter_context(open_workspace(journal, executor, warns=False))
        self._options = self._run_options.within(space)
        self._measured: int | None = None
        if state.is_world_process_zero:  # what is misspelt is refused before the first step
            gated, options = self._gated(**arguments), self._options
            with open_run(gated, options, task=self._task, others=[self._others]) as opened:
                opened.model.components.columns(self._heads)
                self._tasks(opened)

    def on_step_end(self, args: Any, state: Any, control: Any, **arguments: Any) -> None:
        """Measures at every `every` steps."""
        if state.global_step % self._every == 0:
            self._measure(state, **arguments)

    def on_train_end(self, args: Any, state: Any, control: Any, **arguments: Any) -> None:
        """Measures the trained model, unless its last step was measured."""
        if self._measured != state.global_step:
            self._measure(state, **arguments)
        self._opened.close()

    def _gated(self, *, model: Any, processing_class: Any = None, **_: Any) -> GatedModel:
        tokenizer = self._tokenizer or processing_class
        if tokenizer is None:
            raise BadInput("the trainer has no `processing_class`: give the callback a `tokenizer`")
        model = getattr(model, "module", model)  # the model within DataParallel
        components = self._options.model_options.components
        return GatedModel.wrap(model, tokenizer, name="training", components=components)

    def _measure(self, state: Any, **arguments: Any) -> None:
        if not state.is_world_process_zero:
            return
        step = self._measured = int(state.global_step)
        values = self._drops(self._gated(**arguments))
        self.history.append({"step": step, **values})
        state.log_history.append({"step": step, **values})
        if self._log is not None:
            self._log.log(values, step=step)

    def _tasks(self, opened: Run) -> TaskSet:
        return opened.claimed(
            self._task, others=self._others, items=_LOCATED, seed=self._seed, limit=self._limit,
            searched="task",
        )  # fmt: skip

    def _drops(self, model: GatedModel) -> dict[str, float]:
        """Measures scores, drop and specific drop of the set."""
        with open_run(model, self._options) as opened:
            tasks = self._tasks(opened)
            ablation = Ablation(scale=self._options.ablation_options.scale)
            settings = {"measures": tasks.task, "verb": "training"}
            run = opened.on(tasks, ablation=ablation, settings=settings)
            before = run.scores(())
            after = run.scores(model.components.columns(self._heads))
            run.finish()
        losses = {
            name: benchmark.loss(before[name], after[name])
            for name, benchmark in tasks.benchmarks.items()
        }
        others = [losses[name] for name in tasks.others]
        return {
            **{f"broca/intact/{name}": score for name, score in before.items()},
            **{f"broca/ablated/{name}": score for name, score in after.items()},
            "broca/drop": losses[tasks.task],
            "broca/specific_drop": losses[tasks.task] - sum(others) / max(1, len(others)),
        }
