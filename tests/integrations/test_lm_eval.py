"""broca as a model of lm-eval: equal to `hf` on a model zeroed by hand, and caches kept apart."""

from importlib.metadata import entry_points

import pytest
from harness_tasks import write_tasks_and_model
from independent import zeroed_by_hand
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tiny import tiny_llama, tiny_tokenizer

from broca.errors import BadInput, UnknownName
from broca.integrations.lm_eval import BrocaLM
from broca.tasks import shipped_folder

ABLATED = ((0, 1), (0, 3), (1, 2))
NAMES = "L0H1+L0H3+L1H2"
TASKS = ("generation", "choice", "rolling", "last_word")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tasks of every kind and a tiny model."""
    return write_tasks_and_model(tmp_path_factory.mktemp("lm"))


@pytest.fixture(scope="module")
def manager(folder):
    """The tasks of the folder, without lm-eval's own."""
    return TaskManager(include_path=str(folder), include_defaults=False)


def evaluated(model, manager, **options):
    """Runs lm-eval on all tasks."""
    return simple_evaluate(
        model, tasks=list(TASKS), task_manager=manager, bootstrap_iters=0, limit=8, **options
    )


def broca_results(folder, manager, *, ablate=NAMES, scale=0.0, **options):
    """Runs lm-eval with broca by the model's name, as lm-eval's command line does."""
    arguments = {"pretrained": str(folder / "model"), "ablate": ablate, "scale": scale}
    return evaluated("broca", manager, model_args=arguments, **options)


def numbers(results):
    """Returns every score of every task."""
    return {
        (task, name): value
        for task, scores in results["results"].items()
        for name, value in scores.items()
        if isinstance(value, float)
    }


def texts(results):
    """Returns every generation."""
    return [sample["resps"] for sample in results["samples"]["generation"]]


@pytest.mark.parametrize("scale", [0.0, pytest.param(0.5, marks=pytest.mark.long)])
def test_equals_hf_on_a_model_zeroed_by_hand(folder, manager, scale):
    """Scores and texts equal `hf` on scaled weights: generation, choices, rolling, likelihoods."""
    model = zeroed_by_hand(tiny_llama(), ABLATED, scale=scale)
    hf_results = evaluated(HFLM(pretrained=model, tokenizer=tiny_tokenizer()), manager)
    results = broca_results(folder, manager, scale=scale)
    assert numbers(results) == pytest.approx(numbers(hf_results), rel=1e-5)
    assert texts(results) == texts(hf_results)
    assert texts(broca_results(folder, manager, ablate="")) != texts(results)
    assert results["config"]["ablated"] == NAMES.split("+")


@pytest.mark.long
def test_different_ablations_never_share_an_answer(folder, manager, tmp_path, monkeypatch):
    """Ablations never share cached answers, and an equal ablation computes none again."""
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path / "requests"))
    cached = {"use_cache": str(tmp_path / "answers"), "cache_requests": True}
    ablations = ({"ablate": ""}, {"ablate": "L0H1"}, {}, {"scale": 0.5})
    plain = [broca_results(folder, manager, **ablation) for ablation in ablations]
    assert len({tuple(numbers(results).values()) for results in plain}) == len(ablations)

    def results_with_cache():
        return [broca_results(folder, manager, **ablation, **cached) for ablation in ablations]

    def fail(*_args):
        raise AssertionError("an answer was computed again")

    first = results_with_cache()
    monkeypatch.setattr("broca.integrations.lm_eval.Engine.run", fail)
    for results in (first, results_with_cache()):
        assert list(map(numbers, results)) == list(map(numbers, plain))
        assert list(map(texts, results)) == list(map(texts, plain))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, BadInput, "pretrained=MODEL is missing"),
        ({"pretrained": "reference", "ablat": "L0H1"}, BadInput, "did you mean 'ablate'"),
        ({"pretrained": "./nowhere"}, UnknownName, "does not exist"),
        ({"pretrained": "reference", "ablate": "L9H0"}, UnknownName, "no component 'L9H0'"),
        ({"pretrained": "reference", "scale": 1}, BadInput, "ablates nothing"),
        ({"pretrained": "reference", "scale": 0.5}, BadInput, "name some in ablate"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    """A bad argument is refused in one line that names it."""
    with pytest.raises(error, match=message):
        BrocaLM(**arguments)


def test_entry_point_names_the_class():
    """The entry point by which newer releases of lm-eval find the model names its class."""
    (found,) = entry_points(group="lm_eval.models", name="broca")
    assert found.load() is BrocaLM


def test_shipped_tasks_are_named_by_their_folder():
    """The folder that the documentation gives as `--include_path` holds the shipped tasks."""
    names = TaskManager(include_path=str(shipped_folder()), include_defaults=False).all_subtasks
    assert "addition" in names
