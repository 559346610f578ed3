"""All tables and figures once, on a model of random weights and on a shipped one."""

from __future__ import annotations

import pytest
from studies.paper.own_answers import TASKS, local_data, own_labels

from broca.models import GatedModel
from broca.options import RunOptions, SearchOptions
from broca.runs.setup import open_session
from broca.studies.paper import Study, StudySettings, reproduce
from broca.tasks import Catalog
from broca.testing import tiny_llama, tiny_tokenizer

SMALL = {"rows": 600, "items": 6, "limit": 12, "k": 3}


@pytest.fixture(scope="session")
def random_model():
    """Three layers of eight heads on four key/value heads, random weights."""
    return GatedModel.wrap(
        tiny_llama(layers=3, heads=8, kv_heads=4, context=2048),
        tiny_tokenizer(),
        name="random/three-layers",
    )


@pytest.fixture(scope="session")
def journal(tmp_path_factory):
    """Where the rows of the searches are kept."""
    return tmp_path_factory.mktemp("paper") / "journal.sqlite"


@pytest.fixture(scope="session")
def everything(random_model, journal):
    """Every table and figure, on the paper's tasks, by name."""
    with local_data(own_labels(random_model, Catalog())):
        shown = reproduce("all", random_model, tasks=(*TASKS, "gsm8k"), journal=journal, **SMALL)
        return {reproduction.name: reproduction for reproduction in shown}


@pytest.fixture(scope="module")
def study(planted):
    """Four tasks of three capabilities, multiple choice among them; nothing is measured yet."""
    tasks = ["addition", "addition_words", "capitals", "mc_biology"]
    search = SearchOptions(method="cs-stratified", rows=400, items=10)
    with open_session(planted, RunOptions()) as opened:
        yield Study(opened, StudySettings(tasks=tasks, limit=16, search=search))
