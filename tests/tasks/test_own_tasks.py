"""Tasks of examples, which lm-eval asks and scores."""

import pytest
from tiny import CHAT, tiny_tokenizer

import broca
from broca.errors import TaskUnusable
from broca.tasks import Catalog, Generation, LogLikelihood, RequestTokenizer, TaskOptions
from broca.tasks.examples import ANSWER_METRICS, matches

TOKENIZER = tiny_tokenizer()
REQUESTS = RequestTokenizer(TOKENIZER, max_length=256)


def loaded(examples, **settings):
    """Returns a benchmark of examples."""
    return Catalog().load(broca.Task.from_examples(examples, **settings), REQUESTS)


def score(benchmark, *texts):
    """Returns the scores of the generations of the first items."""
    pairs = zip(benchmark.items, texts, strict=False)
    return [benchmark.score(item, [Generation(text, 1)]) for item, text in pairs]


def test_generations_end_at_until_or_after_the_longest_answer():
    """Generations end at `until`; the default length is the longest answer's plus 8 tokens."""
    rows = [("4 =", " four"), ("5 =", " the longest answer")]
    for settings, stop, length in (
        ({"until": "x"}, ("x", "<eos>"), len(TOKENIZER.encode(" the longest answer")) + 8),
        ({"max_new_tokens": 9}, ("<eos>",), 9),
    ):
        (request,) = loaded(rows, **settings).items[0].requests
        assert (request.stop, request.max_new_tokens) == (stop, length)


def test_choices_are_compared_by_likelihood():
    """Choices follow the prompt without a delimiter; `acc_norm` divides by their letters."""
    choices = [" no", " a rather long choice", "x"]
    rows = [{"prompt": "say", "choices": choices, "label": 1}] * 8
    task = broca.Task.from_examples(rows)
    benchmark = Catalog().load(task, REQUESTS)
    assert (benchmark.metric, benchmark.chance) == ("acc", pytest.approx(1 / 3))
    item = benchmark.items[0]
    assert item.requests == tuple(REQUESTS.loglikelihood("say", choice) for choice in choices)
    outputs = [LogLikelihood(value, False) for value in (-3.0, -9.0, -4.0)]
    assert benchmark.score(item, outputs) == 0
    assert Catalog().load(task, REQUESTS, metric="acc_norm").score(item, outputs) == 1


def test_a_function_scores_outputs():
    """A metric function gets output and answer, or output and the whole `document`."""
    rows = [{"prompt": f"{n} =", "answer": "abcd"[: n + 1], "weight": n / 10} for n in range(4)]

    def overlap(output, answer):
        return len(set(output) & set(answer)) / len(set(answer))

    def weighted(output, document):
        return document["weight"] if output.startswith(document["answer"]) else 1

    for function, expected in [
        (overlap, [1, 1, 2 / 3, 2 / 4]),
        (weighted, [0, 0.1, 1, 1]),
        (lambda output, answer: len(output) > 100, [0] * 4),
    ]:
        benchmark = loaded(rows, metric=function)
        assert (benchmark.rescored, benchmark.metric) == (True, function.__name__.strip("<>"))
        assert score(benchmark, *["ab"] * 4) == pytest.approx(expected)


def test_a_function_scores_choices_and_a_task_of_a_file(kinds):
    """A function gets the texts of choices, and replaces a file's metrics, except perplexities."""

    def joined(output, answer):
        assert answer.strip()
        return (len(output) + len(answer) / 100) / 100

    rows = [{"prompt": "p", "choices": [" a", " bc"], "label": 0}] * 8
    benchmark = loaded(rows, metric=joined)
    outputs = [LogLikelihood(-2.0, False), LogLikelihood(-1.0, False)]
    assert benchmark.score(benchmark.items[0], outputs) == 0.0302
    catalog = Catalog(kinds)
    task = broca.Task("generation", metric=joined)
    assert int(100 * score(catalog.load(task, REQUESTS), "the whole text")[0]) == 14
    assert not catalog.load(task, REQUESTS, metric="exact_match").rescored
    with pytest.raises(TaskUnusable, match="loglikelihood_rolling, which gives a function"):
        catalog.load(broca.Task("rolling", metric=joined), REQUESTS)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda output, answer: 1 / 0, "'lambda' .* failed on output 'x': ZeroDivisionError"),
        (lambda output, answer: None, "is not a number for a single item"),
        (lambda output, answer: float("nan"), "is NaN: tasks are compared by shares"),
        (lambda output, answer: 2.5, "is 2.5: tasks are compared by shares, from 0 to 1"),
        (lambda output, answer: 10**400, "is not a number"),
    ],
)
def test_a_function_that_fails_or_gives_no_number_is_named(function, message):
    """A function that raises or returns no number is refused in one line with its name."""
    with pytest.raises(TaskUnusable, match=message):
        score(loaded([("p", "a")] * 8, metric=function), "x")


@pytest.mark.parametrize("until", ["\n", ()])
def test_an_empty_answer_is_right_for_a_model_that_says_nothing_more(until):
    """An empty answer is right for an empty generation, with the default stop string as well."""
    benchmark = loaded([("1 =", "1"), ("stop", " "), ("2 =", "2")], until=until)
    assert all(item.requests[0].stop for item in benchmark.items)
    assert score(benchmark, "1", "", "") == [1, 1, 0]
    assert score(benchmark, "1", "x") == [1, 0]


@pytest.mark.parametrize(
    ("output", "answer", "values"),
    [
        (" Paris. It is", "Paris", (0, 0, 1, 1)), ("14.5", ".5", (0, 0, 0, 0)),
        ("4.5", "4", (0, 0, 0, 0)), ("-4", "4", (0, 0, 0, 0)), ("−4", "4", (0, 0, 0, 0)),
        ("bobcats", "cats", (0, 0, 0, 0)), ("It is 4.", "4", (0, 0, 1, 0)),
        ("New York, of course", "New York", (0, 0, 1, 1)), ("答案是巴黎。", "巴黎", (0, 0, 1, 0)),
        ("anything", "", (0, 0, 0, 0)), ("", "", (1, 1, 1, 1)), (" 12 ", "12", (1, 1, 1, 1)),
        ('"Paris", of course', "Paris", (0, 0, 1, 1)), (".5", "5", (0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_answers_match_as_a_whole_within_or_in_the_first_word(output, answer, values):
    """Four names of three comparisons: whole output (two names), contained answer, first word."""
    scores = matches({"answer": answer}, [output])
    assert tuple(scores[name] for name in ANSWER_METRICS) == values


SUMS = [(f"{a} + {b} =", f" {a + b}") for a in range(3) for b in range(9)]
CHOICES = [
    {"prompt": prompt, "choices": choices, "label": answer}
    for prompt, answer in SUMS
    for choices in ([answer, " x"], [" x", answer]) * 2
]
NUMBERS = [
    {"prompt": "Which is larger?", "choices": [f" {n}", f" {n + 1}"], "label": 1}
    for n in range(108)
]


@pytest.mark.parametrize(
    ("examples", "questions"),
    [
        ([(prompt, answer + end) for prompt, answer in SUMS for end in ("", ".", "!", "?")], 27),
        ([(prompt + end, answer) for prompt, answer in SUMS for end in ("", " ", "\n", "  ")], 27),
        (CHOICES, 27),
        (NUMBERS, 108),
    ],
    ids=["answers", "white space", "order of choices", "choices are the question"],
)
def test_documents_that_ask_the_same_are_on_one_side_of_the_split(examples, questions):
    """Of 27 sums that are given four times, none is on two sides; other choices ask otherwise."""
    benchmark = loaded(examples, name="sums")
    split = benchmark.split(items=100, seed=0)
    assert len({*split.locate, *split.confirm, *split.report}) == questions
    assert any("81 of 108 questions" in note for note in benchmark.notes) == (questions == 27)


def test_choices_and_answers_are_turns_of_a_chat_template():
    """In a chat template, choices and answers have no space, unless solved ones share a turn."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHAT
    requests = RequestTokenizer(tokenizer, max_length=256)

    def load(examples, **options):
        options = TaskOptions(chat_template=True, **options)
        return Catalog().load(broca.Task.from_examples(examples), requests, options=options)

    def texts(requests):
        return [tokenizer.decode([*r.context, *r.continuation]) for r in requests]

    chosen = load([{"prompt": p, "choices": [a, " x"], "label": 0} for p, a in SUMS])
    start = "<user> 0 + 0 =\n<assistant>"
    assert texts(chosen.items[0].requests) == [f"{start}0", f"{start}x"]
    said = load(SUMS)
    assert score(said, "0") == [1]
    assert texts(said.margin(said.items[0]).requests) == [f"{start}0"]
    turns = ((True, "<user> {}\n<assistant> {}\n<user> "), (False, "<user> {} {}\n\n"))
    for several, solved in turns:
        taught = load(SUMS, num_fewshot=1, fewshot_as_multiturn=several)
        prompts = {solved.format(p, a.strip()) + start.removeprefix("<user> ") for p, a in SUMS}
        assert taught.items[0].prompt in prompts
