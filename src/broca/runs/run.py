"""A run: a model, its tasks with their items, an executor and a journal; it measures rows."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from broca import searches
from broca.engine import Ablation, OutputNorms, RunnerSpec, donor_activations
from broca.engine.batches import common_prefix
from broca.engine.neutral_text import TextReading
from broca.executors.executor import Executor
from broca.executors.journaled import OUTPUTS, JournaledExecutor
from broca.measurement import Measurement, Observation, Plan, Response
from broca.models import GatedModel, GatePoint
from broca.models.checkpoints import described_adapters
from broca.options import RunOptions
from broca.results.base import ModelInfo
from broca.results.files import plain
from broca.results.verification import TextChange
from broca.runs import task_sets
from broca.runs.progress import Stages
from broca.runs.references import Referenced, with_references
from broca.runs.task_sets import Bank, Part, TaskSet
from broca.runs.workspace import Workspace
from broca.searches import Problem
from broca.searches.atlas import AtlasProblem
from broca.store import Condition, ItemRecord, components_digest, now
from broca.tasks import Benchmark, Catalog, Item, Output, Task, Tasks
from broca.tasks.benchmark import definition_digest, item_digests, margin_digest, tokenizer_digest
from broca.tasks.catalog import neutral_text
from broca.verification import Examiner, Scope
from broca.verification.trial import Places

T = TypeVar("T")

NOMINAL_S = 1.0
"""Seconds of work that are lost when a process is killed, at the speed of `NOMINAL_FLOPS`."""

NOMINAL_FLOPS = {"cpu": 1e11, "cuda": 1e14}
"""Assumed operations per second of a device; a wrong value changes only the work that is lost."""


INTACT = "scoring the intact model"
"""The first stage of most verbs."""

DATE = "chat_template_date"
"""Setting of a run whose chat template says the date."""


@dataclass(eq=False)
class Run:
    """An open model with a journal and workers, and tasks cut into items, once they are known.

    `runs.session.open_run` opens one without tasks; `on` gives it tasks. All verbs measure their
    rows with `measure`, so that every verb resumes, shares a journal and runs on Ray.

    Attributes:
        model: The model whose components are ablated.
        tasks: The tasks and their items; none until they are known.
        workspace: The journal and the workers, which other runs may share.
        options: How tasks are asked, and how rows are measured.
        stages: Receives the current stage and the progress of the run.
        ablation: How components are ablated.
        donors: Bank positions of the items whose activations replace ablated ones.
        settings: The options of the verb, which identify the run together with the weights and the
            items.
        noted: Whether the out folder records the digests of this run.
    """

    model: GatedModel
    tasks: TaskSet
    workspace: Workspace
    options: RunOptions = field(default_factory=RunOptions)
    stages: Stages = field(default_factory=Stages)
    ablation: Ablation = field(default_factory=Ablation)
    donors: Sequence[int] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    noted: bool = True
    search_response: Response = field(init=False, repr=False, default="accuracy")
    """Response of the search's last plan."""
    bank: Bank = field(init=False, repr=False)
    """The items that plans refer to by position; their tasks may know right answers."""
    _siblings: dict[str, Run] = field(init=False, repr=False, default_factory=dict)
    _margin_ids: dict[int, int] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.model.require_intact()
        self.bank = list(self.tasks.bank)

    @property
    def catalog(self) -> Catalog:
        """The tasks that can be named."""
        return self.workspace.catalog(self.options.source_options)

    def claimed(
        self, task: str | Task, *, others: Tasks, same_skill: Tasks = (), **cut: Any
    ) -> TaskSet:
        """Loads the tasks of a claim and cuts their items; `cut` is passed to `claim_tasks`."""
        catalog = self.catalog
        name, skill = catalog.name_of(task), catalog.names_of(same_skill)
        chat = self.options.task_options.chat_template
        other_names = task_sets.other_tasks(name, others, self.model, catalog, chat=chat)
        benchmarks = task_sets.load_tasks(
            self.model, (name, *skill, *other_names), catalog, task=name,
            options=self.options.task_options, report=self.stages.enter,
        )  # fmt: skip
        task_sets.require_controls(name, benchmarks)
        tasks = task_sets.claim_tasks(name, benchmarks, same_skill=skill, **cut)
        notes = task_sets.sampling_note(name, others, other_names, catalog)
        for note in notes:
            self.stages.note(note)
        return replace(tasks, notes=(*notes, *tasks.notes))

    def on(self, tasks: TaskSet, *, settings: Mapping[str, Any], **parts: Any) -> Run:
        """Returns the run on some tasks with the settings of a verb; `parts` are other fields."""
        day = self.options.task_options.chat_template_date
        dated = {} if day is None else {DATE: day}
        run = replace(self, tasks=tasks, settings={**settings, **dated}, **parts)
        self.model.require_scale(run.ablation.scale)
        return run

    def intact(self) -> tuple[dict[str, float], tuple[str, ...]]:
        """Returns the scores of the intact model, and notes on tasks near chance.

        Raises:
            NothingToLocalize: The model cannot do the task of the claim.
        """
        self.stages.enter(INTACT)
        scores = self.scores(())
        task_sets.require_ability(self.tasks, scores, self.intact_answers)
        notes = task_sets.chance_notes(self.tasks, scores)
        for note in notes:
            self.stages.note(note)
        return scores, notes

    def measure(self, plan: Plan, *, role: str = "scores") -> Measurement:
        """Measures the rows of a plan that the journal does not contain yet.

        Args:
            plan: The rows; a plan that names no response returns the tasks' own metrics.
            role: Purpose of the rows: `search` or `scores`.

        Raises:
            BrocaError: A row cannot be measured, or the journal cannot be used.
        """
        with self.stages.planned(len(plan), cost=plan.cost):
            return self._journaled.run(plan, role=role)

    def answers(self, plan: Plan, *, role: str = OUTPUTS) -> list[tuple[Output, ...]]:
        """Returns the model's answers to the requests of each row's item."""
        with self.stages.planned(len(plan)):
            return self._journaled.answers(plan, role=role)

    def intact_answers(
        self, places: Sequence[int], *, role: str = OUTPUTS
    ) -> list[tuple[Output, ...]]:
        """Returns the intact model's answers to items, by their places in the bank."""
        plan = Plan.crossed(self.mask(())[None], np.asarray(places, dtype=np.intp))
        return self.answers(plan, role=role)

    def observe(self, observations: Sequence[Observation]) -> list[NDArray[np.float32]]:
        """Returns the vectors of observations of one class, in their order."""
        with self.stages.planned(len(observations)):
            return self._journaled.observe(observations)

    def once(self, kind: str, measure: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
        """Returns a vector that is measured once for this run, such as the speed of its rows.

        A run that is resumed or repeated has the vector of its first process.

        Args:
            kind: Kind of the vector, for the reader.
            measure: Measures it if the journal lacks it.
        """
        return self._journaled.once(kind, self._identity.hex(), measure)

    def search(
        self,
        search: searches.Search[T],
        *,
        method: str,
        problem: Problem | AtlasProblem,
        response: Response,
        options: Mapping[str, Any] | None = None,
    ) -> T:
        """Runs a search, and records what is needed to repeat it without a model.

        Args:
            search: Yields plans, is sent their measurements, and returns the result.
            method: Name of its method.
            problem: The problem that it solves.
            response: Response of plans that name none.
            options: Settings of the method.
        """
        settings = {name: searches.written(value) for name, value in (options or {}).items()}
        record = {"method": method, "options": settings, "problem": plain(problem)}
        self._journaled.journal.note_search(self._journaled.number, record)

        def execute(plan: Plan) -> Measurement:
            self.search_response = plan.response or response
            asked = replace(plan, response=self.search_response)
            return replace(self.measure(asked, role="search"), plan=plan)

        return searches.run(search, execute)

    def referenced(
        self, response: Response, places: Places, *, otherwise: str | None
    ) -> Referenced:
        """Finds the reference answers that a response needs; see `with_references`."""
        answer = partial(self.intact_answers, role="references")
        references = with_references(response, answer, self.bank, places, otherwise=otherwise)
        self.bank = references.bank
        self._executor.refer(references.bank)
        return references

    def scores(self, columns: Sequence[int], *, part: Part = "report") -> dict[str, float]:
        """Returns the scores of tasks with some components ablated, by task.

        Args:
            columns: The components; none for the intact model.
            part: The items that are scored.
        """
        trial = self.tasks.trial(part)
        places = {name: trial.places[name] for name in self.tasks.benchmarks}
        responses = trial.responses(self.measure, self.mask(columns)[None], places)
        return {name: trial.score(name, values[0]) for name, values in responses.items()}

    def mask(self, columns: Sequence[int]) -> NDArray[np.bool_]:
        """The mask that ablates some components, `(components,)`."""
        return np.isin(np.arange(len(self.model.components)), list(columns))

    def under(self, kind: str) -> Run:
        """Returns the run under another kind of ablation."""
        if kind == self.ablation.kind:
            return self
        if kind not in self._siblings:
            ablation = replace(self.ablation, kind=kind)
            # not the settings of a run that was asked for under this kind
            settings = {**self.settings, "under": [kind, ablation.scale]}
            self._siblings[kind] = replace(self, ablation=ablation, settings=settings, noted=False)
        return self._siblings[kind]

    def examiner(self, scope: Scope, *, kinds: Sequence[str] = ()) -> Examiner:
        """Returns the examiner that measures the evidence for a claim on a set of components.

        Args:
            scope: Which tests are made, and on how many items.
            kinds: Kinds of ablation under which the claim is tested.
        """
        return Examiner(
            model=model_info(self.model), ablation=self.ablation, trial=self.tasks.trial(),
            components=self.model.components, execute=self.measure, answer=self.answers,
            norms=self.norms(), read=self.text_change, spent=lambda: self.scoring_rows,
            kinds={kind: self.under(kind).measure for kind in kinds}, scope=scope,
        )  # fmt: skip

    def norms(self) -> NDArray[np.float32] | None:
        """Returns the mean output norm of every component over the task's `locate` items.

        All tokens, prompt and continuation, have equal weight.

        Returns:
            `(components,)`; None if some components have no activation (routed experts).
        """
        if any(point.place == "routing" for point in self.model.points):
            return None
        components = components_digest(self.model.components.names).hex()
        sequences = (tokens for _, tokens in self.tasks.scored_tokens(self.tasks.located))
        self.stages.enter("reading output norms")
        (norms,) = self.observe([OutputNorms(components, tuple(sequences))])
        return norms

    def text_change(self, columns: Sequence[int]) -> TextChange:
        """Returns how the model's text changes without some components, on the shipped text."""
        encode, longest = self.model.tokenizer.encode, self.model.max_length
        texts = [tuple(encode(line)[:longest]) for line in neutral_text()]
        size = self.model.vocabulary
        sequences = tuple(tokens for tokens in texts if len(tokens) > 1 and max(tokens) < size)
        components = components_digest(self.model.components.names).hex()
        reading = TextReading(components, tuple(sorted(columns)), self.ablation.scale, sequences)
        ((before, after, divergence),) = self.observe([reading])
        count = sum(len(tokens) - 1 for tokens in sequences)
        before, after = float(np.exp(before)), float(np.exp(after))
        return TextChange(count, before=before, after=after, divergence=float(divergence))

    @property
    def search_rows(self) -> int:
        """Number of rows of the search; a row with its gradient counts as three."""
        return self._journaled.cost["search"]

    @property
    def scoring_rows(self) -> int:
        """Number of distinct rows of scores and outputs, under all kinds of ablation."""
        rows = sum(self._journaled.requested(role) for role in ("scores", OUTPUTS))
        return rows + sum(sibling.scoring_rows for sibling in self._siblings.values())

    def finish(self) -> tuple[int, int]:
        """Records that the run has finished.

        Returns:
            Numbers of rows that the run measured and of their tokens, in all its processes.
        """
        journal, number = self._journaled.journal, self._journaled.number
        journal.finish_run(number)
        costs = [journal.cost(number), *(other.finish() for other in self._siblings.values())]
        rows, tokens = map(sum, zip(*costs, strict=True))
        return rows, tokens

    @cached_property
    def _digests(self) -> list[bytes]:
        """Digest of every item of the bank, 16 bytes each."""
        bank = self.tasks.bank
        digests = {
            benchmark: iter(item_digests(benchmark, [item for of, item in bank if of is benchmark]))
            for benchmark in {benchmark for benchmark, _ in bank}
        }
        return [next(digests[benchmark]) for benchmark, _ in bank]

    @cached_property
    def _donor_sequences(self) -> list[tuple[int, tuple[int, ...]]]:
        """Token sequences whose activations replace ablated ones, each with its item's position."""
        return self.tasks.scored_tokens(self.donors) if self.ablation.needs_donors else []

    @cached_property
    def condition(self) -> Condition:
        """Everything besides mask and item that determines a row with response `accuracy`."""
        ablation = self.ablation
        # the token count distinguishes these donors from those of older journals, prompts alone
        count = sum(len(tokens) for _, tokens in self._donor_sequences)
        donors = b"".join([b"%d" % count, *(self._digests[place] for place in self.donors)])
        return Condition(
            weights=self.model.identity, tokenizer=tokenizer_digest(self.model.tokenizer),
            dtype=self.model.dtype, ablation=ablation.kind, scale=ablation.scale,
            seed=ablation.seed if ablation.draws_donors else 0,
            donors=_digest(donors).hex() if ablation.needs_donors else "", response="accuracy",
        )  # fmt: skip

    def stand_ins(self, points: Sequence[GatePoint] | None = None) -> dict[GatePoint, Tensor]:
        """Returns the activations that replace those of ablated components, by gate point.

        Args:
            points: The gate points; by default all of the model.

        Raises:
            BadInput: A component has no activation to replace.
        """
        sequences = [tokens for _, tokens in self._donor_sequences]
        return donor_activations(self.model, sequences, self.ablation, points=points)

    @cached_property
    def _executor(self) -> Executor:
        donors = self.stand_ins()
        condition = self.condition
        key = [condition.ablation, condition.seed, condition.donors, condition.weights]
        spec = RunnerSpec(
            model=self.model, key=json.dumps(key),
            donors=tuple(donors[point] for point in self.model.points) if donors else (),
            engine_options=self.options.engine_options, model_options=self.options.model_options,
            on_progress=self.stages.within,
        )  # fmt: skip
        ray = self.workspace.ray
        return Executor(
            spec.engine() if ray is None else ray.runner(spec),
            self.bank,
            ablation=self.ablation,
            donors=[position for position, _ in self._donor_sequences],
            # donors are drawn by an item's content, not by its position
            donor_keys=[zlib.crc32(digest) for digest in self._digests],
        )

    @cached_property
    def _journaled(self) -> JournaledExecutor:
        """Measures with the journal, which records the run on first use."""
        workspace, digests = self.workspace, self._digests
        runner, journal = self._executor.runner, workspace.journal
        items = journal.items(_records(self.tasks.bank, digests))
        components = journal.components(self.model.components.names)
        process = f"process {os.getpid()} on {platform.node()} since {now()}"
        number = journal.begin_run(
            self._identity, settings=dict(self.settings), components=components, items=items,
            process=process,
        )  # fmt: skip
        if self.noted and workspace.on_begin is not None:
            workspace.on_begin(self._folder_digests())
        return JournaledExecutor(
            executor=self._executor, journal=journal, number=number, condition=self.condition,
            components=components, items=items,
            lengths=np.array([tokens_of(item) for _, item in self.tasks.bank], dtype=np.int64),
            chunk_tokens=chunk_tokens(self.model, runner.token_budget, device=runner.device),
            keep_outputs=workspace.keep_outputs, margin_items=self._margin_items,
            measuring=workspace.stopper.measuring, checkpoint=workspace.stopper.checkpoint,
            on_chunk=self.stages.at,
        )  # fmt: skip

    def _margin_items(self, positions: NDArray[np.intp]) -> NDArray[np.int64]:
        """Returns the journal ids of the margins of some bank positions."""
        new = sorted(set(positions.tolist()) - self._margin_ids.keys())
        bank = [self.bank[place] for place in new]
        digests = [
            margin_digest(benchmark, item, self._digests[place])
            for place, (benchmark, item) in zip(new, bank, strict=True)
        ]
        ids = self.workspace.journal.items(_records(bank, digests)).tolist()
        self._margin_ids.update(zip(new, ids, strict=True))
        return np.array([self._margin_ids[place] for place in positions.tolist()], dtype=np.int64)

    @cached_property
    def _identity(self) -> bytes:
        """Digest of the settings, the model and the items."""
        condition = self.condition
        named = [self.settings, condition.weights, condition.tokenizer, condition.dtype]
        return _digest(json.dumps(named).encode() + b"".join(self._digests))

    @property
    def digests(self) -> dict[str, str]:
        """The digests of the tokenizer, of the definition of the task and of its documents."""
        benchmark = self.tasks.benchmarks[self.tasks.task]
        return {
            "tokenizer": self.condition.tokenizer, "task": definition_digest(benchmark).hex(),
            "documents": benchmark.documents_digest.hex(),
        }  # fmt: skip

    def _folder_digests(self) -> dict[str, Any]:
        """The digests that a folder records and that must be the same when the run is resumed."""
        condition, benchmarks = self.condition, self.tasks.benchmarks
        tasks = {name: definition_digest(benchmark).hex() for name, benchmark in benchmarks.items()}
        return {
            "run": self._identity.hex(), "weights": condition.weights,
            "tokenizer": condition.tokenizer, "dtype": condition.dtype,
            "tasks": tasks, "items": _digest(b"".join(self._digests)).hex(),
        }  # fmt: skip


def tokens_of(item: Item) -> int:
    """Returns the number of tokens of an item's row; contexts that requests share count once."""
    contexts = {request.context for request in item.requests}
    answers = sum(len(request.continuation) + request.max_new_tokens for request in item.requests)
    return sum(map(len, contexts)) + answers


def shared_tokens(items: Sequence[Item]) -> dict[str, float]:
    """Returns how many first tokens all prompts share, and the mean number of the others."""
    contexts = [request.context for item in items for request in item.requests]
    if not contexts:
        return {}
    shared = len(common_prefix(contexts))
    unshared = float(np.mean([tokens_of(item) for item in items])) - shared
    return {"prefix_tokens": float(shared), "item_tokens": max(1.0, unshared)}


def chunk_tokens(model: GatedModel, budget: int, *, device: str) -> int:
    """Returns the tokens between two commits: about a second's work, and at least a batch.

    The number depends only on the model and the device, not on a clock, so that chunks are the same
    in every run.
    """
    weights = sum(parameter.numel() for parameter in model.model.parameters())
    rate = NOMINAL_FLOPS.get(device, NOMINAL_FLOPS["cuda"])
    return max(budget, int(NOMINAL_S * rate / (2 * weights)))


def _records(bank: Sequence[tuple[Benchmark, Item]], digests: Sequence[bytes]) -> list[ItemRecord]:
    return [
        ItemRecord(digest, item.task, item.number, item.prompt, item.target)
        for digest, (_, item) in zip(digests, bank, strict=True)
    ]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def model_info(model: GatedModel) -> ModelInfo:
    """Returns the description of a model in results."""
    return ModelInfo(
        name=model.name, fingerprint=model.fingerprint, architecture=model.architecture,
        layers=model.structure.layers, heads=model.heads, kv_heads=model.kv_heads,
        dtype=model.dtype, revision=model.revision, remote_code=model.remote_code,
        # a caller may switch one off or on
        adapter=model.adapter if model.source else described_adapters(model.model),
    )  # fmt: skip
