"""Tasks from data sets of the hub and from files: prompts with the answers that follow them.

An answer is right if greedy decoding gives it.
"""

from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from broca.errors import BadInput, BrocaError, TaskUnusable, first_line
from broca.known_paths import PREFIX as PREFIX
from broca.known_paths import place_of, require_named
from broca.models.checkpoints import skip_retries_if_unreachable
from broca.tasks.example_files import read_rows
from broca.tasks.examples import Task


def read_data_set(
    name: str,
    *,
    limit: int | None = None,
    fields: Mapping[str, str] | None = None,
    fetch_urls: bool = False,
) -> Task:
    """Reads a data set.

    Args:
        name: With or without `data:`: a hub id, if need be with a configuration
            (`openai/gsm8k/main`), a folder, or a file (JSON lines, a JSON array of objects, or a
            table).
        limit: Maximum number of rows to read, from the first.
        fetch_urls: Whether the card of a folder may name addresses of its data.
        fields: The columns of `prompt` and `answer` if these are not their names.

    Returns:
        A task of its rows, named with `data:`; answers follow their prompts after a space.

    Raises:
        BadInput: The data set cannot be read, lacks a column, or lies where only a file says.
        TaskUnusable: The data set has no rows.
    """
    name = name.removeprefix(PREFIX)
    rows, columns = _rows(name, fetch_urls, limit)
    if not rows:
        raise TaskUnusable(f"data set '{name}' has no rows")
    named = {"prompt": "prompt", "answer": "answer"} | dict(fields or {})
    if named.keys() != {"prompt", "answer"} or not columns.issuperset(named.values()):
        raise BadInput(
            f"data set '{name}' has the columns {', '.join(sorted(columns))}: rename those of the "
            "question and the answer to prompt and answer, or name them in `fields` of the neuron "
            "verbs as prompt=COLUMN,answer=COLUMN"
        )
    examples = []
    for row in rows:
        prompt, answer = (
            "" if text is None or text != text else str(text).strip()  # None or NaN
            for text in (row[named["prompt"]], row[named["answer"]])
        )  # fmt: skip
        # without a prompt or an answer: the item is left out and counted
        examples.append({"prompt": prompt, "answer": f" {answer}" if prompt and answer else ""})
    return Task(PREFIX + name, capability=name, examples=tuple(examples), kind="loglikelihood")


def _rows(name: str, fetch_urls: bool, limit: int | None) -> tuple[list[Any], set[str]]:
    """Returns rows, with the names of labels in place of their numbers, and their columns."""
    import datasets

    from broca.tasks.sandbox import fetching

    file = place_of(name)
    require_named(name)
    if file.is_file():
        rows = [row for _, row in read_rows(file)]
        if not all(isinstance(row, dict) for row in rows):
            raise BadInput(f"'{name}' has no names of columns: give JSON objects, or a table")
        columns = set(chain(*rows))
        # what is missing is None
        return [dict.fromkeys(columns) | row for row in rows[:limit]], columns
    path, config = name, None
    if not file.is_dir():
        skip_retries_if_unreachable()
        owner, *others = name.split("/", 2)
        path, config = "/".join([owner, *others[:1]]), "".join(others[1:]) or None
        require_named(Path(path).absolute())
    try:
        with fetching(fetch_urls, f"data set '{name}'"):
            if Path(path).is_dir():  # whose links and card may name others
                files = datasets.load_dataset_builder(path, config).config.data_files or {}
                for each in chain(*files.values()):
                    require_named(each, inside=path)
            data = datasets.load_dataset(path, config, split="train")
            rows = list(islice(data, limit))
    except BrocaError:
        raise
    except Exception as error:  # a data set may raise anything
        raise BadInput(
            f"data set '{name}' could not be read: {type(error).__name__}: {first_line(error)}; "
            "give a hub id, a folder or a file of JSON lines"
        ) from error
    labels = {
        column: [*feature.names, ""]
        for column, feature in data.features.items()
        if hasattr(feature, "names")
    }
    # a row without a label has None, or -1 for the last name
    return [
        row | {name: of[-1 if row[name] is None else row[name]] for name, of in labels.items()}
        for row in rows
    ], set(data.column_names)
