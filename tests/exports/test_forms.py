"""The base of an export, and mean outputs over a run's items."""

import json
from dataclasses import replace

import pytest
import torch
from claims import claimed
from results.samples import make_result

from broca.engine import Ablation, donor_activations
from broca.errors import BadInput
from broca.exports.forms import Origin, mean_outputs
from broca.exports.request import ExportRequest
from broca.models import load
from broca.options import RunOptions
from broca.results.base import AblationInfo
from broca.runs.session import open_run


def test_the_base_is_loaded_in_its_number_format():
    """A shipped base is loaded from its folder in the number format of the model."""
    model = load("reference-small", device="cpu", dtype="bfloat16")
    origin = Origin.of(model)
    assert (origin.dtype, origin.revision) == ("bfloat16", None)
    assert origin.load().dtype == torch.bfloat16


def test_means_are_those_of_the_runs_locate_items(tiny, tmp_path):
    """Means are taken over the locate items of the run's task and seed, and need a run."""
    task = tmp_path / "own.jsonl"
    lines = ({"prompt": f"{n} and {n} =", "answer": " x"} for n in range(24))
    task.write_text("\n".join(map(json.dumps, lines)) + "\n")
    run = replace(make_result(), task=str(task), ablation=AblationInfo("mean", 0.0))
    request = ExportRequest.of(tiny, run, "weights", None)
    with open_run(tiny, RunOptions(), warns=False) as opened:
        means = mean_outputs(opened, ("L0H1",), request, 4)
        with pytest.raises(BadInput, match="zero ablation needs the items of a run"):
            mean_outputs(opened, ("L0H1",), ExportRequest.of(tiny, "L0H1", "weights", None), 4)
    tasks = claimed(tiny, str(task), others=[], items=4, seed=run.search.seed, searched="task")
    places = tasks.places["locate"][tasks.task]
    assert len(places) == 4
    tokens = [tokens for _, tokens in tasks.scored_tokens(places.tolist())]
    points = tiny.gated_parts(("L0H1",)).points
    expected = donor_activations(tiny, tokens, Ablation("mean"), points=points)
    assert set(means) == set(expected)
    for point, output in expected.items():
        assert torch.equal(torch.as_tensor(means[point]), torch.as_tensor(output))
