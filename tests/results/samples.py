"""A small finished result of every kind."""

from dataclasses import replace
from functools import partial

from simulated import SimulatedTask, toy_verification

from broca.engine import Ablation
from broca.results import atlas, comparison, neurons, runs
from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.results.checks import Check, Diagnosis, MachineCheck, NotCovered, Scan
from broca.results.claim import Claim, Replica, Replication
from broca.results.export import BaseModel, Export, HeldOut, ReloadCheck, ScoreCheck
from broca.results.localization import Cost, Localization, RankedComponent, Refit, SearchInfo
from broca.results.stress_test import Necessity, Probe, Reversal, Shift, StressTest
from broca.results.tasks import PaperTask, TaskDescription, TaskList
from broca.verification import Trial, plain_verification

MODEL = ModelInfo("toy", "abc")
HALF = Interval(0.5, 0.25, 0.75)
ERASED = neurons.Erased("cnl", "adding", 4, HALF, HALF, HALF, HALF, (0.25, 0.5), HALF, HALF)


def make_result(*, after=None, **changes):
    """Returns a small finished result; `after` are the scores without its selection."""
    values = {
        "broca": "0.1.0",
        "model": ModelInfo("toy", "abc123", "LlamaForCausalLM", 2, 3, 1, "float32"),
        "task": "adding", "others": ("sorting",),
        "search": SearchInfo("cs-stratified", {"masks": 200}, 0),
        "cost": Cost(20100, 800, 123456, 9.87),
        "baseline": {"adding": 0.975, "sorting": 1.0},
        "ranking": (
            RankedComponent("L1H2", 1, 2, -0.42),
            RankedComponent("L0H0", 0, 0, -0.11, (-0.2, -0.02), 0.93),
            *(RankedComponent(f"L{i // 3}H{i % 3}", i // 3, i % 3, 0.0) for i in (1, 2, 3, 4)),
        ),
        "selected": ("L1H2", "L0H0"), "abstained": False, "reason": "",
        "notes": ("three prompts were cut",),
    }  # fmt: skip
    values.update(changes)
    scores = verified(values, after or {"adding": 0.015, "sorting": 0.99})
    return Localization(**{"verification": scores, **values})


def verified(values, after):
    """Returns the verification of a localization with these scores and without statistics."""
    before = values["baseline"]
    benchmarks = dict.fromkeys(before, SimulatedTask("exact_match"))
    places = dict.fromkeys(before, range(300))
    trial = Trial(values["task"], (), values["others"], benchmarks, places, [None] * 300)
    plain = plain_verification(
        values["model"], values["selected"], Ablation(), trial, before, after
    )
    return replace(plain, rows=values["cost"].verification_rows, broca=values["broca"])


def make_atlas():
    """Returns a small finished atlas of two tasks and three heads."""
    lost = {"adding": -0.42, "sorting": -0.3}
    universal = atlas.UniversalComponent("L0H2", -0.42, ("adding",), lost)
    selected = atlas.SelectedComponent("L0H0", -0.11, (-0.2, -0.02), -0.11, (-0.2, -0.02))
    return atlas.Atlas(
        model=ModelInfo("toy", "abc123", "LlamaForCausalLM", 1, 3, 1, "float32"),
        tasks=(
            atlas.AtlasTask("adding", "sums", "exact_match", 0.975, 40, False, -0.31, 0.52),
            atlas.AtlasTask("sorting", "order", "acc", 0.251, 40, True, -0.01, -0.02),
        ),
        components=("L0H2", "L0H0", "L0H1"),
        effects=((-0.42, -0.11, 0.01), (-0.3, 0.0, 0.02)),
        low=((-0.5, -0.2, -0.1), (-0.4, -0.1, -0.1)),
        high=((-0.34, -0.02, 0.12), (-0.2, 0.1, 0.14)),
        universal=(universal,),
        selections=(
            atlas.Selection("adding", (), (selected,), ""),
            atlas.Selection("sorting", ("adding",), (), "the intact model cannot do the task"),
        ),
        clusters=(atlas.Cluster(("L0H2", "L0H0"), {"adding": -0.27, "sorting": -0.15}),),
        task_clusters=(("adding",),),
        response="probability", kinds="heads", ablation=AblationInfo("zero", 0.0), masks=660,
        share=0.2, least=0.05, k=5, resamples=200, shrunk=False, seed=0,
        cost=atlas.AtlasCost(1600, 80, 123456, 9.87, 1680),
        notes=("three prompts were cut",), broca="0.1.0",
    )  # fmt: skip


def around(values, half):
    """Returns values with the ends of their intervals."""
    return tuple(tuple(value + change for value in values) for change in (0.0, -half, half))


def make_comparison(models=("base", "tuned")):
    """Returns a comparison of two by two components, one of which changed in all later models."""
    shifts = [0.1 * number for number in range(len(models))]
    effects = [
        comparison.TaskEffects(label, "adding", *around((-0.4 + shift, 0.0, 0.05, -0.1), 0.02))
        for label, shift in zip(models, shifts, strict=True)
    ]
    differences = [
        comparison.TaskDifferences(
            label, "adding", *around((shift, 0.0, 0.0, 0.0), 0.03), (0.001, 0.9, 0.8, 0.7),
            (0.004, 0.9, 0.9, 0.9), ("L0H0",),
        )
        for label, shift in zip(models[1:], shifts[1:], strict=True)
    ]  # fmt: skip
    info = partial(ModelInfo, fingerprint="abc", layers=2, heads=2)
    drop = Interval(0.3, 0.2, 0.4)
    return comparison.Comparison(
        models=tuple(comparison.ComparedModel(label, info(label)) for label in models),
        tasks=("adding",), components=("L0H0", "L0H1", "L1H0", "L1H1"),
        ablation=AblationInfo("zero", 0.0), response="probability", seed=3, level=0.05, rows=1000,
        items={"adding": 40}, report_items={"adding": 80}, mask_size=1,
        effects=tuple(effects), differences=tuple(differences),
        selections=(
            comparison.ComparedSelection("base, adding", models[0], "adding", ("L0H0", "L1H1")),
        ),
        scores=(
            comparison.SelectionScore(models[0], "adding", None, 0.9),
            comparison.SelectionScore(models[0], "adding", "base, adding", 0.6, drop),
        ),
        carries=(
            comparison.Carry("base, adding", models[1], "adding", drop, None, None, 0.001, "yes"),
        ),
        notes=("a note",),
    )  # fmt: skip


def make_stress():
    """Returns a small stress test."""
    interval = Interval(0.5, 0.4, 0.6)
    return StressTest(
        model=ModelInfo("toy", "abc"), family="letters", heads=("L0H1",), seed=0, pairs=48,
        necessity=(Necessity("zero", interval, {"sums": 0.1}, 0.4, (0.0, 0.1), 1),),
        probe=Probe(0.9, 0.8, 0.5, 0.5, 0.5, 96),
        reversals=(Reversal("the last token", interval),),
        shifts=(
            Shift("same template", interval, interval, None),
            Shift("noise", interval, None, interval),
        ),
        positive_control=interval, verdict="transfers", text="it does",
        notes=("a note",),
    )  # fmt: skip


def make_neurons():
    """Returns a set of two neurons."""
    located = tuple(neurons.LocatedNeuron(f"L0N{n}", 0, n, 1.0 - n / 4, 3.0) for n in (1, 2))
    return neurons.NeuronSet(
        model=MODEL, task="adding", capability="sums", method="cnl", settings={}, items=4,
        probability=0.5, residual=None, selected=located, by_layer={"0": 2, "1": 0},
        share_of_neurons=0.1, share_of_parameters=0.05,
    )  # fmt: skip


def make_erasure(*questions):
    """Returns an erasure measured on some tasks, by default on two."""
    lines = tuple(replace(ERASED, questions=name) for name in questions or ("adding", "sorting"))
    return neurons.Erasure(model=MODEL, settings={}, result=lines)


def make_refit():
    """Returns a refit of the small result."""
    run = make_result()
    return Refit(
        task=run.task, method="cs-stratified", recovery="ridge", response="accuracy", rows=900,
        masks=90, ranking=run.ranking, selected=run.selected, reason="", additivity=None,
    )  # fmt: skip


def make_estimate():
    """Returns an estimate of two methods, one of which can run."""
    methods = (
        runs.MethodCost("one-shot", 970, 9700, 4.0, "accuracy"),
        runs.MethodCost("focus", 0, 0, 0.0, "", "too few"),
    )
    return runs.CostEstimate(
        model=MODEL, task="adding", items=10, components=96, timed_rows=64,
        tokens_per_second={"accuracy": 100.0}, memory_bytes=1, methods=methods,
    )  # fmt: skip


def make_export(*, form="adapter", scale=0.0, base=None):
    """Returns a small export with every optional part."""
    verification = toy_verification()
    held_out = HeldOut(verification.task, verification.verdict, verification.drops)
    return Export(
        form=form,
        model=ModelInfo("toy", "abc", architecture="ToyForCausalLM", layers=2, heads=4, kv_heads=2),
        base=base or BaseModel("toy", None, "float32"),
        components=("L1H2", "L0H0"), ablation=AblationInfo("zero", scale), held_out=held_out,
        files={"adapter_model.safetensors": 1184, "adapter_config.json": 400},
        reloaded=ReloadCheck({"peft": "0.21.2"}, 32, 12, 1e-6, 1e-4, 31),
        scored=ScoreCheck("adding", "acc", 40, 0.25, 0.25),
        command="broca.export('toy', 'FOLDER', heads='L1H2+L0H0', kind='adapter', scale=0)",
    )  # fmt: skip


def make_reproduction():
    """Returns a reproduction whose second row has a column that the first lacks."""
    rows = ({"model": "m", "drop": 0.5}, {"model": "m", "drop": 0.25, "published": 0.25})
    return runs.Reproduction("table2", ("m",), rows, {"k": 5}, ("a note",), "what heads cost")


def make_scan():
    """Returns a scan of a model of two heads and an MLP block, one of whose layers has no heads."""
    return Scan(
        model="toy", description="2 heads in 2 layers", architecture="Toy", fingerprint="abc",
        dtype="float32", layers=2, kinds="heads+mlp", heads=2, kv_heads=2,
        components=("L0H0", "L0H1", "L0M"), norms_across_heads=(),
        gate_points=("layers.0.o_proj",),
        not_covered=(NotCovered(1, "layers.1", "it has no attention"),),
        without_mlp_block=((1, "layers.1"),),
        self_test=(Check("gates of one", True, "0 bits", 0.1),),
        proved_tokens=64, sharing=(Check("prefixes", False, "0.2", 0.1),),
    )  # fmt: skip


def make_list():
    """Returns a list with a task of the package, a group of a folder and a task of the paper."""
    return TaskList(
        shipped=("addition",), instruct=(), included=(), included_groups=("all",),
        paper=(PaperTask("boolq", "acc", "general", "aps/super_glue"),),
        groups={"general": ("boolq",)},
    )  # fmt: skip


def make_description():
    """Returns the description of a task of two items."""
    return TaskDescription(
        name="addition", tasks=("addition",), request_kind="generate_until", items=2,
        metric="exact_match", metrics=("exact_match",), chance=0.0, requests=2, prompt_tokens=9,
        cut_items=0, notes=(), first_prompt="1 + 1 =", first_target=" 2",
    )  # fmt: skip


def make_diagnosis(state="missing"):
    """Returns a diagnosis of two checks, the second in the given state."""
    return Diagnosis(
        checks=(MachineCheck("torch", "ok", "2.13"), MachineCheck("gates", state, "none", "mend"))
    )


def make_contents():
    """Returns contents of two runs, of which one has ended."""
    listed = tuple(
        runs.JournalRun(
            id=number, digest="ab", settings={"task": "sorting", "method": "greedy", "seed": 3},
            search={}, components=9, items=4, process="1", finished=finished, rows=1000, tokens=50,
        )
        for number, finished in ((1, "2026-01-01T00:00:00+00:00"), (2, None))
    )  # fmt: skip
    condition = runs.JournalCondition(
        weights="w", dtype="float32", ablation="zero", scale=0.0, response="score", rows=2000
    )
    return runs.JournalContents(
        counts={"rows": 2000, "masks": 7}, vectors={}, conditions=(condition,), runs=listed
    )


def make_claim():
    """Returns the claim of a verified run of one task's heads."""
    verification = toy_verification()
    return Claim.of(make_result(verification=verification, selected=verification.heads))


def make_replication():
    """Returns a replication of a claim that held on fresh items, not in other words."""
    claim = make_claim()
    fresh = Replica("fresh items", "adding", "zero", 1, 80, HALF, HALF, "specific", held=True)
    words = Replica("other words", "plus", "zero", 1, 80, HALF, HALF, held=False, why="it may")
    return Replication(claim=claim, model=claim.model, replicas=(fresh, words), notes=("a note",))


WITH_FIGURES = (
    make_result, toy_verification, make_atlas, make_stress, make_neurons, make_refit,
    make_comparison,
)  # fmt: skip
WITH_PAGES = (*WITH_FIGURES, make_erasure, make_replication)
OTHERS = (
    make_estimate, make_export, make_reproduction, make_scan, make_list, make_description,
    make_diagnosis, make_contents, make_claim,
)  # fmt: skip
"""Functions that make results of the kinds without a figure and a page."""
