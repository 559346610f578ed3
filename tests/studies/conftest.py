"""All tables and figures on a model of random weights."""

import pytest
from studies.own_answers import TASKS, local_data, own_labels
from tiny import tiny_gated

from broca import reproduce
from broca.tasks import Catalog

SMALL = {"rows": 600, "items": 6, "limit": 12, "k": 3}


@pytest.fixture(scope="session")
def random_model():
    """A model of random weights with three layers of eight heads and four KV groups."""
    return tiny_gated("random/three-layers", layers=3, heads=8, kv_heads=4, context=2048)


@pytest.fixture(scope="session")
def everything(random_model):
    """The reproductions of all tables and figures on the paper's tasks, by name."""
    with local_data(own_labels(random_model, Catalog())):
        shown = reproduce("all", random_model, tasks=(*TASKS, "gsm8k"), **SMALL)
        return {reproduction.name: reproduction for reproduction in shown}
