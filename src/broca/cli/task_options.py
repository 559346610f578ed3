"""The options that say which tasks are asked and how, shared by the verbs that ask them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

Task = Annotated[str, typer.Option(help="The task to localize: shipped, own or lm-eval's.")]
Tasks = Annotated[
    str, typer.Option(help="T1,T2,...; auto: all shipped ones, or those of --include-path.")
]
Others = Annotated[
    str, typer.Option(help="Tasks the heads should leave alone: T1,T2 or auto or nothing.")
]
IncludePath = Annotated[str | None, typer.Option(help="A folder of lm-eval YAML tasks to add.")]
Metric = Annotated[
    str | None,
    typer.Option(
        help="NAME or NAME,FILTER of the task's metric, such as acc_norm or "
        "exact_match,flexible-extract; default: acc_norm, else the task's first."
    ),
]
NumFewshot = Annotated[
    int | None, typer.Option(help="Solved examples before each question; default: the task's own.")
]
Limit = Annotated[
    float | None,
    typer.Option(help="First documents of each task that are used; a share of them below 1."),
]
ReferenceOption = Annotated[
    str,
    typer.Option(
        "--reference",
        help="Answer whose probability is the margin of a generation: own (the intact model's, "
        "where right), gold (the task's target) or FILE.py:FUNCTION.",
    ),
]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Let tasks execute what the model writes, in a sandbox."),
]
SystemPrompt = Annotated[str | None, typer.Option(help="Text put before everything else.")]


@dataclass(frozen=True)
class AskingOptions:
    """How questions are put; the fields are those of `broca.tasks.TaskOptions`."""

    num_fewshot: NumFewshot = None
    limit: Limit = None
    chat_template: Annotated[
        bool,
        typer.Option("--chat-template", help="Write prompts in the tokenizer's chat template."),
    ] = False
    system_prompt: SystemPrompt = None
    fewshot_as_multiturn: Annotated[
        bool, typer.Option(help="With a chat template, solved examples are turns of their own.")
    ] = True
    locate_split: Annotated[
        str | None,
        typer.Option(help="Official split, such as train, that the search's items come from."),
    ] = None
