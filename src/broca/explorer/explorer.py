"""The live page: its subject, a model in memory, and the requests of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from broca.components import Component
from broca.errors import BadInput
from broca.explorer.generator import Generator, Stream
from broca.explorer.measurer import Measurer, Verify
from broca.known_paths import place_of
from broca.models import GatedModel, holds_model, kinds_of
from broca.options import RunOptions
from broca.results.atlas import Atlas
from broca.results.base import ZEROED, ModelInfo
from broca.results.localization import Localization
from broca.results.pages.charts import Figure
from broca.results.pages.grid import ComponentGrid, counted
from broca.results.pages.template import filled
from broca.results.reading import read
from broca.results.verification import SHORTENED, Verification
from broca.runs.run import model_info
from broca.runs.session import named_heads, require_weights_of
from broca.tasks import RequestTokenizer, Tasks

LONGEST = 256
"""Maximum number of tokens of an answer."""

KEPT = 100
"""Number of verifications whose pages are kept, the newest."""

Reply = dict[str, Any]


@dataclass(frozen=True)
class ExplorerSubject:
    """The subject of the live page.

    Attributes:
        model: Name, folder or id of the model.
        sets: Sets of components by name, such as a run's selection.
        effects: Known effects of components, negative for a loss; may be empty.
        unit: Quantity of the effects.
        tasks: Tasks of the result; empty for those of `auto`.
        examples: A prompt of a task and its right answer, which the set loses.
        verdict: What was found of the set; empty if nothing is known.
        made_with: Kinds of components and task options of the result, by their names as options.
        measured: The model of the result, whose weights the page must have.
    """

    model: str
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    effects: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    tasks: Tasks = ()
    examples: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    verdict: str = ""
    made_with: Mapping[str, Any] = field(default_factory=dict)
    measured: ModelInfo | None = None

    @classmethod
    def of(cls, model_or_run: str | Path) -> ExplorerSubject:
        """Returns the subject of a model's name, or of a folder or file of broca.

        Raises:
            BadInput: The result in the file or folder has no components.
        """
        path = place_of(model_or_run)
        if holds_model(path) or not (path.is_file() or any(path.glob("*.json"))):
            return cls(str(model_or_run))
        result = read(path)
        if isinstance(result, Localization):
            effects = {line.name: line.effect for line in result.ranking}
            unit = f"estimated effect on {result.response} in {result.task}"
            is_needed = result.verdict is not None and result.verdict.label == "specific"
            name = f"{'needed' if is_needed else 'selected'} for {result.task}"
            sets = {name: result.selected} if result.selected else {}
            found = _found(result.verification)
            made_with = {"components": result.components, **result.task_options}
            subject = cls("", sets, effects, unit, result.tasks, *found, made_with)
        elif isinstance(result, Verification):
            sets = {f"verified on {result.task}": result.heads}
            tasks = tuple(line.task for line in result.drops)
            kinds = kinds_of(map(Component.parse, result.heads))
            made_with = {"components": kinds, **result.task_options}
            subject = cls("", sets, {}, "", tasks, *_found(result), made_with)
        elif isinstance(result, Atlas):
            selected = {task.name: result.selected(task.name) for task in result.tasks}
            sets = {f"needed for {task}": names for task, names in selected.items() if names}
            names = tuple(task.name for task in result.tasks)
            made_with = {"components": result.kinds, **result.task_options}
            subject = cls("", sets, tasks=names, made_with=made_with)
        else:
            raise BadInput(
                f"'{path}' is {result.described()}, which names no components of a model: give a "
                "model or the out folder of `broca localize`, `verify` or `atlas`"
            )
        return replace(subject, model=result.model.name, measured=result.model)

    @property
    def shown_name(self) -> str:
        """Name of the model on the page; for a folder, only the last part."""
        path = Path(self.model).expanduser()
        return path.name if path.exists() else self.model


def _found(verification: Verification) -> tuple[dict[str, tuple[str, str]], str]:
    """Returns the first examined item that scores less without the set, and the verdict."""
    verdict = verification.verdict
    if verification.ablation != ZEROED:  # the page shows another state
        return {}, ""
    says = f"{verdict.label}: {verification.headline}." if verdict else ""
    for sample in verification.samples:
        lost = sample.scores and sample.scores[1] < sample.scores[0]
        if lost and len(sample.prompt) < SHORTENED:
            return {sample.task: (sample.prompt, sample.target)}, says
    return {}, says


class Explorer:
    """Answers the requests of the live page, from the server or from Python code.

    A tab sends its own mask with every request, so that tabs need no session.

    Args:
        model: The model; the explorer runs copies of it.
        subject: Known effects and sets of its components.
        options: Options of tasks, measuring and the journal.
        verify: The verb `verify`.
    """

    def __init__(
        self, model: GatedModel, subject: ExplorerSubject, options: RunOptions, *, verify: Verify
    ) -> None:
        self.model = model
        self.subject = subject
        require_weights_of(subject.measured, model)
        for names in subject.sets.values():
            model.components.columns(names)  # refuses a result of another model
        self._task_options, loading = options.task_options, options.model_options
        self._loading = {"revision": loading.revision, "dtype": loading.dtype}
        self.measurer = Measurer(model.copy(), options, verify=verify, tasks=subject.tasks)
        self.generator = Generator(model)
        self._verified: dict[int, Verification] = {}

    def close(self) -> None:
        """Stops both threads; the model's state is restored."""
        self.generator.close()
        self.measurer.close()

    def describe(self) -> Reply:
        """Returns the model's components, the known sets, and whether it has a chat template."""
        return {
            "model": self.subject.shown_name,
            "components": list(self.model.components.names),
            "sets": {name: list(names) for name, names in self.subject.sets.items()},
            "effects": dict(self.subject.effects),
            "unit": self.subject.unit,
            "verdict": self.subject.verdict,
            "chats": self.chats,
            "kinds": self.model.kinds,
            "asked": self._loading | replace(self._task_options, reference="own").to_dict(),
        }

    @property
    def chats(self) -> bool:
        """Whether the tokenizer has a chat template."""
        return bool(getattr(self.model.tokenizer, "chat_template", None))

    def answer(
        self, prompt: str, off: Sequence[str], *, scale: float = 0.0, longest: int = 64,
        chat: bool = True,
    ) -> Stream:  # fmt: skip
        """Answers a prompt twice in one batch: row 0 intact, row 1 with components scaled.

        Args:
            prompt: The prompt.
            off: The components.
            scale: Their gate, from 0 to 2.
            longest: Maximum number of tokens of an answer.
            chat: Whether to use the model's chat template, if it has one.

        Raises:
            BadInput: The prompt is empty or too long, a component is unknown, or the answers that
                are being written leave no room for another.
        """
        if not 1 <= longest <= LONGEST:
            raise BadInput(f"`longest` must lie between 1 and {LONGEST}, not at {longest}")
        tokens = self._tokens(prompt, chat)
        room = self.model.max_length - longest
        if len(tokens) > room:
            raise BadInput(
                f"the prompt has {len(tokens):,} tokens, and the model has room for {room:,}"
            )
        intact = torch.ones(len(self.model.components))
        gates = intact.clone()
        gates[self.model.components.columns(off)] = _scale(scale)
        return self.generator.ask(tokens, (intact, gates), longest=longest)

    def score(self, task: str, off: Sequence[str], *, scale: float = 0.0) -> Reply:
        """Returns a task's live score; see `Measurer.score`."""
        return asdict(self.measurer.score(task, off, _scale(scale)))

    def slopes(self, task: str, off: Sequence[str], *, scale: float = 0.0) -> dict[str, float]:
        """Returns the slopes of the components; see `Measurer.slopes`."""
        return self.measurer.slopes(task, off, _scale(scale))

    def random_scores(self, task: str, off: Sequence[str], *, scale: float = 0.0) -> list[float]:
        """Returns scores under random sets like this one; see `Measurer.random_scores`."""
        return self.measurer.random_scores(task, off, _scale(scale))

    def text(self, off: Sequence[str], *, scale: float = 0.0) -> Reply:
        """Returns the change of the model's own text; see `Measurer.text`."""
        return asdict(self.measurer.text(off, _scale(scale)))

    def example(self, task: str) -> Reply:
        """Returns a prompt of a task and the right answer; if possible one that the set loses."""
        shown = self.subject.examples.get(task) or self.measurer.example(task)
        return dict(zip(("prompt", "target"), shown, strict=True))

    def verify(self, task: str, off: Sequence[str], *, scale: float = 0.0) -> Reply:
        """Verifies a set; returns its verdict and the number of its page."""
        result = self.measurer.verify(task, off, _scale(scale))
        shown = replace(result.model, name=self.subject.shown_name)
        number = max(self._verified, default=0) + 1
        self._verified[number] = replace(result, model=shown)
        self._verified.pop(number - KEPT, None)
        verdict = result.verdict
        return {
            "label": verdict.label if verdict else "not verified",
            "text": verdict.text if verdict else "",
            "provisional": bool(verdict and verdict.provisional),
            "page": number,
        }

    def verification_page(self, number: int) -> str:
        """Returns the page of a verification that was started here, from 1.

        Raises:
            BadInput: There is no such verification, or it is kept no longer.
        """
        if number not in self._verified:
            raise BadInput(f"verification {number} is not known: start it from the page")
        return self._verified[number].page()

    def named(self, text: str) -> list[str]:
        """Reads components from names joined by `+`, commas or spaces, or `published:...`.

        Raises:
            BrocaError: A name or a list is unknown.
        """
        text = text.strip()
        if not text:
            return []
        if not text.startswith("published:"):
            text = "+".join(text.replace("+", " ").replace(",", " ").split())
        return list(named_heads(self.model, text))

    def status(self) -> Reply:
        """Returns the current activity, for all tabs."""
        measuring, waiting = self.measurer.busy
        return {"queued": self.generator.waiting, "measuring": measuring, "waiting": waiting}

    def page(self) -> str:
        """Returns the page."""
        info = model_info(self.model)
        grid = ComponentGrid(
            dict.fromkeys(self.model.components.names) | dict(self.subject.effects),
            self.subject.unit, model=info, legend=False,
        )  # fmt: skip
        return filled(
            "explorer", package="broca.explorer", about=self.describe(),
            counted=counted(self.model.components.names), architecture=info.architecture,
            grid_figure=Figure("components", "", grid), drawn=grid.draw(),
        )  # fmt: skip

    def _tokens(self, prompt: str, chat: bool) -> list[int]:
        if not prompt.strip():
            raise BadInput("the prompt is empty: write something for the model to continue")
        requests = RequestTokenizer.of(self.model, self._task_options)
        if chat and self.chats:
            text = requests.chat([{"role": "user", "content": prompt}])
            return requests.encode(text, special=False)
        return requests.encode(prompt)


def _scale(scale: float) -> float:
    if not 0 <= scale <= 2:
        raise BadInput(f"`scale` must lie between 0 and 2, not at {scale:g}")
    return float(scale)
