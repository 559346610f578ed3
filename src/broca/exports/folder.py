"""The folder of an export, with its model card, which is replaced only by a complete export."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from jinja2 import Environment, StrictUndefined

from broca.errors import BadInput
from broca.known_paths import SHIPPED_MODELS
from broca.results.export import Export
from broca.results.files import encode, write_beside
from broca.tasks.example_files import names_file

PART = ".broca-export-"
"""First letters of the folder of an export that is not complete."""

MOST_NAMED = 5
"""Number of components that the title of a card names."""


@contextmanager
def unpublished(folder: Path) -> Iterator[Path]:
    """A context that writes an export into a part of its folder; if it fails, nothing stays of it.

    Yields:
        A temporary folder in the folder itself, which may be a disk of its own.

    Raises:
        BadInput: The disk is full.
    """
    try:
        with TemporaryDirectory(prefix=PART, dir=folder) as part:
            yield Path(part)
    except Exception as error:  # safetensors has errors of its own
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if not full and "No space left" not in str(error):
            raise
        raise BadInput(
            f"`to` '{folder}' cannot be written: no space is left on its disk; free some, or "
            "choose a folder on another disk"
        ) from error


def publish(done: Export, part: Path, folder: Path) -> Export:
    """Moves the files of an export to their folder, with its card and its record.

    Files of an earlier export in the folder are removed.

    Args:
        done: The export, without its files.
        part: The folder in which the files were written.
        folder: The folder of the export, on the same disk.

    Returns:
        The export with the sizes of its files, in bytes.
    """
    (part / "README.md").unlink(missing_ok=True)  # PEFT's own card does not describe the ablation
    written = sorted(path for path in part.rglob("*") if path.is_file())
    sizes = {str(file.relative_to(part)): file.stat().st_size for file in written}
    done = replace(done, files=sizes)
    write_beside(part / "README.md", card(done))
    write_beside(part / Export.FILE, encode(done))
    # all is written: what follows needs no space, so that a full disk leaves no half of an export
    for name in Export.read(folder).files if (folder / Export.FILE).is_file() else ():
        file = folder / name
        if file.is_file() and file.resolve().is_relative_to(folder.resolve()):
            file.unlink()
    for name in (*done.files, "README.md", Export.FILE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (part / name).replace(folder / name)
    return done


def card(export: Export) -> str:
    """Writes the model card as Markdown, with the metadata that the hub reads."""
    base = export.base.id or export.model.name
    if Path(base).expanduser().exists():  # a card names no path on this machine
        base = Path(base).name
    scored = (*getattr(export.held_out, "drops", ()), export.scored)
    examples = {one.task for one in scored if one and names_file(one.task)}

    def told(text: str) -> str:
        """Returns a text with files of examples by their names, and without Markdown's signs."""
        for task in sorted(examples, key=len, reverse=True):
            text = text.replace(task, Path(task).name)
        return " ".join(text.split()).translate({ord(sign): f"\\{sign}" for sign in "\\|<*"})

    more = len(export.components) - MOST_NAMED
    template = Environment(trim_blocks=True, undefined=StrictUndefined).from_string(
        (files("broca.exports") / "card.md.j2").read_text(encoding="utf-8")
    )
    return template.render(
        export=export, told=told, form=export.form, scale=export.ablation.scale,
        base=base, base_code=repr(base), shipped=base in SHIPPED_MODELS,
        on_hub=base not in SHIPPED_MODELS and export.base.revision is not None,
        first=", ".join(export.components[:MOST_NAMED]) + (f" and {more} more" if more > 0 else ""),
        command=export.command.replace(repr(export.base.id), repr(base)),
    )  # fmt: skip
