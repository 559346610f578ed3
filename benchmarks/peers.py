"""The same rows by broca and by other libraries: `python benchmarks/peers.py --model FOLDER ...`.

Every row is a question with a mask of its own: a share of all attention heads is zeroed, and the
log-likelihoods of its choices are measured. Each way runs in a process of its own, the peers' in
environments of their own (`--python transformer_lens=PATH`), and the processes take turns, so that
a slow minute slows all. The best batch size of each way counts, and all figures are compared.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPEATS = 5
BATCHES = (8, 16, 32, 64)
SHARE = 0.05
"""Share of the heads that a mask zeroes."""


@dataclass(frozen=True)
class Sequence:
    """The tokens of a question with one of its choices, and the heads that its mask zeroes.

    Attributes:
        tokens: Tokens of both; the last is predicted and not read.
        scored: Number of tokens of the choice.
        heads: The pairs (layer, head).
    """

    tokens: list[int]
    scored: int
    heads: list[tuple[int, int]]


@dataclass(frozen=True)
class Batch:
    """Sequences, padded at the right, as tensors of torch.

    Attributes:
        tokens: `(sequences, length)`.
        attention: 1 for tokens, 0 for padding, of the same shape.
        gates: 0 for zeroed heads, 1 for others, `(sequences, layers, heads)`.
        rows: Sequence of each scored token.
        places: Position before each scored token.
        targets: The scored tokens.
    """

    tokens: Any
    attention: Any
    gates: Any
    rows: Any
    places: Any
    targets: Any

    def sums(self, logits: Any) -> list[float]:
        """Returns the log-likelihood of each choice, of the logits before its tokens."""
        import torch

        likely = logits.float().log_softmax(-1).gather(1, self.targets[:, None])[:, 0]
        return torch.zeros(len(self.tokens)).index_add_(0, self.rows, likely).tolist()


def batches(sequences: list[Sequence], size: int, shape: tuple[int, int]) -> Iterator[Batch]:
    """Yields batches of sequences of similar length."""
    import torch

    for start in range(0, len(sequences), size):
        part = sequences[start : start + size]
        longest = max(len(sequence.tokens) for sequence in part) - 1
        tokens = torch.zeros(len(part), longest, dtype=torch.long)
        attention, gates = torch.zeros_like(tokens), torch.ones(len(part), *shape)
        rows, places, targets = [], [], []
        for row, sequence in enumerate(part):
            read = len(sequence.tokens) - 1
            tokens[row, :read] = torch.tensor(sequence.tokens[:-1])
            attention[row, :read] = 1
            for layer, head in sequence.heads:
                gates[row, layer, head] = 0
            rows += [row] * sequence.scored
            places += range(read - sequence.scored, read)
            targets += sequence.tokens[-sequence.scored :]
        indices = map(torch.tensor, (rows, places, targets))
        yield Batch(tokens, attention, gates, *indices)


Way = Callable[[Batch], Any]
"""Returns the logits at the scored places of a batch, `(scored tokens, vocabulary)`."""


def transformers_model(folder: str) -> Any:
    """Returns the model in float32."""
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def bare(folder: str) -> Way:
    """Transformers without a mask; only needed positions pass the output embedding."""
    model = transformers_model(folder)

    def run(batch: Batch) -> Any:
        hidden = model.model(batch.tokens, attention_mask=batch.attention, use_cache=False)[0]
        return model.lm_head(hidden[batch.rows, batch.places])

    return run


def hooks(folder: str) -> Way:
    """The same with a hook before each output projection, a mask for each sequence."""
    model = transformers_model(folder)
    width, gates = model.config.head_dim, {}

    def before(layer: int) -> Callable[..., Any]:
        def hook(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            return (inputs[0] * gates["now"][:, layer].repeat_interleave(width, -1)[:, None],)

        return hook

    for number, layer in enumerate(model.model.layers):
        layer.self_attn.o_proj.register_forward_pre_hook(before(number))

    def run(batch: Batch) -> Any:
        gates["now"] = batch.gates
        hidden = model.model(batch.tokens, attention_mask=batch.attention, use_cache=False)[0]
        return model.lm_head(hidden[batch.rows, batch.places])

    return run


def transformer_lens(folder: str) -> Way:
    """TransformerLens' bridge with hooks at `hook_z`."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoTokenizer

    model = TransformerBridge.boot_transformers(
        folder, hf_model=transformers_model(folder), tokenizer=AutoTokenizer.from_pretrained(folder)
    )

    def run(batch: Batch) -> Any:
        def scale(z: Any, hook: Any) -> Any:
            return z * batch.gates[:, int(hook.name.split(".")[1]), None, :, None]

        layers = range(batch.gates.shape[1])
        logits = model.run_with_hooks(
            batch.tokens, attention_mask=batch.attention,
            fwd_hooks=[(f"blocks.{layer}.attn.hook_z", scale) for layer in layers],
        )  # fmt: skip
        return logits[batch.rows, batch.places]

    return run


def nnsight(folder: str) -> Way:
    """A trace of nnsight that scales the inputs of the output projections."""
    from nnsight import NNsight

    wrapped = transformers_model(folder)
    model, width = NNsight(wrapped), wrapped.config.head_dim

    def run(batch: Batch) -> Any:
        with model.trace(batch.tokens, attention_mask=batch.attention, use_cache=False):
            for number, layer in enumerate(model.model.layers):
                gates = batch.gates[:, number].repeat_interleave(width, -1)[:, None]
                layer.self_attn.o_proj.input = layer.self_attn.o_proj.input * gates
            logits = model.output.logits.save()
        return logits[batch.rows, batch.places]

    return run


WAYS: dict[str, Callable[[str], Way]] = {
    "transformers, no masks": bare,
    "transformers, hooks": hooks,
    "transformer_lens": transformer_lens,
    "nnsight": nnsight,
}
OURS: dict[str, dict[str, Any]] = {
    "broca": {},
    "broca, nothing shared": {"share_prefixes": "off", "reuse_layers": "off"},
}
"""Options of broca's engine, which makes its own batches."""


def measured_by_broca(folder: str, sequences: list[Sequence], way: str) -> Callable[..., Any]:
    """Returns a function that measures all sequences; broca makes its own batches."""
    import numpy as np
    from prepared import prepare

    prepare()
    from broca.engine import Engine, EngineOptions
    from broca.models import load
    from broca.tasks import Request

    model = load(folder, device="cpu")
    names = {name: place for place, name in enumerate(map(str, model.components.names))}
    masks = list(dict.fromkeys(tuple(map(tuple, sequence.heads)) for sequence in sequences))
    gates = np.ones((len(masks), len(names)), dtype=np.float32)
    for row, mask in enumerate(masks):
        gates[row, [names[f"L{layer}H{head}"] for layer, head in mask]] = 0
    index = np.array([masks.index(tuple(map(tuple, sequence.heads))) for sequence in sequences])
    requests = [
        Request(
            "loglikelihood",
            tuple(sequence.tokens[: -sequence.scored]),
            tuple(sequence.tokens[-sequence.scored :]),
        )
        for sequence in sequences
    ]
    engines: dict[int, Engine] = {}

    def run(size: int) -> list[float]:
        if size not in engines:
            budget = size * (len(sequences[-1].tokens) - 1)
            engines[size] = Engine(model, EngineOptions(token_budget=budget, **OURS[way]))
        outputs: list[Any] = engines[size].run(requests, gates, index)
        return [output.value for output in outputs]

    return run


def measured_by_peer(folder: str, sequences: list[Sequence], way: str) -> Callable[..., Any]:
    """Returns a function that measures all sequences in batches of a size."""
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    shape = (config.num_hidden_layers, config.num_attention_heads)
    forward = WAYS[way](folder)

    def run(size: int) -> list[float]:
        with torch.no_grad():
            return [
                figure
                for batch in batches(sequences, size, shape)
                for figure in batch.sums(forward(batch))
            ]

    return run


def child(folder: str, rows: Path, way: str, threads: int) -> None:
    """Answers every batch size on standard input with seconds and log-likelihoods."""
    import torch

    torch.set_num_threads(threads)
    sequences = [Sequence(**row) for row in json.loads(rows.read_text())]
    run = (measured_by_broca if way in OURS else measured_by_peer)(folder, sequences, way)
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        figures = run(int(line))
        print(json.dumps([time.perf_counter() - start, figures]), flush=True)


def questions(
    path: Path, folder: str, count: int, shots: int, choices: int | None
) -> list[Sequence]:
    """Returns the sequences of a file of questions with choices, by length.

    Args:
        path: One JSON object with `prompt`, `choices` and `label` on each line.
        folder: The model, for its tokenizer and its heads.
        count: Number of questions.
        shots: Number of solved questions before each; other questions, the same for all.
        choices: Number of choices of each question that are read; None for all. Choices of one
            token leave the same tokens to read, which broca reads once.
    """
    from transformers import AutoConfig, AutoTokenizer

    config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    every = [(layer, head) for layer in range(layers) for head in range(heads)]
    items = [json.loads(line) for line in path.read_text().splitlines()]
    solved = (f"{item['prompt']} {item['label'].strip()}.\n" for item in items)
    before = "".join(text for text, _ in zip(solved, range(shots), strict=False))
    generator, sequences = random.Random(0), []
    for item in items[shots : shots + count]:
        zeroed = generator.sample(every, round(SHARE * len(every)))
        context = tokenizer(before + item["prompt"])["input_ids"]
        for choice in item["choices"][:choices]:
            answer = tokenizer(f" {choice.strip()}", add_special_tokens=False)["input_ids"]
            sequences.append(Sequence([*context, *answer], len(answer), zeroed))
    return sorted(sequences, key=lambda sequence: len(sequence.tokens))


def best(
    pythons: dict[str, str], options: argparse.Namespace, rows: Path
) -> dict[str, tuple[int, float, float]]:
    """Returns the best batch size, its median seconds and the largest deviation of each way."""
    started = {}
    for way, python in pythons.items():
        words = [python, __file__, "--child", way, "--rows", str(rows), "--model", options.model]
        started[way] = subprocess.Popen(
            [*words, "--threads", str(options.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(way: str, size: int) -> tuple[float, list[float]]:
        process = started[way]
        assert process.stdin
        assert process.stdout
        print(size, file=process.stdin, flush=True)
        while not (line := process.stdout.readline()).startswith("["):
            if not line and process.poll() is not None:
                raise SystemExit(f"{way} ended with {process.returncode}")
        seconds, likely = json.loads(line)
        return seconds, likely

    figures: dict[str, list[float]] = {}
    times: dict[tuple[str, int], list[float]] = {}
    for size in options.batches:
        for way in started:  # the first run of a size prepares it
            figures[way] = ask(way, size)[1]
            times[way, size] = [ask(way, size)[0]]
    chosen = {way: min(options.batches, key=lambda size: times[way, size][0]) for way in started}
    for _ in range(REPEATS):
        for way, size in chosen.items():
            times[way, size].append(ask(way, size)[0])
    for process in started.values():
        process.kill()
    exact = figures["transformers, hooks"]
    return {
        way: (
            size,
            statistics.median(times[way, size][1:]),
            max(abs(one - two) for one, two in zip(figures[way], exact, strict=True)),
        )
        for way, size in chosen.items()
    }


def main() -> None:
    """Measures all ways and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="folder of a Llama")
    parser.add_argument("--file", type=Path, help="questions, one JSON object on each line")
    parser.add_argument("--questions", type=int, default=64)
    parser.add_argument("--shots", type=int, default=0)
    parser.add_argument("--choices", type=int, help="choices of each question; default: all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--python", action="append", default=[], help="WAY=PATH of an environment")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.model, options.rows, options.child, options.threads)
        return
    pythons = dict.fromkeys(
        [*OURS, "transformers, no masks", "transformers, hooks"], sys.executable
    )
    pythons |= dict(word.split("=", 1) for word in options.python)
    sequences = questions(
        options.file, options.model, options.questions, options.shots, options.choices
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.json")
        rows.write_text(json.dumps([vars(sequence) for sequence in sequences]))
        found = best(pythons, options, rows)
    unit = found["transformers, no masks"][1]
    tokens = sum(len(sequence.tokens) - 1 for sequence in sequences)
    print(f"{options.questions} questions, {len(sequences)} sequences, {tokens} tokens\n")
    print("| way | best batch | sequences/s | of no masks | largest difference |")
    print("|---|---|---|---|---|")
    for way, (size, seconds, difference) in found.items():
        speed = len(sequences) / seconds
        print(f"| {way} | {size} | {speed:.1f} | {unit / seconds:.2f} | {difference:.0e} |")


if __name__ == "__main__":
    main()
