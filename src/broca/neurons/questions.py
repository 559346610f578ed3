"""Questions with a gold answer, from a benchmark or from pairs of texts, in tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from broca.errors import TaskUnusable
from broca.tasks import Benchmark, LogLikelihood, Output, Request, RequestTokenizer


@dataclass(frozen=True)
class Text:
    """A question as text.

    Attributes:
        prompt: What the model reads.
        answer: What it should go on with; a space is put between the two.
        content: What it is about, whatever the wording: paraphrases share it.
        wording: Which wording it is, whatever the content.
    """

    prompt: str
    answer: str
    content: str = ""
    wording: str = ""


@dataclass(frozen=True, eq=False)
class Question:
    """One question.

    Attributes:
        number: Position in its data set.
        prompt: Its text, for reports.
        answer: The gold answer as text.
        content: What it is about, whatever the wording.
        wording: Which wording it is, whatever the content.
        gold: The gold answer under teacher forcing.
        asked: What is asked of the model to score it.
        score: The data set's own metric of the answers to `asked`.
    """

    number: int
    prompt: str
    answer: str
    content: str
    wording: str
    gold: Request
    asked: tuple[Request, ...]
    score: Callable[[Sequence[Output]], float] = field(repr=False)


@dataclass(frozen=True, eq=False)
class QuestionSet:
    """A data set as the neuron methods use it.

    Attributes:
        name: What it is called.
        capability: What it measures.
        metric: Name of its metric.
        questions: Its questions.
    """

    name: str
    capability: str
    metric: str
    questions: tuple[Question, ...]

    def __len__(self) -> int:
        return len(self.questions)

    def take(self, numbers: Sequence[int], *, name: str | None = None) -> QuestionSet:
        """The questions at some positions, as a set of their own."""
        chosen = tuple(self.questions[number] for number in numbers)
        return QuestionSet(name or self.name, self.capability, self.metric, chosen)

    def halves(self, *, seed: int) -> tuple[QuestionSet, QuestionSet]:
        """Two disjoint halves, cut by seed."""
        order = np.random.default_rng([seed, 2]).permutation(len(self))
        middle = len(self) // 2
        return (
            self.take(sorted(order[:middle].tolist()), name=f"{self.name}/1"),
            self.take(sorted(order[middle:].tolist()), name=f"{self.name}/2"),
        )


def from_benchmark(benchmark: Benchmark, numbers: Sequence[int]) -> QuestionSet:
    """Questions from a task's items, scored by the task's own metric.

    Args:
        benchmark: The task.
        numbers: Positions of the items.

    Raises:
        TaskUnusable: An item has no gold answer.
    """
    questions = []
    for number in numbers:
        item = benchmark.items[number]
        margin = benchmark.margin(item)
        if margin is None or (margin.gold is None and len(margin.requests) > 1):
            raise TaskUnusable(
                f"item {number} of task '{benchmark.name}' has no gold answer: neurons are "
                "located by the probability of one; choose another task"
            )
        right = margin.gold if isinstance(margin.gold, int) else (margin.gold or (0,))[0]
        questions.append(
            Question(
                number=number,
                prompt=item.prompt,
                answer=item.target,
                content=item.prompt,
                wording="",
                gold=margin.requests[right],
                asked=item.requests,
                score=lambda outputs, item=item: benchmark.score(item, outputs),  # type: ignore[misc]
            )
        )
    return QuestionSet(benchmark.name, benchmark.capability, benchmark.metric, tuple(questions))


def from_texts(
    name: str,
    texts: Sequence[Text],
    tokenizer: RequestTokenizer,
    *,
    capability: str = "",
    answer_tokens: int | None = None,
) -> QuestionSet:
    """Questions from pairs of prompt and answer, scored by whether greedy decoding gives it.

    Args:
        name: What to call the set.
        texts: The pairs.
        tokenizer: For the model that will be asked.
        capability: What the set measures; its name if empty.
        answer_tokens: Only the first so many tokens of an answer count; all if None.

    Raises:
        TaskUnusable: There is none, or an answer is empty.
    """
    if not texts:
        raise TaskUnusable(f"data set '{name}' has no questions")
    questions = []
    for number, text in enumerate(texts):
        if not text.answer.strip():
            raise TaskUnusable(f"question {number} of data set '{name}' has an empty answer")
        gold = tokenizer.loglikelihood(text.prompt, f" {text.answer.strip()}")
        if answer_tokens is not None:
            gold = replace(gold, continuation=gold.continuation[:answer_tokens])
        content = text.content or text.prompt
        questions.append(
            Question(
                number, text.prompt, text.answer, content, text.wording, gold, (gold,), _greedy
            )
        )
    return QuestionSet(name, capability or name, "exact_answer", tuple(questions))


def _greedy(outputs: Sequence[Output]) -> float:
    (output,) = outputs
    assert isinstance(output, LogLikelihood)
    return float(output.greedy)
