"""The studies of the paper on commonality neurons (Huang et al., arXiv 2502.20992) on a model.

`python benchmarks/neuron_studies.py [STUDY ...] [--model M] [--task T] [--items N] [--steps S]`
prints the lines of each study as JSON; without a name all run, within two minutes on
`reference-small`. `fidelity`: do paraphrases of an item share neurons? `decouple`: is it the
capability or the content? `overlap`: do halves of a data set, and data sets, share neurons?
`reliability`: does p(answer) move with an item's neurons? `cross`: what do tasks lose without the
neurons of each? `enhance`: does training only located neurons help?

Items in several wordings, and pairs of items, are in `neuron_items/`, which
`training/make_neuron_items.py` makes from the shipped tasks.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from prepared import prepare

prepare()

import numpy as np
import torch

import broca
from broca.errors import UnsupportedModel
from broca.measurement import Plan
from broca.models.neurons import NeuronBlock, writers
from broca.models.structure import is_transposed, widths
from broca.neurons.items import with_golds
from broca.neurons.methods import EMPTY, Columns, choose_neurons, outstanding, random_sets
from broca.neurons.neuron_run import NeuronModel, NeuronRun, open_neurons
from broca.options import DrawOptions, EraseOptions, RuleOptions
from broca.runs.run import Run
from broca.runs.workspace import Workspace
from broca.tasks import Catalog, Request, RequestTokenizer, Split, Task

ITEMS = Path(__file__).parent / "neuron_items"
PARAPHRASED = ("capitals", "addition", "mc_biology", "mc_chemistry")
"""Tasks with paraphrases: by templates, by the order of operands, by the order of options."""

Line = dict[str, Any]


def rows_of(name: str) -> list[Line]:
    """Returns the lines of a file of `neuron_items/`."""
    return [json.loads(line) for line in (ITEMS / f"{name}.jsonl").read_text().splitlines()]


@contextmanager
def opened(settings: argparse.Namespace, examples: Sequence[Line]) -> Iterator[NeuronRun]:
    """A run in memory, all of whose items are `locate` items of the task `examples`."""
    model = settings.loaded
    tokenizer = RequestTokenizer.of(model)
    task = Task("examples", examples=tuple(examples), kind="loglikelihood")
    benchmark = Catalog().load(task, tokenizer)
    split = Split(tuple(range(len(benchmark.items))), (), ())
    tasks = with_golds({task.name: benchmark}, {task.name: split}, {"locate": (task.name,)})
    with Workspace() as workspace:
        run = Run(model, tasks, workspace, settings={"verb": "study"})
        yield NeuronRun(run, NeuronModel(model), RuleOptions(steps=settings.steps), settings.seed)


def item_sets(run: NeuronRun, name: str) -> list[Columns]:
    """Returns the neurons that stand out on each of a task's `locate` items."""
    return [outstanding(item, run.rule) for item in run.item_scores(run.places(name)).scores]


def shares(first: Columns, second: Columns, neurons: int) -> tuple[float, float, float]:
    """Returns two sets' overlap: of the larger set, of the union, and the first one by chance.

    NaN if both are empty.
    """
    larger = max(len(first), len(second))
    if not larger:
        return (float("nan"),) * 3
    common = len(np.intersect1d(first, second))
    union = len(first) + len(second) - common
    chance = len(first) * len(second) / neurons / larger
    return common / larger, common / union, chance


def agreement(run: NeuronRun, relation: str, pairs: Iterable[tuple[Any, Columns, Columns]]) -> Line:
    """Returns the mean overlap of pairs of sets; the interval resamples their groups."""
    groups = defaultdict(list)
    for group, first, second in pairs:
        if len(first) or len(second):
            groups[group].append(shares(first, second, len(run.neurons)))
    line: Line = {"relation": relation, "pairs": sum(map(len, groups.values()))}
    if groups:
        means = np.array([np.mean(group, axis=0) for group in groups.values()])
        of_larger = run.difference(means[:, 0], np.zeros(len(means)))
        line |= {
            "of_larger": of_larger.value, "low": of_larger.low, "high": of_larger.high,
            "iou": means[:, 1].mean(), "of_larger_by_chance": means[:, 2].mean(),
        }  # fmt: skip
    return line


def fidelity(settings: argparse.Namespace) -> Iterator[Line]:
    """Compares the neurons of an item in several wordings with those of other items."""
    by_content = defaultdict(list)
    for row in rows_of(settings.task if settings.task in PARAPHRASED else PARAPHRASED[0]):
        by_content[row["content"]].append(row)
    examples = [row for group in islice(by_content.values(), settings.items) for row in group[:4]]
    with opened(settings, examples) as run:
        sets = item_sets(run, "examples")
        drawn = defaultdict(list)
        order = np.random.default_rng([settings.seed, 3]).permutation(len(sets))
        for a, b in combinations(order.tolist(), 2):
            item = examples[a]["content"] == examples[b]["content"]
            wording = examples[a]["wording"] == examples[b]["wording"]
            relation = (
                f"{'same' if item else 'other'} item, {'same' if wording else 'other'} wording"
            )
            drawn[relation].append((examples[a]["content"], sets[a], sets[b]))
        few = len(drawn["same item, other wording"])
        for relation, pairs in drawn.items():
            yield agreement(run, relation, pairs[:few])


def decouple(settings: argparse.Namespace) -> Iterator[Line]:
    """Compares the neurons of two items that share a capability, a content, both or neither."""
    pairs = rows_of("pairs")
    relations = list(dict.fromkeys(pair["relation"] for pair in pairs))
    pairs = pairs[: settings.items * len(relations)]
    items = [
        {"prompt": prompt, "answer": f" {answer}"}
        for prompt, answer in dict.fromkeys(
            (item["prompt"], item["answer"].strip())
            for pair in pairs
            for item in (pair["first"], pair["second"])
        )
    ]
    with opened(settings, items) as run:
        found = item_sets(run, "examples")
        sets = {item["prompt"]: columns for item, columns in zip(items, found, strict=True)}
        for relation in relations:
            yield agreement(
                run,
                relation,
                (
                    (number, sets[pair["first"]["prompt"]], sets[pair["second"]["prompt"]])
                    for number, pair in enumerate(pairs)
                    if pair["relation"] == relation
                ),
            )


def _options(settings: argparse.Namespace, task: str, **more: Any) -> EraseOptions:
    return EraseOptions.of({
        "model": settings.loaded, "task": task, "items": settings.items, "steps": settings.steps,
        "seed": settings.seed, "report_items": settings.items, **more,
    })  # fmt: skip


def overlap(settings: argparse.Namespace) -> Iterator[Line]:
    """Compares the neurons of halves of data sets, of one and of two."""
    first, *others = settings.tasks
    options = _options(settings, first)
    with open_neurons("overlap", options, others, {"locate": True}) as run:
        halves = []
        for name in run.names:
            places = run.places(name)
            order = np.random.default_rng([settings.seed, 2]).permutation(len(places))
            for half in np.array_split(order, 2):
                scores = run.item_scores(places[np.sort(half)]).scores
                halves.append((name, outstanding(scores.mean(axis=0), run.rule)))
        by_relation = defaultdict(list)
        for number, ((one, columns), (two, more)) in enumerate(combinations(halves, 2)):
            same = run.benchmark(one).capability == run.benchmark(two).capability
            relation = "same data" if one == two else f"{'same' if same else 'other'} capability"
            by_relation[relation].append((number, columns, more))
        for relation, pairs in by_relation.items():
            yield agreement(run, relation, pairs)


def reliability(settings: argparse.Namespace) -> Iterator[Line]:
    """Scales every item's neurons, and as many random ones, and measures the item."""
    draws = DrawOptions(draws=settings.draws)
    with open_neurons(
        "reliability", _options(settings, settings.task), (), {"locate": True}
    ) as run:
        every = item_sets(run, settings.task)
        chosen = [number for number, columns in enumerate(every) if len(columns)]
        places, sets = run.places(settings.task)[chosen], [every[number] for number in chosen]
        if not sets:
            return
        layers = run.neurons.layers
        arms = [
            arm
            for columns in sets
            for arm in (columns, *random_sets(columns, layers, draws, seed=settings.seed))
        ]
        tokens = np.array([len(gold.continuation) for gold in run.golds(places)])
        intact = np.exp(run.scaled(places, [EMPTY]).log_probability[0])
        masks, each = run.neurons.masks(arms), settings.draws + 1
        for factor in (0.0, 2.0):
            rows = np.arange(len(arms)), np.repeat(places, each)
            plan = Plan(masks, *rows, response="margin", scale=factor)
            margins = run.run.measure(plan).responses.reshape(-1, each)
            after = np.exp(margins * tokens[:, None])
            located = run.difference(after[:, 0], intact)
            yield {
                "factor": factor, "items": len(sets), "probability": intact.mean(),
                "located": located.value, "low": located.low, "high": located.high,
                "random": (after[:, 1:].mean(axis=1) - intact).mean(),
            }  # fmt: skip


def cross(settings: argparse.Namespace) -> Iterator[Line]:
    """Erases the neurons of each task, and measures every task."""
    for task in settings.tasks:
        others = [name for name in settings.tasks if name != task]
        options = _options(settings, task, others=others, draws=settings.draws)
        for line in broca.neurons.erase(settings=options).result:
            yield {
                "located_on": task, "measured_on": line.questions, "neurons": line.neurons,
                "drop": line.drop.value, "low": line.drop.low, "high": line.drop.high,
                "random_drop": line.random_drop.value,
            }  # fmt: skip


def enhance(settings: argparse.Namespace) -> Iterator[Line]:
    """Trains located neurons, all others with these at zero, and random ones; measures each."""
    parts = {"locate": False, "confirm": False, "report": True}
    options = _options(settings, settings.task)
    with open_neurons("enhance", options, (), parts) as run:
        located = choose_neurons(run, settings.task, required=True).columns
        train, validation = (
            run.golds(run.places(settings.task, part)) for part in ("locate", "confirm")
        )
        neurons, draws = run.neurons, DrawOptions(draws=settings.draws)
        sets = random_sets(located, neurons.layers, draws, seed=settings.seed)
        rest = np.setdiff1d(np.arange(len(neurons)), located)
        arms = {"untuned": EMPTY, "located": located, "without located": rest}
        arms |= {f"random {number}": columns for number, columns in enumerate(sets, start=1)}
    weights = settings.loaded.model.state_dict()
    before = {name: value.clone() for name, value in weights.items()}
    untuned = None
    for arm, columns in arms.items():
        try:
            if arm == "without located":
                for parameter, dim, index in parts_of(neurons, located):
                    with torch.no_grad():
                        parameter.index_fill_(dim, index, 0.0)
            epoch = 0
            if len(columns):
                epoch = tune(neurons, columns, train, validation, settings)
            with open_neurons("enhance", options, (), {"report": False}) as run:
                after = run.scaled(run.places(settings.task, "report"), [EMPTY]).scores[0]
            untuned = after if untuned is None else untuned
            change = run.difference(after, untuned)
        finally:
            with torch.no_grad():
                for name, value in weights.items():
                    value.copy_(before[name])
        yield {
            "arm": arm, "neurons": len(columns), "score": after.mean(), "change": change.value,
            "low": change.low, "high": change.high, "epoch": epoch,
        }  # fmt: skip


@dataclass(frozen=True)
class Slice:
    """The part of a parameter that belongs to neurons.

    Attributes:
        path: The parameter's dotted name.
        parameter: The whole parameter.
        dim: The dimension along which neurons are laid out.
        index: Positions of every neuron of the layer along this dimension, `(neurons, positions)`.
    """

    path: str
    parameter: torch.nn.Parameter
    dim: int
    index: torch.Tensor


def slices_of(model: torch.nn.Module, block: NeuronBlock) -> tuple[Slice, ...]:
    """Returns the parameters of a block's neurons, whose layout is checked at three of them."""
    names = {module: name for name, module in model.named_modules()}
    down = block.part.module
    columns = torch.arange(block.width)[:, None]
    weight = down.get_parameter("weight")
    slices = [Slice(f"{block.part.path}.weight", weight, 0 if is_transposed(down) else 1, columns)]
    written = writers(model, block)
    layouts = {
        module: layout
        for module, rows in written.items()
        if (layout := _layout(rows, block.width, widths(module)[1])) is not None
    }
    if not written or len(layouts) < len(written):
        raise UnsupportedModel(f"the rows that write the neurons of {block.part.path} are unknown")
    for module, layout in layouts.items():
        path = names[module]
        dim = 1 if is_transposed(module) else 0
        slices.append(Slice(f"{path}.weight", module.get_parameter("weight"), dim, layout))
        if isinstance(getattr(module, "bias", None), torch.nn.Parameter):
            slices.append(Slice(f"{path}.bias", module.get_parameter("bias"), 0, layout))
    return tuple(slices)


def _layout(rows: dict[int, torch.Tensor], width: int, outputs: int) -> torch.Tensor | None:
    """Returns the positions of every neuron among a writer's outputs, `(neurons, 1 or 2)`, or None.

    A position may have no gradient if an activation function is flat. The touched positions must be
    within the layout; positions within only one of two layouts distinguish them.
    """
    numbers = torch.arange(width)
    halves = torch.stack([numbers, numbers + width], dim=1)
    pairs = torch.stack([2 * numbers, 2 * numbers + 1], dim=1)
    for layout in [numbers[:, None]] if outputs == width else [halves, pairs]:
        if all(set(touched.tolist()) <= set(layout[n].tolist()) for n, touched in rows.items()):
            return layout
    return None


def parts_of(
    neurons: NeuronModel, columns: Columns
) -> list[tuple[torch.nn.Parameter, int, torch.Tensor]]:
    """Returns the parameters of some neurons, each with the dimension and positions of its part."""
    parts = []
    for block in neurons.blocks:
        chosen = torch.from_numpy(neurons.indices[columns[neurons.layers[columns] == block.layer]])
        with neurons.model.in_use():
            slices = slices_of(neurons.model.model, block)
        for part in slices if len(chosen) else ():
            parts.append((part.parameter, part.dim, part.index[chosen].flatten().cpu()))
    return parts


def tune(
    neurons: NeuronModel,
    columns: Columns,
    train: Sequence[Request],
    validation: Sequence[Request],
    settings: argparse.Namespace,
) -> int:
    """Trains the parameters of some neurons in place, and returns the epoch that is kept.

    The weights of the epoch with the lowest validation loss are kept; 0 is before training. Three
    epochs without a lower one end the training.
    """
    model, parts = neurons.model, parts_of(neurons, columns)
    weights = [torch.nn.Parameter(part.index_select(dim, at).detach()) for part, dim, at in parts]
    optimizer = torch.optim.Adam(weights, lr=settings.lr)
    rng = np.random.default_rng([settings.seed, 7])
    trained = [part.requires_grad_(True) for part, _, _ in parts]

    def write(values: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            for (part, dim, at), value in zip(parts, values, strict=True):
                part.index_copy_(dim, at, value)

    def loss_over(golds: Sequence[Request]) -> torch.Tensor:
        losses = []
        for gold in golds:
            tokens = torch.tensor([[*gold.context, *gold.continuation]], device=model.device)
            logits = model.model(input_ids=tokens, use_cache=False).logits[0].float()
            start = len(gold.context) - 1
            losses.append(
                torch.nn.functional.cross_entropy(
                    logits[start:-1], tokens[0, start + 1 :], reduction="sum"
                )
            )
        return torch.stack(losses).sum() / sum(len(gold.continuation) for gold in golds)

    with torch.no_grad():
        best, lowest = 0, float(loss_over(validation))
    kept = [value.detach().clone() for value in weights]
    for epoch in range(1, settings.epochs + 1):
        order = rng.permutation(len(train))
        for start in range(0, len(order), 8):
            with torch.enable_grad():
                loss_over([train[number] for number in order[start : start + 8]]).backward()
            for value, (part, dim, at) in zip(weights, parts, strict=True):
                value.grad = part.grad.index_select(dim, at)
            for part in trained:
                part.grad = None
            optimizer.step()
            write(weights)
        with torch.no_grad():
            loss = float(loss_over(validation))
        if loss < lowest:
            best, lowest, kept = epoch, loss, [value.detach().clone() for value in weights]
        elif epoch - best >= 3:
            break
    write(kept)
    for part in trained:
        part.requires_grad_(False)
    return best


STUDIES = {
    "fidelity": fidelity, "decouple": decouple, "overlap": overlap, "reliability": reliability,
    "cross": cross, "enhance": enhance,
}  # fmt: skip


def main() -> None:
    """Prints the lines of the studies."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("studies", nargs="*", help=", ".join(STUDIES))
    parser.add_argument("--model", default="reference-small")
    parser.add_argument("--task", default="capitals")
    parser.add_argument("--tasks", default="addition,addition_words,sorting")
    parser.add_argument("--items", type=int, default=24)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    if unknown := {*settings.studies} - {*STUDIES}:
        parser.error(f"no study {sorted(unknown)[0]}: use {', '.join(STUDIES)}")
    settings.tasks = settings.tasks.split(",")
    settings.loaded = broca.load(settings.model, components="neurons", device="cpu")
    for study in settings.studies or STUDIES:
        for line in STUDIES[study](settings):
            rounded = {
                name: round(float(value), 4) if isinstance(value, float) else value
                for name, value in line.items()
            }
            print(json.dumps({"study": study, **rounded}))


if __name__ == "__main__":
    main()
