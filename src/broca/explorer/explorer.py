"""The live page: a model in memory with its generator and measurer, and the page's requests."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, get_args

import torch

from broca.errors import BadInput, nearest
from broca.explorer.generator import Generator, Stream
from broca.explorer.measurer import Exporter, Measurer, Verify
from broca.explorer.subject import ExplorerSubject
from broca.models import GatedModel
from broca.options import RunOptions
from broca.results.export import Form
from broca.results.files import check_out_folder
from broca.results.pages.charts import Figure
from broca.results.pages.grid import ComponentGrid, counted, group_of
from broca.results.pages.template import filled
from broca.results.verification import Verification
from broca.runs.run import model_info
from broca.runs.session import named_heads
from broca.tasks import RequestTokenizer

LONGEST = 256
"""Maximum number of tokens of an answer."""

Reply = dict[str, Any]


class Explorer(AbstractContextManager["Explorer"]):
    """Answers the requests of the live page, from the server or from Python code.

    A tab sends its own mask with every request, so that tabs need no session.

    Args:
        model: The model, which nothing else may run while the explorer is open.
        subject: Known effects and sets of its components.
        run_options: Options of tasks, measuring and the journal.
        exports: Folder of exports; None for a temporary folder, removed on closing.
        verify: The verb `verify`.
        export: The verb `export`.
    """

    def __init__(
        self,
        model: GatedModel,
        subject: ExplorerSubject,
        *,
        run_options: RunOptions | None = None,
        exports: str | Path | None = None,
        verify: Verify | None = None,
        export: Exporter | None = None,
    ) -> None:
        self.model = model
        self.subject = subject
        for names in subject.sets.values():
            model.components.columns(names)  # refuses a result of another model
        run_options = run_options or RunOptions()
        self._task_options = run_options.task_options
        self.generator = Generator(model)
        self.measurer = Measurer(
            model.copy(), run_options, tasks=subject.tasks, verify=verify,
            export=export,
        )  # fmt: skip
        self._verified: list[Verification] = []
        self._temporary = None if exports else TemporaryDirectory(prefix="broca-exports-")
        self._folder = check_out_folder(exports or Path(getattr(self._temporary, "name", "")))
        self._exported: list[Path] = []

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops both threads; the model's state is restored."""
        self.generator.close()
        self.measurer.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def describe(self) -> Reply:
        """Returns the model's components, the known sets, and whether it has a chat template."""
        return {
            "model": self.subject.shown_name,
            "components": list(self.model.components.names),
            "sets": {name: list(names) for name, names in self.subject.sets.items()},
            "effects": dict(self.subject.effects),
            "unit": self.subject.unit,
            "chats": self.chats,
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
            BadInput: The prompt is empty or too long, or a component is unknown.
        """
        longest = min(longest, LONGEST)
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

    def verify(self, task: str, off: Sequence[str]) -> Reply:
        """Verifies a set; returns its verdict and the number of its page."""
        result = self.measurer.verify(task, off)
        self._verified.append(result)
        verdict = result.verdict
        return {
            "label": verdict.label if verdict else "not verified",
            "text": verdict.text if verdict else "",
            "page": len(self._verified),
        }

    def verification_page(self, number: int) -> str:
        """Returns the page of a verification that was started here.

        Raises:
            BadInput: There is no such verification.
        """
        if not 1 <= number <= len(self._verified):
            raise BadInput(f"verification {number} is not known: start it from the page")
        return self._verified[number - 1].page()

    def export(self, kind: str, off: Sequence[str], *, scale: float = 0.0) -> Reply:
        """Exports a set like `broca export`, into its own folder.

        If this page has verified the set, the export states the verdict.

        Args:
            kind: Form of the export: `adapter`, `weights` or `heads`.
            off: The components.
            scale: Their gate.

        Returns:
            A summary of the export and its checks, and its number.

        Raises:
            BrocaError: The set is empty, or cannot be exported exactly in this form.
        """
        forms = get_args(Form)
        if kind not in forms:
            raise BadInput(
                f"`kind` '{kind}' is unknown{nearest(kind, forms)}; use {', '.join(forms)}"
            )
        self.model.components.columns(off)  # refuses components that the model lacks
        verified = [
            verification
            for verification in self._verified
            if not scale and set(verification.heads) == set(off)
        ]
        heads: Verification | list[str] = verified[-1] if verified else list(off)
        name = f"{self.subject.shown_name.replace('/', '--')}-{kind}"
        for number in count(1):
            folder = self._folder / f"{name}-{number}"
            with suppress(FileExistsError):
                folder.mkdir()
                break
        try:
            done = self.measurer.export(heads, _scale(scale), kind, folder)  # type: ignore[arg-type]
        finally:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        self._exported.append(folder)
        text = "; ".join(done.summary())
        return {"name": folder.name, "text": text, "export": len(self._exported)}

    def exported(self, number: int) -> Path:
        """Returns the folder of an export that was started here, from 1.

        Raises:
            BadInput: There is no export of this number.
        """
        if not 1 <= number <= len(self._exported):
            raise BadInput(f"export {number} is not known: start it from the page")
        return self._exported[number - 1]

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
        return {
            "writing": self.generator.running // 2,
            "queued": self.generator.waiting,
            "measuring": measuring,
            "waiting": waiting,
        }

    def page(self) -> str:
        """Returns the page."""
        info = model_info(self.model)
        grid = ComponentGrid(
            dict.fromkeys(self.model.components.names) | dict(self.subject.effects),
            self.subject.unit, layers=info.layers, group=group_of(info), legend=False,
            text=f"Components of {self.subject.shown_name} by layer",
        )  # fmt: skip
        return filled(
            "explorer",
            package="broca.explorer",
            name=self.subject.shown_name,
            counted=counted(self.model.components.names),
            architecture=info.architecture,
            chats=self.chats,
            grid_figure=Figure("components", "", grid),
            about=json.dumps(self.describe()),
        )

    def _tokens(self, prompt: str, chat: bool) -> list[int]:
        if not prompt.strip():
            raise BadInput("the prompt is empty: write something for the model to continue")
        tokenizer = self.model.tokenizer
        if chat and self.chats:
            requests = RequestTokenizer.of(self.model, self._task_options)
            text = requests.chat([{"role": "user", "content": prompt}])
            return list(tokenizer.encode(text, add_special_tokens=False))
        return list(tokenizer.encode(prompt))


def _scale(scale: float) -> float:
    if not 0 <= scale <= 2:
        raise BadInput(f"`scale` must lie between 0 and 2, not at {scale:g}")
    return float(scale)


def events(stream: Stream) -> Iterator[str]:
    """Yields a stream as lines of JSON."""
    for event in stream:
        yield json.dumps(event, ensure_ascii=False) + "\n"


def write_zip(folder: Path, to: IO[bytes]) -> None:
    """Writes a folder as a zip file, piece by piece, to a file that need not be seekable."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(file, f"{folder.name}/{file.relative_to(folder)}")
