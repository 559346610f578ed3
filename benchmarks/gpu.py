"""Speed at the sizes of real models, with random weights: `python benchmarks/gpu.py`.

Nothing is downloaded: every shape is built on the device in bfloat16 (float32 on a CPU), loaded by
broca and self-tested. It is timed on multiple choice (items of 4 x 120 tokens), on generation after
a prefix of eight shots (1,000 tokens, then 128 new ones) and on margins with their gradients.
For comparison, plain transformers runs the same rows without masks, and the paper's protocol runs
one mask a pass at batch size 1. The rate of the device is that of a product of two matrices. Shapes
that exceed the memory, or the time that is left, are named and left out.

`--device cpu --shape 100m` runs the same on a CPU; `--shape tiny` takes seconds. On a
shared CPU, `--processor-time` measures the processor time of one thread instead of the clock's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from prepared import prepare

prepare()
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
import torch
from tiny import tiny_tokenizer

import broca
from broca.engine import Engine, EngineOptions, Job
from broca.models import GatedModel, self_test
from broca.runs.speed import peak_memory
from broca.tasks import Request
from broca.tasks.items import Margin

MINUTES = 8.0
ABLATED = 0.05
"""Share of the heads that a mask ablates."""


@dataclass(frozen=True)
class Shape:
    """The dimensions of a real model, and the workload that is measured.

    Attributes:
        config: Class of the configuration in transformers.
        sizes: Its fields.
        on: Kind of device on which it is measured by default.
        items: Multiple-choice items.
        prefix: Tokens of the eight shots.
        new: Tokens that are generated.
        rows: Rows of generation, which share the prefix.
    """

    config: str
    sizes: dict[str, Any]
    on: str = "cuda"
    items: int = 256
    prefix: int = 1000
    new: int = 128
    rows: int = 64


LONG = {"max_position_embeddings": 4096}
SHAPES = {
    "tiny": Shape(
        "LlamaConfig",
        {
            "vocab_size": 300, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
        },
        on="", items=4, prefix=40, new=4, rows=4,
    ),
    "100m": Shape(
        "GPT2Config", {"n_positions": 2048}, on="cpu", items=6, prefix=200, new=16, rows=4
    ),
    "360m": Shape(
        "LlamaConfig",
        {
            "vocab_size": 49152, "hidden_size": 960, "intermediate_size": 2560,
            "num_hidden_layers": 32, "num_attention_heads": 15, "num_key_value_heads": 5,
            "tie_word_embeddings": True, **LONG,
        },
        on="cpu", items=2, prefix=200, new=16, rows=4,
    ),
    "llama-3.2-1b": Shape(
        "LlamaConfig",
        {
            "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
            "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
            "tie_word_embeddings": True, **LONG,
        },
        items=512,
    ),
    "llama-3.1-8b": Shape(
        "LlamaConfig",
        {
            "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, **LONG,
        },
    ),
    "qwen3-14b": Shape(
        "Qwen3Config",
        {
            "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 17408,
            "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 8,
            "head_dim": 128, **LONG,
        },
        items=128,
    ),
    "gpt-oss-20b": Shape(
        "GptOssConfig", {"num_hidden_layers": 24, "num_local_experts": 32}, items=128
    ),
}  # fmt: skip


class Figures(dict[str, float]):
    """Measured numbers by name, which are printed when they are known: a killed run keeps them."""

    def __setitem__(self, name: str, figure: float) -> None:
        super().__setitem__(name, figure)
        print(f"{name}: {figure:.4g}", file=sys.stderr, flush=True)


@dataclass
class Report:
    """The measurements of one shape; rates are per second, times in seconds.

    Attributes:
        shape: Name of the shape.
        parameters: Parameters of the model.
        device: Name of the device.
        figures: Measured numbers by name.
        notes: Parts that were left out, with reasons.
    """

    shape: str
    parameters: int = 0
    device: str = ""
    figures: Figures = field(default_factory=Figures)
    notes: list[str] = field(default_factory=list)


def random_model(shape: Shape, device: str) -> Any:
    """Returns a model of random weights, built on the device."""
    import transformers

    config = getattr(transformers, shape.config)(
        **shape.sizes, bos_token_id=0, eos_token_id=1, pad_token_id=1
    )
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    torch.manual_seed(0)
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


clock: Callable[[], float] = time.perf_counter
"""The clock of all times; `--processor-time` replaces it by the processor's."""


def synchronized(device: str) -> float:
    """Waits until the device has finished its work, and returns the time."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return clock()


def seconds_of(run: Callable[[], Any], device: str, *, repeats: int = 2) -> float:
    """Returns the shortest time that a function takes, after a first call to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = synchronized(device)
        run()
        times.append(synchronized(device) - start)
    return min(times)


def product_rate(device: str) -> float:
    """Returns the operations per second of a matrix product in the models' number format."""
    size = 1024 if device == "cpu" else 8192
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    matrix = torch.randn(size, size, device=device, dtype=dtype)
    seconds = seconds_of(lambda: [matrix @ matrix for _ in range(5)], device) / 5
    return 2 * size**3 / seconds


def operations_of(model: Any, *, read: int, predicted: int) -> float:
    """Returns the operations of a forward pass: two for each weight that a token uses.

    Embeddings count nothing, the head counts for predicted tokens only, and routed experts count by
    the share that a token uses. Attention scores, which are small at 120 tokens, are left out.
    """
    config, body = model.config, 0.0
    head = model.get_output_embeddings().weight
    lookups = (module for module in model.modules() if isinstance(module, torch.nn.Embedding))
    embeddings = {id(head), *(id(module.weight) for module in lookups)}
    share = getattr(config, "num_experts_per_tok", 1) / getattr(config, "num_local_experts", 1)
    for name, parameter in model.named_parameters():
        if id(parameter) not in embeddings:
            body += parameter.numel() * (share if ".experts." in name else 1)
    return 2 * (body * read + head.numel() * predicted)


def random_tokens(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    """Returns tokens that every shape has and that do not end a generation."""
    return tuple(int(token) for token in rng.integers(2, 256, count))


def masks(model: GatedModel, count: int, rng: np.random.Generator) -> np.ndarray:
    """Returns gates with a few heads ablated, drawn for every row, `(rows, components)`."""
    return (rng.random((count, len(model.components))) >= ABLATED).astype(np.float32)


def choice_items(shape: Shape, rng: np.random.Generator) -> list[list[Request]]:
    """Returns items of four choices of 120 tokens, which share a context of 100 tokens."""
    items = []
    for _ in range(shape.items):
        context = random_tokens(rng, 100)
        items.append([Request("loglikelihood", context, random_tokens(rng, 20)) for _ in range(4)])
    return items


def multiple_choice(model: GatedModel, shape: Shape, device: str, report: Report) -> None:
    """Times rows with a different mask in every row, against the bare forward pass.

    Both read the same tokens: broca shares no prefix in the first figure.
    """
    rng = np.random.default_rng(0)
    items = choice_items(shape, rng)
    gates = masks(model, len(items), rng)
    requests = [request for item in items for request in item]
    index = np.repeat(np.arange(len(items)), 4)
    engine = Engine(model, EngineOptions(share_prefixes="off", reuse_layers="off", lanes=1))
    batch = max(1, engine.token_budget // 119)
    tokens = torch.tensor(
        [[*request.context, *request.continuation][:-1] for request in requests], device=device
    )
    attention = torch.ones_like(tokens)

    def bare() -> None:
        with model.in_use(), torch.inference_mode():
            for start in range(0, len(tokens), batch):
                part = slice(start, start + batch)
                logits, _ = model.forward(tokens[part], attention[part], keep=20)
                likely = logits.float().log_softmax(-1)
                likely.amax(-1).cpu()

    plain = seconds_of(bare, device)
    masked = seconds_of(lambda: engine.run(requests, gates, index), device)
    sharing = Engine(model)
    shared = seconds_of(lambda: sharing.run(requests, gates, index), device)
    operations = operations_of(model.model, read=tokens.numel(), predicted=20 * len(tokens))
    for name, figure in {
        "choice: rows/s, bare forward": len(items) / plain,
        "choice: rows/s, masks": len(items) / masked,
        "choice: share of the bare forward": plain / masked,
        "choice: rows/s, masks, shared contexts": len(items) / shared,
        "choice: share of the matrix rate": operations / masked / report.figures["matrix rate"],
    }.items():
        report.figures[name] = figure


def generation(model: GatedModel, shape: Shape, device: str, report: Report) -> None:
    """Times generation after a shared prefix, against `generate` and the paper's protocol."""
    rng = np.random.default_rng(1)
    prefix = random_tokens(rng, shape.prefix)
    prompts = [(*prefix, *random_tokens(rng, 30)) for _ in range(shape.rows)]
    requests = [Request("generate_until", prompt, max_new_tokens=shape.new) for prompt in prompts]
    gates = masks(model, shape.rows, rng)
    equal_gates = np.repeat(gates[:1], shape.rows, axis=0)
    each_row, first_row = np.arange(shape.rows), np.zeros(shape.rows, dtype=np.intp)
    engine = Engine(model)

    def plain(rows: int) -> Callable[[], Any]:
        tokens = torch.tensor(prompts[:rows], device=device)

        def run() -> None:
            with model.in_use(), torch.inference_mode():
                model.model.generate(
                    input_ids=tokens, attention_mask=torch.ones_like(tokens), do_sample=False,
                    max_new_tokens=shape.new, min_new_tokens=shape.new, pad_token_id=1,
                )  # fmt: skip

        return run

    def one_mask_a_pass() -> None:
        with model.ablated([model.components.names[0]]):
            plain(1)()

    def rate(run: Callable[[], Any], rows: int) -> float:
        return rows / seconds_of(run, device, repeats=1)

    for name, run, rows in (
        ("transformers", plain(shape.rows), shape.rows),
        ("a mask a row", lambda: engine.run(requests, gates, each_row), shape.rows),
        ("one mask", lambda: engine.run(requests, equal_gates, first_row), shape.rows),
        ("the paper's protocol", one_mask_a_pass, 1),
    ):  # fmt: skip
        report.figures[f"generation: rows/s, {name}"] = rate(run, rows)


def gradients(model: GatedModel, shape: Shape, device: str, report: Report) -> None:
    """Times margins with their gradients with respect to every gate."""
    rng = np.random.default_rng(2)
    items = choice_items(shape, rng)[: max(1, shape.items // 4)]
    gates = masks(model, len(items), rng)
    margins = tuple(Margin(tuple(item), 0) for item in items)
    if not model.differentiable:
        report.notes.append("its kernels know no way back: no gradients")
        return
    engine, index = Engine(model), np.arange(len(items))
    job = Job(0, gates, index, np.zeros_like(index), margins=margins)
    seconds = seconds_of(lambda: engine.answer(job), device, repeats=1)
    report.figures["gradients: rows/s"] = len(items) / seconds


def loaded_from_files(model: Any, device: str, report: Report) -> None:
    """Times the loading of the weights from files that the system has in memory."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tiny_tokenizer().save_pretrained(folder)
        start = synchronized(device)
        broca.load(folder, device=device, dtype="stored")
        report.figures["load: from files, with self-test"] = synchronized(device) - start


@contextmanager
def timed(report: Report, name: str, device: str) -> Iterator[None]:
    """Records the time of a part."""
    start = synchronized(device)
    yield
    report.figures[name] = synchronized(device) - start


def measured(name: str, device: str, *, parts: tuple[str, ...], items: int | None = None) -> Report:
    """Measures one shape.

    Raises:
        torch.OutOfMemoryError: The shape does not fit the memory.
    """
    shape, report = SHAPES[name], Report(name)
    shape = shape if items is None else replace(shape, items=items)
    report.device = torch.cuda.get_device_name() if device.startswith("cuda") else "CPU"
    report.figures["matrix rate"] = product_rate(device)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    with timed(report, "load: random weights made", device):
        weights = random_model(shape, device)
    report.parameters = sum(parameter.numel() for parameter in weights.parameters())
    with timed(report, "load: structure and self-test", device):
        model = broca.load(weights, tiny_tokenizer())
    with timed(report, "load: self-test alone", device):
        self_test(model)
    with timed(report, "load: digest of the weights", device):
        _ = model.fingerprint
    if "files" in parts and report.parameters < 2e9:
        loaded_from_files(weights, device, report)
    for part, run in (
        ("choice", multiple_choice), ("generation", generation), ("gradients", gradients),
    ):  # fmt: skip
        if part in parts:
            run(model, shape, device, report)
    report.figures["peak memory, GiB"] = peak_memory(model) / 2**30
    return report


def two_processes(name: str, device: str, alone: float) -> dict[str, float]:
    """Returns the rows per second of two processes on one device, together."""
    command = [
        sys.executable, __file__, "--shape", name, "--device", device, "--parts", "choice",
        "--json",
    ]  # fmt: skip
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    rates = []
    for process in running:
        out, _ = process.communicate()
        if process.returncode == 0:
            rates.append(json.loads(out)[0]["figures"]["choice: rows/s, masks"])
    if len(rates) < 2:
        return {}
    return {"two processes: rows/s together": sum(rates), "two processes: gain": sum(rates) / alone}


def table(reports: list[Report]) -> str:
    """Returns the reports as a table in Markdown with a column for each shape."""
    names = list(dict.fromkeys(name for report in reports for name in report.figures))
    head = [f"{report.shape} ({report.parameters / 1e6:,.0f} M)" for report in reports]
    lines = [f"| | {' | '.join(head)} |", "|---|" + "---|" * len(reports)]
    for name in names:
        cells = [
            f"{report.figures[name]:.3g}" if name in report.figures else "" for report in reports
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [f"\n{report.shape}: {note}." for report in reports for note in report.notes]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> list[Report]:
    """Measures the shapes of this device and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--shape", action="append", choices=SHAPES, help="default: the device's own"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="begin no shape after this")
    parser.add_argument("--parts", default="files,choice,generation,gradients,two")
    parser.add_argument("--items", type=int, help="multiple-choice items; default: the shape's")
    parser.add_argument(
        "--processor-time", action="store_true", help="one thread, timed by the processor"
    )
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    arguments = parser.parse_args(words)
    parts = tuple(arguments.parts.split(","))
    device: str = arguments.device
    kind = "cuda" if device.startswith("cuda") else device
    names = arguments.shape or [name for name, shape in SHAPES.items() if shape.on == kind]
    if arguments.processor_time:
        global clock
        clock = time.process_time
        torch.set_num_threads(1)
    start, reports = time.perf_counter(), []
    for name in names:
        if time.perf_counter() - start > 60 * arguments.minutes:
            reports.append(Report(name, notes=[f"not begun after {arguments.minutes:g} minutes"]))
            continue
        try:
            report = measured(name, device, parts=parts, items=arguments.items)
        except torch.OutOfMemoryError:
            report = Report(name, notes=["does not fit the memory of the device"])
        if kind == "cuda":
            torch.cuda.empty_cache()
            alone = report.figures.get("choice: rows/s, masks")
            if "two" in parts and alone and name == names[0]:
                report.figures |= two_processes(name, device, alone)
        reports.append(report)
        if not arguments.json:
            print(
                f"{name}: {time.perf_counter() - start:.0f} s so far", file=sys.stderr, flush=True
            )
    print(json.dumps(list(map(asdict, reports))) if arguments.json else table(reports))
    return reports


if __name__ == "__main__":
    main()
