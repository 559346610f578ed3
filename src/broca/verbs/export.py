"""`export`: writes a model without some components in forms that other libraries load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import torch

from broca.components import Component
from broca.engine import Ablation, donor_activations
from broca.errors import BadInput, UnsupportedModel, nearest
from broca.exports import (
    LIBRARIES,
    PICTURE,
    Answers,
    Origin,
    Patch,
    answers,
    card,
    changed_tensors,
    compare_answers,
    compare_scores,
    factors_of,
    harness_score,
    head_list,
    picture,
    prompt_tokens,
    reload,
    require_peft,
    require_single,
    shard_size,
    upload,
    with_tensors,
    write_adapter,
    write_checkpoint,
    write_head_list,
    write_patch,
)
from broca.exports.weights import Means
from broca.models import ActiveGates, GatedModel, fingerprint, kinds_of
from broca.options import ModelOptions, SourceOptions, TaskOptions, takes_options
from broca.published import is_published, published_heads
from broca.results.base import AblationInfo
from broca.results.codec import encode
from broca.results.export import BaseModel, Export, Form, HeldOut
from broca.results.files import check_out_folder, write_beside
from broca.results.localization import Localization
from broca.results.neurons import NeuronSet
from broca.results.reading import read
from broca.results.verification import Verification
from broca.runs.progress import Report, Stages
from broca.runs.provenance import model_info
from broca.runs.run import Run
from broca.runs.setup import claimed, model_in_use
from broca.runs.task_sets import load_tasks, whole_tasks
from broca.runs.workspace import Workspace
from broca.tasks import Benchmark, Catalog, Task

Exportable = Localization | Verification | NeuronSet
"""Results whose components can be exported."""


@takes_options
def export(
    model: str | Path | GatedModel | Exportable,
    to: str | Path,
    *,
    heads: str | Sequence[str] | Exportable | None = None,
    kind: Form = "adapter",
    scale: float | None = None,
    check: bool = False,
    task: str | Task | None = None,
    items: int = 100,
    push: str | None = None,
    private: bool = False,
    on_progress: Report | None = None,
    source_options: SourceOptions,
    task_options: TaskOptions,
    model_options: ModelOptions,
) -> Export:
    """Exports a model without some components, and checks what other libraries make of it.

    Args:
        model: A shipped model, a local folder, a hub id, what `broca.load` returned, or a result or
            the folder of a run, which stand for their model.
        to: Folder for the export; a new one, or one that holds an export.
        heads: Components, as names joined by `+`, a list of names, a published list or a result; by
            default those of `model`, which is a result then.
        kind: `adapter` (PEFT), `weights` (a checkpoint), `heads` (a list) or `patch` (the changed
            tensors, for `broca.apply`).
        scale: Factor of the components' outputs; by default that of the run, else 0.
        check: Whether to compare lm-eval's score of the export with that of broca's ablated model.
        task: The task of `check`; by default that of the run.
        items: Under mean ablation, the items of the run whose mean output stands in.
        push: Id of a repository on the hub to put the export in.
        private: Whether a new repository is private.
        on_progress: Receives what is going on.

    Returns:
        What was written and checked; the folder also holds it, and a model card.

    Raises:
        BrocaError: Bad input, or the ablation cannot be exported exactly, in one line that says
            what to do.
        SelfTestFailed: The export does not do what the ablated model does; nothing is left.
    """
    asked = _Asked.of(model, heads, kind, scale)
    if kind == "adapter":
        require_peft()
    if check and (task is None and asked.result is None):
        raise BadInput("`check` needs a `task` to compare scores on")
    folder = _claimed_folder(to)
    stages = Stages(on_progress)
    if not isinstance(asked.model, GatedModel):
        model_options = _as_needed(model_options, asked)
    catalog = Catalog(source_options.include_path, allow_code=source_options.allow_code)
    with TemporaryDirectory(prefix=".broca-export-", dir=folder.parent) as temporary:
        part = Path(temporary)
        with model_in_use(asked.model, model_options, stages) as gated:
            asked.require_same_weights(gated)
            names = asked.names(gated)
            origin, means = Origin.of(gated), None
            if asked.ablation.kind == "mean":
                stages.enter("averaging the outputs that are replaced")
                means = _means(gated, names, asked, catalog, task_options, items)
            stages.enter(f"writing the {kind}")
            _write(asked, gated, names, part, origin, means)
            stages.enter("asking the ablated model")
            prompts = prompt_tokens(gated.tokenizer, gated.vocabulary)
            ours = _answers(gated, names, asked.ablation.scale, means, prompts)
            benchmark, score = None, 0.0
            if check:
                stages.enter("scoring the ablated model")
                benchmark = _benchmark(gated, asked, task, catalog, task_options)
                score = _score(gated, names, asked, benchmark)
            info, tokenizer = model_info(gated), gated.tokenizer
        del gated  # of a model that was loaded here the memory is free for the next one
        stages.enter("loading the export again")
        reloaded = reload(kind, part, origin)
        checked = compare_answers(
            ours, answers(reloaded, prompts), dtype=info.dtype, libraries=LIBRARIES[kind]
        )
        scored = None
        if benchmark is not None:
            stages.enter("scoring the export with lm-eval")
            hf = harness_score(reloaded, tokenizer, benchmark, options=task_options)
            scored = compare_scores(benchmark, score, hf, dtype=info.dtype)
        done = Export(
            form=kind,
            model=info,
            base=BaseModel(asked.base_name, origin.revision, info.dtype),
            components=names,
            ablation=asked.ablation,
            held_out=asked.held_out(names),
            files={},
            reloaded=checked,
            scored=scored,
            command=_call(asked, names, kind),
        )
        (part / PICTURE).write_bytes(picture(info, names, asked.effects))
        done = _moved(done, part, folder)
    if push is not None:
        stages.enter("putting the export on the hub")
        done = replace(done, pushed=upload(folder, push, private=private))
        write_beside(folder / Export.FILE, encode(done))
    return done


@dataclass(frozen=True)
class _Asked:
    """What is to be exported.

    Attributes:
        model: The model, or its name.
        components: Names, or what `published_heads` takes.
        form: In which form.
        ablation: What becomes of them.
        result: The result that they come from.
    """

    model: str | GatedModel
    components: str | tuple[str, ...]
    form: Form
    ablation: AblationInfo
    result: Exportable | None

    @classmethod
    def of(
        cls,
        model: str | Path | GatedModel | Exportable,
        heads: str | Sequence[str] | Exportable | None,
        form: Form,
        scale: float | None,
    ) -> _Asked:
        """Makes sense of what was given.

        Raises:
            BadInput: No components are named, or something does not exist.
        """
        if form not in get_args(Form):
            raise BadInput(
                f"`kind` '{form}' is unknown{nearest(form, get_args(Form))}; use "
                f"{', '.join(get_args(Form))}"
            )
        result = model if isinstance(model, Exportable) else None
        if isinstance(heads, Exportable):
            result = heads
        elif heads is None and not isinstance(model, Exportable):
            if isinstance(model, GatedModel):
                raise BadInput("no components are named: give `heads` such as L0H4+L1H8")
            result = _read(model)
        if result is not None and not isinstance(heads, str | list | tuple):
            components: str | tuple[str, ...] = _selected(result)
        elif isinstance(heads, str):
            components = heads
        else:
            components = tuple(heads)  # type: ignore[arg-type]  # a list of names
        how = getattr(result, "ablation", AblationInfo("zero", 0.0))
        if scale is not None:
            how = AblationInfo("zero" if scale != how.scale else how.kind, scale)
        if how.kind == "resample":
            raise UnsupportedModel(
                "resample ablation cannot be exported: what stands in for an output differs from "
                "prompt to prompt; give a `scale`, such as 0"
            )
        if how.kind == "mean" and form in ("adapter", "heads"):
            raise UnsupportedModel(
                f"`kind` {form} multiplies outputs and cannot put their mean in place: use `kind` "
                "weights or patch, or give a `scale`, such as 0"
            )
        if isinstance(model, Exportable) or (result is not None and result is not heads):
            assert result is not None
            model = result.model.name
        assert not isinstance(model, Exportable)
        return cls(
            model if isinstance(model, GatedModel) else str(model), components, form, how, result
        )

    @property
    def base_name(self) -> str | None:
        """What the model is loaded by; None for one in memory."""
        return self.model.source if isinstance(self.model, GatedModel) else self.model

    @property
    def kinds(self) -> str:
        """The kinds of the components."""
        if isinstance(self.components, str):
            if is_published(self.components):
                return "heads"
            words: Sequence[str] = [word for word in self.components.split("+") if word.strip()]
        else:
            words = self.components
        return kinds_of(Component.parse(word) for word in words) or "heads"

    @property
    def effects(self) -> dict[str, float] | None:
        """Effects of all components where the result ranks them."""
        if not isinstance(self.result, Localization):
            return None
        return {line.name: line.effect for line in self.result.ranking}

    def names(self, model: GatedModel) -> tuple[str, ...]:
        """The components' names, each once.

        Raises:
            BrocaError: There are none, or the model lacks one.
        """
        components = self.components
        if is_published(components):
            assert isinstance(components, str)
            components = published_heads(
                components, layers=model.structure.layers, heads=model.heads
            )
        named = model.gated_parts(components).named
        if not named:
            raise BadInput("no components are named: give `heads` such as L0H4+L1H8")
        return tuple(component.name for component in named)

    def require_same_weights(self, model: GatedModel) -> None:
        """Refuses other weights than those of the result.

        Raises:
            BadInput: They are others.
        """
        if self.result is None:
            return
        known = self.result.model
        dtype = getattr(torch, known.dtype, None) if known.dtype else None
        same = known.dtype in ("", model.dtype)
        digest = model.fingerprint if same else fingerprint(model.model, dtype=dtype)
        if digest != known.fingerprint:
            raise BadInput(
                f"the weights of '{model.name}' are not those of the result (fingerprint "
                f"{digest}, not {known.fingerprint}): give the model that it is of, or name the "
                "components in `heads`"
            )

    def held_out(self, names: tuple[str, ...]) -> HeldOut | None:
        """What the result measured of exactly these components under this ablation."""
        found = self.result
        if isinstance(found, Localization):
            found = found.verification
        if (
            not isinstance(found, Verification)
            or set(found.heads) != set(names)
            or found.ablation != self.ablation
        ):
            return None
        return HeldOut(found.task, found.verdict, found.drops, found.baseline, found.after)


def _read(path: str | Path) -> Exportable:
    """The result in a folder of a run.

    Raises:
        BadInput: There is none whose components could be exported.
    """
    place = Path(path).expanduser()
    if not place.exists() or (place / "config.json").is_file():
        raise BadInput(
            f"'{path}' is no folder of a run, and no components are named: give `heads` such as "
            "L0H4+L1H8"
        )
    found = read(place)
    if not isinstance(found, Exportable):
        raise BadInput(
            f"{found.described()} names no components to export: give a localization, a "
            "verification or a neuron set"
        )
    if isinstance(found, Localization) and place.is_dir() and (place / Verification.FILE).is_file():
        later = Verification.read(place)
        same = later.model.fingerprint == found.model.fingerprint and later.task == found.task
        if same and set(later.heads) == set(found.selected):
            return replace(found, verification=later)
    return found


def _selected(result: Exportable) -> tuple[str, ...]:
    if not result.selected:
        raise BadInput(
            f"the run on task '{result.task}' selected nothing: name components in `heads`"
        )
    if isinstance(result, NeuronSet):
        return tuple(neuron.name for neuron in result.selected)
    return result.selected


def _as_needed(options: ModelOptions, asked: _Asked) -> ModelOptions:
    """Loads the components' kinds; weights that are written stay in their number format."""
    dtype = options.dtype
    if asked.form in ("weights", "patch") and dtype == "auto":
        dtype = "stored"
    return replace(options, components=asked.kinds, dtype=dtype)


def _claimed_folder(to: str | Path) -> Path:
    """The folder of the export.

    Raises:
        BadInput: It holds something else than an export, or cannot be written.
    """
    folder = check_out_folder(to)
    if any(folder.iterdir()) and not (folder / Export.FILE).is_file():
        raise BadInput(f"`to` '{to}' holds other files: choose a new folder")
    return folder


def _means(
    model: GatedModel,
    names: tuple[str, ...],
    asked: _Asked,
    catalog: Catalog,
    task_options: TaskOptions,
    items: int,
) -> Means:
    """Mean outputs over the `locate` items of the run's task.

    Raises:
        BadInput: The result is no run's.
    """
    run = asked.result
    if not isinstance(run, Localization):
        raise BadInput("mean ablation needs the run whose items are averaged: give its folder")
    options = replace(TaskOptions(**run.task_options), **task_options.to_dict())
    tasks = claimed(
        model, run.task, catalog, others=[], task_options=options, items=items,
        seed=run.search.seed, searched="task",
    )  # fmt: skip
    scored = tasks.scored_tokens(tasks.places["locate"][tasks.task].tolist())
    points = model.gated_parts(names).points
    return donor_activations(
        model, [tokens for _, tokens in scored], Ablation("mean"), points=points
    )


def _write(
    asked: _Asked,
    model: GatedModel,
    names: tuple[str, ...],
    folder: Path,
    origin: Origin,
    means: Means | None,
) -> None:
    """Writes the export in its form."""
    scale = asked.ablation.scale
    if asked.form == "adapter":
        factors = factors_of(model, names, scale)
        write_adapter(factors, folder, base=origin.location, revision=origin.revision)
        return
    if asked.form == "heads":
        write_head_list(head_list(model, names, scale, effects=asked.effects), folder)
        return
    tensors = changed_tensors(model, names, scale, means=means)
    if asked.form == "patch":
        write_patch(Patch(model.fingerprint, model.dtype, tensors), folder)
        return
    location = None if origin.location is None else Path(origin.location)
    shards = None if location is None or not location.is_dir() else shard_size(location)
    with with_tensors(model.model, tensors):
        write_checkpoint(model.model, model.tokenizer, folder, shard_bytes=shards)


def _answers(
    model: GatedModel,
    names: tuple[str, ...],
    scale: float,
    means: Means | None,
    prompts: Sequence[Sequence[int]],
) -> Answers:
    """What the ablated model answers."""
    parts = model.gated_parts(names, scale)
    with ActiveGates(parts.points, parts.values, replacement=means, every_row=True):
        return answers(model.model, prompts)


def _benchmark(
    model: GatedModel,
    asked: _Asked,
    task: str | Task | None,
    catalog: Catalog,
    options: TaskOptions,
) -> Benchmark:
    """The task of the check, as broca asks it.

    Raises:
        BadInput: It is a group, or the ablation is no zero ablation or scaling.
    """
    if asked.ablation.kind != "zero":
        raise BadInput(
            "`check` compares scores under zero ablation or a scale; under mean ablation the "
            "outputs alone are compared"
        )
    if task is None:
        assert asked.result is not None
        task = asked.result.task
    name = catalog.name_of(task)
    benchmark = load_tasks(model, [name], catalog, task=name, options=options)[name]
    require_single(benchmark)
    return benchmark


def _score(model: GatedModel, names: tuple[str, ...], asked: _Asked, benchmark: Benchmark) -> float:
    """Broca's score of the ablated model on all items."""
    with Workspace(None) as space:
        run = Run(
            model,
            whole_tasks({benchmark.name: benchmark}),
            space,
            ablation=Ablation("zero", asked.ablation.scale),
            settings={"measures": benchmark.name, "checks": list(names)},
        )
        return run.scores(model.components.columns(names))[benchmark.name]


def _call(asked: _Asked, names: tuple[str, ...], form: Form) -> str:
    """The call that repeats the export."""
    base = asked.base_name or "model, in memory"
    return (
        f"broca.export({base!r}, 'FOLDER', heads={'+'.join(names)!r}, kind={form!r}, "
        f"scale={asked.ablation.scale:g})"
    )


def _moved(done: Export, part: Path, folder: Path) -> Export:
    """Moves the files of an export to their folder, and writes its card and its record there."""
    for name in Export.read(folder).files if (folder / Export.FILE).is_file() else ():
        (folder / name).unlink(missing_ok=True)
    files: dict[str, int] = {}
    for file in sorted(path for path in part.rglob("*") if path.is_file()):
        name = str(file.relative_to(part))
        if name == "README.md":
            continue  # PEFT's own card says nothing of the ablation
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        file.replace(folder / name)
        files[name] = (folder / name).stat().st_size
    done = replace(done, files=files)
    write_beside(folder / "README.md", card(done))
    write_beside(folder / Export.FILE, encode(done))
    return done
