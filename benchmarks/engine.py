"""Speed of the engine, as ratios in one run: `python benchmarks/engine.py [NAME ...] [--write]`.

Each benchmark alternates two ways of computing the same rows, five times or more, and reports the
median of each and their ratio. `--write` writes RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prepared import prepare

prepare()
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
import torch
from pages import write_section
from tiny import tiny_tokenizer

from broca import designs
from broca.engine import Engine, EngineOptions
from broca.executors.executor import Executor
from broca.measurement import Measurement, Plan
from broca.models import GatedModel, load
from broca.models.checkpoints import shipped_model_folder
from broca.tasks import Benchmark, Catalog, Request, RequestTokenizer

HERE = Path(__file__).parent
SHIPPED = files("broca") / "tasks" / "shipped"
REPEATS = 5


def measured(executor: Executor, plan: Plan) -> Measurement:
    """Returns the measurement of a plan at once, without a journal."""
    (answers,) = executor.runner.stream([executor.job(0, plan)], rows=len(plan))
    return executor.measurement(plan, answers)


@dataclass(frozen=True)
class Line:
    """One line of the results: name, both speeds, their ratio and the target."""

    name: str
    slow: str
    fast: str
    ratio: float
    target: str
    reached: bool

    def __str__(self) -> str:
        verdict = "yes" if self.reached else "NO"
        return (
            f"| {self.name} | {self.slow} | {self.fast} | {self.ratio:.2f} | {self.target} | "
            f"{verdict} |"
        )


def alternately(*runs: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """Returns the median seconds of each run; runs alternate, so that drifts affect all alike."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, run_times in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            run_times.append(time.perf_counter() - start)
    return [statistics.median(run_times) for run_times in times]


def benchmark_of(model: GatedModel, task: str) -> Benchmark:
    """Returns a shipped task, tokenized for a model."""
    return Catalog().load(task, RequestTokenizer(model.tokenizer, max_length=model.max_length))


def random_llama(
    *, layers: int, heads: int, width: int, kv_heads: int | None = None, device: str = "cpu",
    dtype: torch.dtype = torch.float32, intermediate: int | None = None, vocabulary: int = 258,
) -> GatedModel:  # fmt: skip
    """Returns a Llama of random weights with the byte-level tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=intermediate or 3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads or heads // 4,
        head_dim=max(8, width // heads),
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        max_position_embeddings=4096,
    )
    torch.manual_seed(0)
    with torch.device(device):
        model = LlamaForCausalLM(config).to(dtype)
    return GatedModel.wrap(model, tiny_tokenizer(), name=f"random {layers}x{heads}x{width}")


def prompts(count: int, length: int, *, seed: int = 0) -> list[tuple[int, ...]]:
    """Returns random prompts of one length."""
    rng = np.random.default_rng(seed)
    return [tuple(int(t) for t in rng.integers(2, 258, length)) for _ in range(count)]


def plain_protocol(task: str, masks: np.ndarray, items: int) -> list[float]:
    """Runs the paper's protocol in lm-eval: for each mask, a new model at batch size 1.

    Returns:
        The task's score under every mask.
    """
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = str(shipped_model_folder("reference"))
    scores = []
    for mask in masks:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        width = model.config.head_dim
        with torch.no_grad():
            for column in np.flatnonzero(mask):
                layer, head = divmod(int(column), model.config.num_attention_heads)
                weight = model.model.layers[layer].self_attn.o_proj.weight
                weight[:, head * width : (head + 1) * width] = 0
        results = simple_evaluate(
            HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1),
            tasks=[task],
            task_manager=TaskManager(include_path=str(SHIPPED), include_defaults=False),
            limit=items,
            bootstrap_iters=0,
        )
        metrics = results["results"][task]
        scores.append(
            next(v for k, v in metrics.items() if k.split(",")[0] in ("acc", "exact_match"))
        )
    return scores


def protocol() -> list[Line]:
    """Compares with the paper's protocol on the same masks and items, with equal scores."""
    import logging

    logging.disable(logging.WARNING)
    model, lines = load("reference", device="cpu"), []
    masks = designs.stratified(4, 96, sparsity=0.05, seed=0)
    fast_masks = designs.stratified(40, 96, sparsity=0.05, seed=0)
    for task in ("addition", "mc_biology"):
        benchmark = benchmark_of(model, task)
        bank = [(benchmark, item) for item in benchmark.items[:50]]
        executor = Executor(Engine(model), bank)
        broca_scores = measured(executor, Plan.crossed(masks, np.arange(50))).mask_means()
        np.testing.assert_allclose(broca_scores, plain_protocol(task, masks, 50), atol=1e-9)

        def fast(executor: Executor = executor, benchmark: Benchmark = benchmark) -> None:
            for document in benchmark._documents:  # each time is that of a first run
                document._scores.clear()
            measured(executor, Plan.crossed(fast_masks, np.arange(50)))

        slow_s, fast_s = alternately(lambda task=task: plain_protocol(task, masks, 50), fast)
        slow_rate, fast_rate = 4 * 50 / slow_s, 40 * 50 / fast_s
        ratio = fast_rate / slow_rate
        lines.append(
            Line(f"paper's protocol, {task}", f"{slow_rate:.1f} rows/s", f"{fast_rate:.0f} rows/s",
                 ratio, ">= 60", ratio >= 60)
        )  # fmt: skip
    return lines


def overhead() -> list[Line]:
    """Compares batches with and without hooks at two sizes, with every gate point active."""
    lines = []
    sizes = [
        ("reference (1.2 M)", load("reference", device="cpu"), 170, 24),
        ("random 100 M", random_llama(layers=12, heads=16, width=768, intermediate=2560), 8, 64),
    ]
    for name, model, rows, length in sizes:
        tokens = torch.tensor(prompts(rows, length)) % model.vocabulary
        attention = torch.ones_like(tokens)
        gates = torch.ones(rows, len(model.components))
        gates[:, ::7] = 0

        def bare(
            model: GatedModel = model, tokens: Any = tokens, attention: Any = attention
        ) -> None:
            with torch.inference_mode():
                model.forward(tokens, attention, keep=1)

        def hooked(
            model: GatedModel = model, tokens: Any = tokens, attention: Any = attention,
            gates: Any = gates,
        ) -> None:  # fmt: skip
            with torch.inference_mode(), model.gates(gates):
                model.forward(tokens, attention, keep=1)

        with model.in_use():
            bare(), hooked()
            without, with_ = alternately(bare, hooked, repeats=41)
        ratio = with_ / without
        lines.append(
            Line(f"gate overhead, {name}", f"{1e3 * without:.1f} ms bare", f"{1e3 * with_:.1f} ms",
                 ratio, "<= 1.03", ratio <= 1.03)
        )  # fmt: skip
    return lines


def _rows_per_second(
    model: GatedModel, requests: list[Request], masks: int, options: list[EngineOptions],
    repeats: int = REPEATS, gates: np.ndarray | None = None,
) -> list[float]:  # fmt: skip
    """Returns rows per second of the same rows under each set of options."""
    if gates is None:
        design = designs.stratified(masks, len(model.components), sparsity=0.05, seed=0)
        gates = (~design).astype(np.float32)
    index = np.repeat(np.arange(len(gates)), len(requests))
    everything = requests * len(gates)
    engines = [Engine(model, option) for option in options]  # the first run creates their lanes
    runs = [lambda engine=engine: engine.run(everything, gates, index) for engine in engines]
    return [len(everything) / seconds for seconds in alternately(*runs, repeats=repeats)]


def prefix() -> list[Line]:
    """Compares 8-shot generations with and without a shared prefix.

    The preamble is at least ten times as long as the item. On `addition`, whose items and answers
    are shorter, the remaining time is spent on decoding with cached keys and values, which sharing
    does not reduce; it has no target.
    """
    model, lines = load("reference", device="cpu"), []
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    for task, target in (("rhyming", 5.0), ("addition", 0.0)):
        benchmark = benchmark_of(model, task)
        shots = "\n\n".join(f"{item.prompt} {item.target}" for item in benchmark.items[:8]) + "\n\n"
        preamble = len(tokenizer.encode(shots))
        requests = [
            Request(
                "generate_until",
                tuple(tokenizer.encode(shots + item.prompt)),
                stop=("\n",),
                max_new_tokens=8,
            )
            for item in benchmark.items[8:58]
        ]
        item = statistics.mean(len(request.context) - preamble for request in requests)
        assert preamble >= 10 * item
        off, on = _rows_per_second(
            model, requests, 4, [EngineOptions(share_prefixes=s) for s in ("off", "auto")]
        )
        name = f"shared prefix, {task} (8 shots of {preamble} tokens, items of {item:.1f})"
        target_text = f">= {target:g}" if target else "none set"
        lines.append(
            Line(
                name,
                f"{off:.0f} rows/s off",
                f"{on:.0f} rows/s",
                on / off,
                target_text,
                on / off >= target,
            )
        )
    return lines


def compaction() -> list[Line]:
    """Compares generations of 6 to 60 tokens, mostly short, with and without compaction."""
    from broca.engine.stop_rule import StopRule

    model = load("reference", device="cpu")
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.geometric(1 / 9, 400) + 5, 6, 60)
    lengths[::40] = 60
    requests = [
        Request("generate_until", prompt, stop=("\0" * int(length),), max_new_tokens=60)
        for prompt, length in zip(prompts(400, 12), lengths, strict=True)
    ]
    # random prompts have no answers: the length of the stop string decides where each ends
    original = StopRule.ended
    StopRule.ended = lambda _self, tokens, stop, _limit: len(tokens) >= len(stop[0])  # type: ignore[method-assign]
    try:
        rates = _rows_per_second(
            model,
            requests,
            1,
            [EngineOptions(compact=c, share_prefixes="off") for c in (False, True)],
        )
    finally:
        StopRule.ended = original  # type: ignore[method-assign]
    ratio = rates[1] / rates[0]
    name = f"compaction (outputs of {lengths.min()} to {lengths.max()} tokens)"
    return [
        Line(
            name, f"{rates[0]:.0f} rows/s off", f"{rates[1]:.0f} rows/s", ratio, ">= 2", ratio >= 2
        )
    ]


def sweep() -> list[Line]:
    """Compares all single ablations on multiple choice with and without reuse of lower layers."""
    lines = []
    for name, model in (
        ("reference", load("reference", device="cpu")),
        ("random, 16 layers", random_llama(layers=16, heads=8, width=128)),
    ):
        requests = [
            Request("loglikelihood", prompt, (choice,))
            for prompt in prompts(10, 30)
            for choice in (5, 6, 7, 8)
        ]
        count = len(model.components)
        masks = np.vstack([designs.intact(count), designs.singles(count)])
        gates = (~masks).astype(np.float32)
        off, on = _rows_per_second(
            model,
            requests,
            0,
            [EngineOptions(reuse_layers=s) for s in ("off", "auto")],
            repeats=3 * REPEATS,  # the expected ratio is close to the target
            gates=gates,
        )
        lines.append(
            Line(f"sweep of single heads, {name}", f"{len(requests) * len(gates) / off:.2f} s off",
                 f"{len(requests) * len(gates) / on:.2f} s", off / on, "<= 0.6 of the time",
                 off / on <= 0.6)
        )  # fmt: skip
    return lines


def memory() -> list[Line]:
    """Compares the peak memory of the engine and of transformers' forward pass on one batch.

    Bytes of tensors are counted, not the process's resident memory: glibc keeps what is freed in
    pieces, so that the resident peak of the same pass varies by a factor of 1.8 between processes.
    """
    model = random_llama(layers=8, heads=16, width=512, vocabulary=8000)
    rows, length = 64, 128
    contexts = prompts(rows, length)
    masks = designs.bernoulli(rows, len(model.components), sparsity=0.1, seed=0)
    requests = [Request("loglikelihood", prompt, (5,)) for prompt in contexts]
    engine = Engine(model, EngineOptions(token_budget=rows * length))

    def bare() -> None:
        with torch.inference_mode():
            model.model(input_ids=torch.tensor(contexts), use_cache=False, logits_to_keep=1)

    def gated() -> None:
        engine.run(requests, (~masks).astype(np.float32), np.arange(rows))

    bare_peak, gated_peak = _peak(bare) / 2**20, _peak(gated) / 2**20
    ratio = gated_peak / bare_peak
    return [
        Line("peak of tensors above the loaded model", f"{bare_peak:.0f} MiB transformers",
             f"{gated_peak:.0f} MiB", ratio, "<= 1.10", ratio <= 1.10)
    ]  # fmt: skip


def _peak(run: Callable[[], Any]) -> int:
    """Returns the most bytes of tensors that a run on the CPU holds at once."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    changes = sorted(
        (event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"
    )
    return max(accumulate(change for _, change in changes))


def growth() -> list[Line]:
    """Measures time against the numbers of heads, items and batch tokens; draws growth.png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    options = EngineOptions(share_prefixes="off", reuse_layers="off")
    series: dict[str, tuple[list[float], list[float]]] = {}
    requests = [Request("loglikelihood", prompt, (5,)) for prompt in prompts(200, 24)]
    heads_x, heads_y = [], []
    for layers, heads in ((6, 16), (16, 16), (16, 32), (16, 64)):
        model = random_llama(layers=layers, heads=heads, width=128)
        (rate,) = _rows_per_second(model, requests, 4, [options])
        heads_x.append(layers * heads), heads_y.append(1e3 / rate)
    series["heads: ms a row"] = heads_x, heads_y
    model = load("reference", device="cpu")
    items_x, items_y = [50, 100, 200, 400, 800], []
    for items in items_x:
        item_requests = [Request("loglikelihood", prompt, (5,)) for prompt in prompts(items, 24)]
        (rate,) = _rows_per_second(model, item_requests, 4, [options])
        items_y.append(4 * items / rate)
    series["items: s in all"] = items_x, items_y
    batch_x, batch_y = [256, 512, 1024, 2048, 4096, 8192, 16384], []
    for tokens in batch_x:
        (rate,) = _rows_per_second(
            model, requests, 4, [EngineOptions(token_budget=tokens, share_prefixes="off")]
        )
        batch_y.append(rate)
    series["tokens of a batch: rows/s"] = batch_x, batch_y
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 3.6))
    for axis, (name, (x, y)) in zip(axes, series.items(), strict=True):
        axis.plot(x, y, marker="o", color="#b42318")
        axis.set_xlabel(name.split(":")[0]), axis.set_ylabel(name.split(": ")[1])
        axis.set_ylim(bottom=0)
        axis.grid(color="#e4e7eb")
    axes[2].set_xscale("log", base=2)
    figure.tight_layout()
    figure.savefig(HERE / "growth.png", dpi=110)
    straight = float(np.corrcoef(items_x, items_y)[0, 1] ** 2)
    return [
        Line("time against items, 50 to 800", f"{items_y[0]:.2f} s", f"{items_y[-1]:.2f} s",
             straight, "R^2 >= 0.98 of a line", straight >= 0.98)
    ]  # fmt: skip


BENCHMARKS = {
    benchmark.__name__: benchmark
    for benchmark in (protocol, overhead, prefix, compaction, sweep, memory, growth)
}


def main() -> None:
    """Runs the named benchmarks, all by default, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md")
    parser.add_argument("--date", default=time.strftime("%Y-%m-%d"))
    arguments = parser.parse_args()
    names = arguments.names or list(BENCHMARKS)
    lines = []
    for name in names:
        for line in BENCHMARKS[name]():
            print(line, flush=True)
            lines.append(line)
    if arguments.write:
        write(lines, arguments.date)


def write(lines: list[Line], date: str, page: Path = HERE / "RESULTS.md") -> None:
    """Writes the section of RESULTS.md; the text around it must be checked by hand."""
    section = SECTION.format(
        date=date,
        machine=f"{os.cpu_count()} CPU cores ({platform.machine()}), "
        f"torch {torch.__version__.split('+')[0]}, {torch.get_num_threads()} threads",
        repeats=REPEATS,
        lines="\n".join(map(str, lines)),
    )
    write_section(page, section)


SECTION = """## Engine

`python benchmarks/engine.py --write`, {date}, {machine}. Medians of at least {repeats} runs that
take turns; the ratio is of the two columns before it.

| benchmark | without | with | ratio | target | reached |
|---|---|---|---|---|---|
{lines}

![How cost grows](growth.png)

"""

if __name__ == "__main__":
    main()
