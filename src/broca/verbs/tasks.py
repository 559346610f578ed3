"""`list_tasks` and `describe_task`: which tasks there are, and how one is prompted and scored."""

from dataclasses import asdict
from pathlib import Path

from broca.models import GatedModel, load_tokenizer
from broca.options import DescribeTaskOptions, verb
from broca.results.tasks import TaskDescription, TaskList
from broca.stress_tests.subject import families_of
from broca.tasks import PAPER_GROUPS, PAPER_TASKS, Catalog, RequestTokenizer, require_context

SENTENCES = {
    "addition": "sums of two numbers up to 99: compute 29 + 81 = 110",
    "addition_words": "the same sums in a sentence: the sum of 71 and 33 is 104",
    "brackets": "the brackets that close open ones: close ( < : > )",
    "calls": "the same in words of code: code o ( o { ; } )",
    "capitals": "capitals of countries: ecuador is governed from quito",
    "mc_biology": "one of four living beings: a bird, A woodpecker B axolotl C bee D turtle",
    "mc_chemistry": "one of four symbols: the symbol of copper, A Cu B Cs C Ca D V",
    "profanity": "whether the model swears when it is asked to",
    "reversing": "letters in reverse: reverse v u a = a u v",
    "rhyme": "a word that rhymes with another",
    "rhyming": "a word that rhymes with another, in one line: rhyme with mortified : side",
    "sorting": "letters in alphabetical order: sort e v x b = b e v x",
}
"""What every task of the package asks."""


def list_tasks(*, include_path: str | Path | None = None) -> TaskList:
    """Lists the package's tasks, the paper's and a folder's.

    Args:
        include_path: A folder of lm-eval YAML tasks to add.

    Raises:
        BadInput: The folder does not exist.
    """
    catalog = Catalog(include_path)
    return TaskList(
        shipped=catalog.shipped, instruct=catalog.instruct,
        included=catalog.included, included_groups=catalog.included_groups,
        paper=tuple(PAPER_TASKS.values()),
        groups={name: tuple(members) for name, members in PAPER_GROUPS.items()},
        sentences=SENTENCES,
    )  # fmt: skip


@verb(DescribeTaskOptions)
def describe_task(options: DescribeTaskOptions) -> TaskDescription:
    """Builds a task and describes its prompts and metrics; no weights are loaded.

    Raises:
        BrocaError: The task is unknown or cannot be used.
    """
    task, model, task_options = options.task, options.model, options.task_options
    catalog = Catalog(**asdict(options.source_options))
    catalog.require(task, task_options)
    if isinstance(model, GatedModel):
        requests_of = RequestTokenizer.of(model, task_options)
    else:
        tokenizer, config, longest = load_tokenizer(model)
        require_context(config, task_options)
        requests_of = RequestTokenizer(tokenizer, max_length=longest, options=task_options)
    benchmark = catalog.load(task, requests_of, metric=task_options.metric, options=task_options)
    requests = [request for item in benchmark.items for request in item.requests]
    first = benchmark.items[0]
    families = " and ".join(families_of(benchmark.name)) or "none"
    return TaskDescription(
        name=benchmark.name, tasks=tuple(benchmark.task_names), request_kind=benchmark.kind,
        items=len(benchmark.items), metric=benchmark.metric, metrics=tuple(benchmark.metric_names),
        chance=round(benchmark.chance, 4), requests=len(requests),
        prompt_tokens=max(len(request.context) for request in requests),
        cut_items=benchmark.cut_items,
        notes=(*benchmark.notes, f"pairs of prompts for `broca stress`: {families}"),
        first_prompt=first.prompt, first_target=first.target,
    )  # fmt: skip
