"""Lanes: copies of the model side by side give the answers of one model."""

import numpy as np
import pytest
import torch

from broca.engine import Ablation, Engine, EngineOptions, donor_activations
from broca.errors import BadInput
from broca.tasks import Generation, Request


def work(count=90, masks=6, components=8, *, seed=0, singles=False):
    """Returns log-likelihoods and generations of several lengths under random or single masks."""
    rng = np.random.default_rng(seed)
    gates = (rng.random((masks, components)) > 0.3).astype(np.float32)
    if singles:
        gates = 1 - np.eye(components, dtype=np.float32)[-masks:]
    preamble = tuple(rng.integers(2, 258, 12).tolist())
    requests = []
    for number in range(count):
        question = tuple(rng.integers(2, 258, 3 + number % 7).tolist())
        context = (*preamble, *question) if number % 2 else question
        if number % 3:
            requests.append(Request("loglikelihood", context, question[:2]))
        else:
            requests.append(Request("generate_until", context, (), ("q",), 6))
    return requests, gates, rng.integers(0, masks, count)


def values(outputs):
    """Returns generations as texts and log-likelihoods as numbers."""
    return [output.text if isinstance(output, Generation) else output.value for output in outputs]


@pytest.mark.parametrize("lanes", [2, 3])
@pytest.mark.parametrize("singles", [False, True])
def test_lanes_answer_as_one(tiny, lanes, singles):
    """Several lanes give the answers of one lane, in the order of the requests."""
    requests, gates, index = work(singles=singles)
    single = Engine(tiny, EngineOptions(lanes=1)).run(requests, gates, index)
    engine = Engine(tiny, EngineOptions(lanes=lanes, token_budget=200))
    several = engine.run(requests, gates, index)
    assert len(engine._lanes.all) == lanes
    for expected, answer in zip(values(single), values(several), strict=True):
        assert answer == expected if isinstance(answer, str) else abs(answer - expected) < 1e-4


def test_donors_reach_the_modules_of_copies(tiny):
    """Mean ablation in two lanes equals mean ablation in one and differs from zero ablation."""
    requests, gates, index = work(seed=1)
    donors = donor_activations(
        tiny, [request.context for request in requests[:5]], Ablation("mean")
    )
    run = [
        Engine(tiny, EngineOptions(lanes=lanes), donors=donors).run(requests, gates, index)
        for lanes in (1, 2)
    ]
    zero = Engine(tiny, EngineOptions(lanes=1)).run(requests, gates, index)
    numbers = [
        [value for value in values(outputs) if not isinstance(value, str)] for outputs in run
    ]
    np.testing.assert_allclose(numbers[0], numbers[1], atol=1e-4)
    assert values(zero) != values(run[0])


def test_copies_share_the_weights_and_leave_no_hooks(tiny):
    """A copy shares the weights of the model; after a run no module of either has a hook."""
    requests, gates, index = work()
    engine = Engine(tiny, EngineOptions(lanes=2))
    engine.run(requests, gates, index)
    copy = engine._lanes.all[1].model
    assert copy.model is not tiny.model
    for weight, copied in zip(tiny.model.parameters(), copy.model.parameters(), strict=True):
        assert weight.data_ptr() == copied.data_ptr()
    for model in (tiny, copy):
        assert not any(module._forward_pre_hooks for module in model.model.modules())


def test_an_error_in_a_lane_reaches_the_caller_and_threads_are_as_before(tiny, monkeypatch):
    """An error in a copy's lane is raised to the caller, and torch's thread count is restored."""
    requests, gates, index = work()
    engine = Engine(tiny, EngineOptions(lanes=2))
    engine.run(requests, gates, index)
    before = torch.get_num_threads()

    def fails(*_arguments):
        raise RuntimeError("a lane broke down")

    monkeypatch.setattr(engine._lanes.all[1].reader, "run", fails)
    with pytest.raises(RuntimeError, match="a lane broke down"):
        engine.run(requests, gates, index)
    assert torch.get_num_threads() == before


def test_little_work_and_one_thread_need_one_lane(tiny):
    """An engine has as many lanes as torch has threads, but uses one lane for a few requests."""
    requests, gates, index = work(count=20)
    engine = Engine(tiny, EngineOptions(lanes=2))
    engine.run(requests, gates, index)
    assert len(engine._lanes.all) == 1
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert Engine(tiny)._lanes._number == 1
        torch.set_num_threads(2)
        assert Engine(tiny)._lanes._number == 2
    finally:
        torch.set_num_threads(threads)
    with pytest.raises(BadInput, match="`lanes` must be at least 1"):
        EngineOptions(lanes=0)
