"""Claims that a task needs some components: named by the caller, or selected by a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.engine.ablation import Ablation
from broca.errors import BadInput
from broca.options import RunOptions, TaskOptions
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.runs.folder import options_of_run, with_recorded
from broca.runs.setup import Session, ablation_of
from broca.runs.task_sets import TaskSet, listed

if TYPE_CHECKING:
    from broca.models import GatedModel
    from broca.tasks import Task


LOCATED = 100
"""Maximum number of `locate` items, from which donors and output norms are computed."""

LEAST_LIMIT = 8
"""Smallest maximum number of report items."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim that a task needs a set of components and other tasks do not.

    Attributes:
        model: A name of a model, or a loaded model.
        task: The task.
        heads: Names of the components.
        order: Components in the order in which the curve ablates them.
        others: Tasks that should not suffer.
        same_skill: Tasks of the same capability, in addition to those whose metadata say so.
        seed: Seed of the item split, the random sets and the resampling.
        limit: Maximum number of report items of each task; None for all.
        run_options: How the model and the tasks are loaded, ablated and measured.
        fingerprint: Digest of the weights for which the claim was made; None if any.
    """

    model: str | GatedModel
    task: str | Task
    heads: str | Sequence[str]
    order: Sequence[str] = ()
    others: str | Sequence[str | Task] = "auto"
    same_skill: Sequence[str | Task] = ()
    seed: int = 0
    limit: int | None = None
    run_options: RunOptions
    fingerprint: str | None = None

    @property
    def ablation(self) -> Ablation:
        """The ablation of the components."""
        return ablation_of(self.run_options.ablation_options, self.seed)

    def tasks(self, opened: Session) -> TaskSet:
        """Returns the items of the task and of the other tasks."""
        return opened.claimed(
            self.task, others=self.others, same_skill=self.same_skill, items=LOCATED,
            seed=self.seed, limit=self.limit, searched="task",
        )  # fmt: skip

    def settings(self, tasks: TaskSet, model: GatedModel) -> dict[str, Any]:
        """Returns what identifies the verification in a journal."""
        return {
            "measures": tasks.task,
            "others": [*tasks.same_skill, *tasks.others],
            "ablation": [self.ablation.kind, self.ablation.scale],
            "components": model.kinds,
            "seed": self.seed,
        }

    def require_weights(self, model: GatedModel) -> None:
        """Refuses a model whose weights are not those that the claim was made for.

        Raises:
            BadInput: The weights differ.
        """
        if self.fingerprint not in (None, model.fingerprint):
            raise BadInput(
                f"the weights of '{model.name}' are not those of the run (fingerprint "
                f"{model.fingerprint}, not {self.fingerprint}): name the run's in `model`"
            )


def claim_of(
    run: str | Path | Localization | None,
    *,
    model: str | GatedModel | None,
    task: str | Task | None,
    heads: str | Sequence[str] | None,
    neurons: str | Path | NeuronSet | None,
    order: Sequence[str],
    others: str | Sequence[str | Task],
    same_skill: str | Sequence[str | Task],
    seed: int | None,
    limit: int | None,
    ablation: str | None,
    run_options: RunOptions,
) -> Claim:
    """Returns the claim that a call makes; what it leaves out comes from the run.

    Raises:
        BadInput: The components, the model or the task are missing or given twice, or the run or
            the neurons selected nothing; or `limit` is too small.
    """
    if limit is not None and limit < LEAST_LIMIT:
        raise BadInput(f"`limit` must be at least {LEAST_LIMIT} items, not {limit}")
    named = heads is not None or neurons is not None
    if named and run is not None:
        raise BadInput(
            "`run` names the components that it selected: leave out `heads` and `neurons`, or `run`"
        )
    if run is None:
        if not named:
            raise BadInput("nothing to verify: give the out folder of a run, or name `heads`")
        if model is None:
            raise BadInput("`heads` and `neurons` need the `model` that they belong to")
        if task is None:
            raise BadInput("`heads` and `neurons` need the `task` for which they are claimed")
        if neurons is not None:
            heads, run_options = _with_neurons(heads, neurons, run_options)
        assert heads is not None
        return Claim(
            model=model, task=task, heads=heads, order=order, others=others,
            same_skill=_tasks(same_skill), seed=seed or 0, limit=limit,
            run_options=_ablated(run_options, ablation),
        )  # fmt: skip
    localization = run if isinstance(run, Localization) else Localization.read(run)
    if not localization.selected:
        place = "" if isinstance(run, Localization) else f" in '{run}'"
        raise BadInput(
            f"the run{place} selected nothing: there is nothing to verify; name some in `heads`"
        )
    run_options = _options_of(run, localization, run_options)
    return Claim(
        model=model or localization.model.name,
        task=task or localization.task,
        heads=localization.selected,
        order=order or _order(localization),
        others=list(localization.others) if others == "auto" else others,
        same_skill=[*(localization.same_skill if task is None else ()), *_tasks(same_skill)],
        seed=localization.search.seed if seed is None else seed,
        limit=limit,
        run_options=_ablated(run_options, ablation),
        fingerprint=localization.model.fingerprint,
    )


def _options_of(
    run: str | Path | Localization, localization: Localization, run_options: RunOptions
) -> RunOptions:
    """Returns the options of the call, completed by those of the run."""
    task_settings = {**localization.task_options, **run_options.task_options.to_dict()}
    recorded = {"ablation": localization.ablation.kind, "scale": localization.ablation.scale}
    run_options = replace(
        run_options,
        task_options=TaskOptions(**task_settings),
        ablation_options=with_recorded(run_options.ablation_options, recorded),
    )
    if not isinstance(run, Localization):
        run_options = options_of_run(run, run_options)
    models = replace(run_options.model_options, components=localization.components)
    return replace(run_options, model_options=models)


def _ablated(run_options: RunOptions, ablation: str | None) -> RunOptions:
    """Returns the options with the kind of ablation, if it is given."""
    if ablation is None:
        return run_options
    options = replace(run_options.ablation_options, ablation=ablation)
    return replace(run_options, ablation_options=options)


def _with_neurons(
    heads: str | Sequence[str] | None,
    neurons: str | Path | NeuronSet,
    run_options: RunOptions,
) -> tuple[str, RunOptions]:
    """Returns heads and neurons as one list of names, and options with the kinds of both."""
    if isinstance(neurons, NeuronSet) or Path(neurons).exists():
        selection = neurons if isinstance(neurons, NeuronSet) else NeuronSet.read(neurons)
        names = "+".join(neuron.name for neuron in selection.selected)
        if not names:
            place = "" if isinstance(neurons, NeuronSet) else f" '{neurons}'"
            raise BadInput(f"`neurons`{place} selected no neuron: there is nothing to verify")
    else:
        names = str(neurons)
    kinds = run_options.model_options.components.split("+") if heads is not None else []
    components = "+".join([*(kind for kind in kinds if kind != "neurons"), "neurons"])
    models = replace(run_options.model_options, components=components)
    options = replace(run_options, model_options=models)
    if heads is None:
        return names, options
    return f"{heads if isinstance(heads, str) else '+'.join(heads)}+{names}", options


def _order(run: Localization) -> list[str]:
    """Returns the curve's heads: the selection, then the ranking while effects are harmful."""
    harmful = [head.name for head in run.ranking if head.effect < 0]
    return list(dict.fromkeys([*run.selected, *harmful]))


def _tasks(names: str | Sequence[str | Task]) -> list[str | Task]:
    """Returns tasks as a list; a string joins names by commas."""
    return [*listed(names)] if isinstance(names, str) else [*names]
