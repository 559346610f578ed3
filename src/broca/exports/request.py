"""The request of an export: a model, components, a form, and the result that selected them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from broca.components import components_in
from broca.engine import Ablation
from broca.errors import BadInput, UnsupportedModel
from broca.known_paths import place_of
from broca.models import GatedModel, GatePoint, kinds_of
from broca.options import ModelOptions, TaskOptions
from broca.published import is_published, published_heads
from broca.results.base import ZEROED, AblationInfo
from broca.results.export import Form, HeldOut
from broca.results.localization import Localization
from broca.results.verification import Verification
from broca.runs.folder import with_recorded
from broca.runs.run import Run
from broca.runs.session import Selected, is_run, model_and_heads, selected_in
from broca.tasks import Task

Means = Mapping[GatePoint, Tensor]
"""Replacements of ablated activations, `(1, width)` for each gate point."""


UNRECORDED = 100
"""Number of items of the mean where the result records none: the default of a localization."""


@dataclass(frozen=True)
class ExportRequest:
    """The request of an export.

    Attributes:
        model: The model, or its name.
        components: Names, or the name of a published list.
        form: Form of the export.
        ablation: How they are ablated.
        result: The result that selected them.
        items: Number of items of the mean, under mean ablation.
    """

    model: str | GatedModel
    components: str | tuple[str, ...]
    form: Form
    ablation: AblationInfo
    result: Selected | None
    items: int

    @classmethod
    def of(
        cls,
        target: str | Path | GatedModel | Selected,
        heads: str | Sequence[str] | Selected | None,
        form: Form,
        scale: float | None,
        items: int | None = None,
    ) -> ExportRequest:
        """Returns the request of a call of `broca.export`.

        Args:
            target: A model, its name, or a result or its folder, which stand for their model.
            heads: Components, or a result that selected some; by default those of `target`.
            form: Form of the export.
            scale: Factor of the components' outputs; by default the scale of the result, else 0.
            items: Number of items of the mean; by default that of the run.

        Raises:
            BadInput: No components are named, or the run has none.
            UnsupportedModel: The form cannot express the ablation.
        """
        if not isinstance(target, str | Path | GatedModel | Selected):
            raise BadInput(
                f"`target` is a {type(target).__name__}: give the name of a model, one of "
                "`broca.load`, or a result that selected components or its folder"
            )
        if (heads is None or is_run(target)) and not isinstance(target, GatedModel | Selected):
            target = selected_in(target)
        given = target if heads is None else heads
        result = next((one for one in (given, target) if isinstance(one, Selected)), None)
        model, components, _ = model_and_heads(target, heads)
        recorded = result.search.items if isinstance(result, Localization) else 0
        ablation = _ablation_of(result, form, scale)
        if items is not None and not Ablation(ablation.kind, ablation.scale).needs_donors:
            raise BadInput("`items` are those of a mean, and this ablation has none: leave it out")
        return cls(model, components, form, ablation, result, items or recorded or UNRECORDED)

    @property
    def base_name(self) -> str | None:
        """Name from which the model is loaded; None for a model in memory."""
        return self.model.source if isinstance(self.model, GatedModel) else self.model

    def lies_in(self, folder: Path) -> bool:
        """Returns whether the model was loaded from a folder."""
        model = self.model
        loaded = "" if isinstance(model, str) else model.model.config.name_or_path
        names = (self.base_name, loaded)
        return any(place_of(name).resolve() == folder.resolve() for name in names if name)

    def names(self, model: GatedModel) -> tuple[str, ...]:
        """Returns the distinct names of the components.

        Raises:
            BrocaError: There are no components, or the model lacks one.
        """
        named = model.gated_parts(published_heads(self.components, model)).named
        if not named:
            raise BadInput("no components are named: give `heads` such as L0H4+L1H8")
        return tuple(component.name for component in named)

    def require_same_weights(self, model: GatedModel) -> None:
        """Refuses other weights than those of the result.

        Raises:
            BadInput: The weights are not those of the result.
        """
        if self.result is not None:
            measured = self.result.model
            advice = "give the model that it is of, or name the components in `heads`"
            model.require_measured(
                measured.fingerprint, of="the result", advice=advice, dtype=measured.dtype
            )

    def checked_task(self, task: str | Task | None) -> str | Task:
        """Returns the task whose score is compared, by default that of the export's result.

        Raises:
            BadInput: Neither a task nor a result is given, or the ablation is neither zero ablation
                nor scaling.
        """
        if Ablation(self.ablation.kind).needs_donors:
            raise BadInput(
                f"`check` compares scores under zero ablation or a scale; under "
                f"{self.ablation.kind} ablation the outputs alone are compared"
            )
        if task is not None:
            return task
        if self.result is None:
            raise BadInput("`check` needs a `task` to compare scores on")
        return self.result.task

    def means(self, opened: Run, names: tuple[str, ...]) -> Means | None:
        """Returns what replaces the components' outputs, from the `locate` items of the run.

        Args:
            opened: The model, and the task options.
            names: Names of the components.

        Returns:
            The replacements; None if the ablation needs none.

        Raises:
            BadInput: The result is not a localization.
        """
        ablation, result = Ablation(self.ablation.kind), self.result
        if not ablation.needs_donors:
            return None
        if not isinstance(result, Localization):
            raise BadInput(f"{ablation.kind} ablation needs the items of a run: give its folder")
        opened.stages.enter("averaging the outputs that are replaced")
        tasks = opened.claimed(
            result.task, others=[], items=self.items, seed=result.search.seed, searched="task"
        )
        run = opened.on(tasks, settings={}, ablation=ablation, donors=tasks.located)
        return run.stand_ins(opened.model.gated_parts(names).points)

    def asked(self, options: TaskOptions, task: str | Task | None) -> TaskOptions:
        """Returns the task options of a call, and of the result where the call has the defaults.

        Args:
            options: The options of the call.
            task: The task of the call, whose score is compared with the call's options alone.
        """
        recorded = getattr(self.result, "task_options", {}) if task is None else {}
        return with_recorded(options, TaskOptions.of(recorded))

    def held_out(self, names: tuple[str, ...], options: TaskOptions) -> HeldOut | None:
        """Returns the measurements of exactly these components under this ablation.

        Args:
            names: Names of the components.
            options: The task options; under mean ablation, other ones give other means.
        """
        found = self.result.verification if isinstance(self.result, Localization) else self.result
        if not isinstance(found, Verification) or set(found.heads) != set(names):
            return None
        if found.ablation != self.ablation:
            return None
        if isinstance(self.result, Localization) and Ablation(self.ablation.kind).needs_donors:
            run = self.result
            asked = (run.task_options, run.search.items or UNRECORDED)
            if (options.to_dict(), self.items) != asked:
                return None
        return HeldOut(found.task, found.verdict, found.drops)

    def loading(self, options: ModelOptions) -> ModelOptions:
        """Returns options that load the components' kinds, with an adapter in weights to write.

        They keep the format of those weights.

        Args:
            options: The caller's; a number format that they name stays, and all of them where
                the model is loaded.
        """
        if isinstance(self.model, GatedModel):
            return options
        if self.form == "weights":
            measured = getattr(self.result, "model", None)
            # an adapter is merged in the format in which it was measured
            kept = measured.dtype if measured is not None and measured.adapter else "stored"
            dtype = kept if options.dtype == "auto" else options.dtype
            options = replace(options, dtype=dtype, merge_adapter=True)
        given = "" if is_published(self.components) else self.components
        return replace(options, components=kinds_of(components_in(given)) or "heads")

    def call(self, names: tuple[str, ...]) -> str:
        """Returns the call of `broca.export` that repeats the export; RUN is the run's folder.

        Args:
            names: Names of the components in the model.
        """
        base = repr(self.base_name or "model, in memory")
        how = f"scale={self.ablation.scale}"
        if Ablation(self.ablation.kind).needs_donors:
            base, how = "broca.read('RUN')", f"items={self.items}"
        heads = "+".join(names)
        return f"broca.export({base}, 'FOLDER', heads={heads!r}, kind={self.form!r}, {how})"


def _ablation_of(result: Selected | None, form: Form, scale: float | None) -> AblationInfo:
    """Returns the ablation of the components: that of the result, or a scaling.

    Raises:
        BadInput: The kind of ablation is unknown.
        UnsupportedModel: The form cannot express the ablation.
    """
    ablation = getattr(result, "ablation", ZEROED)
    if scale is not None:
        ablation = replace(ZEROED, scale=scale)
    how = Ablation(ablation.kind, ablation.scale)
    if how.draws_donors:
        raise UnsupportedModel(
            f"{how.kind} ablation cannot be exported: what stands in for an output differs from "
            "prompt to prompt; give a `scale`, such as 0"
        )
    if how.needs_donors and form != "weights":
        raise UnsupportedModel(
            f"`kind` {form} multiplies outputs and cannot hold {how.kind} ablation: use `kind` "
            "weights, or give a `scale`, such as 0"
        )
    return ablation
