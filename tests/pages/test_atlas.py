"""The page of an atlas: self-contained, complete, and safe with any text."""

import json
import re

import numpy as np
import pytest
from results.samples import make_atlas

from broca.results.atlas import AtlasTask, Cluster, Selection
from broca.results.base import ModelInfo
from broca.results.pages.atlas import matrix_figure, mean_figure
from broca.results.pages.colours import level


def test_page_needs_nothing_from_outside():
    """No script, style, image or font is fetched."""
    html = make_atlas().page()
    assert not re.search(r"<(?:script|img|iframe|link)[^>]*\s(?:src|href)\s*=", html)


def test_page_shows_the_findings():
    """The page shows universal components, selections, clusters, groups, cost and notes."""
    html = make_atlas().page()
    body = html[html.index("<main") :]
    for text in (
        "What 2 tasks need in toy", "−0.11 [−0.20, −0.02]", "cannot do the task",
        "L0H2 L0H0", "+1.4 standard", "0.35", "(chance)", "1,600", "123,456", "abc123",
        "three prompts were cut", "0.52",
    ):  # fmt: skip
        assert text in " ".join(body.split()), text


def test_heat_map_is_the_matrix():
    """Every cell has the measured effect, and the components of a task are framed."""
    atlas = make_atlas()
    chart = matrix_figure(atlas).chart
    assert chart.values == atlas.effects
    assert chart.framed == {(0, 1)}  # adding needs L0H0, column 1
    assert chart.columns == atlas.components


def test_picture_of_the_model_is_the_mean_over_tasks():
    """Every component is a cell; the views have every task's effects, in the same colours."""
    atlas = make_atlas()
    grid = mean_figure(atlas).chart
    able = [row for task, row in zip(atlas.tasks, atlas.effects, strict=True) if not task.at_chance]
    means = [sum(values) / len(able) for values in zip(*able, strict=True)]
    assert list(grid.effects.values()) == pytest.approx(means)
    html = atlas.page()
    views = json.loads(re.search(r"data-views>(.*?)</script>", html, re.DOTALL).group(1))
    assert [view["name"] for view in views] == ["mean over tasks", "adding", "sorting"]
    assert views[0]["names"] == list(atlas.components)
    steps = [ord(letter) - 81 for letter in views[1]["steps"]]
    assert steps == [level(effect, grid.full) for effect in atlas.effects[0]]


def test_a_large_atlas_has_a_small_page():
    """The page of 80 layers x 128 heads and 12 tasks is under 1 MB and says what it leaves out."""
    columns = tuple(f"L{layer}H{head}" for layer in range(80) for head in range(128))
    random = np.random.default_rng(0)
    effects = tuple(map(tuple, random.normal(0, 0.1, (12, len(columns))).tolist()))
    names = [f"task{number}" for number in range(12)]
    atlas = make_atlas(
        components=columns, effects=effects, low=effects, high=effects,
        tasks=tuple(AtlasTask(n, n, "acc", 1.0, 8, False, 0.0, 0.0) for n in names),
        selections=tuple(Selection(n, (), (), "nothing") for n in names), universal=(), clusters=(),
        task_clusters=(), groups=None, groups_note="none",
        model=ModelInfo("large", "f", "A", 80, 128, 8, "bfloat16"),
    )  # fmt: skip
    html = atlas.page()
    assert len(html.encode()) < 1_000_000
    assert html.count("data-component=") == len(columns)
    assert "The first 120 of 10,240 components" in " ".join(html.split())


def test_page_without_findings():
    """The page states that nothing is universal or harmful, and why there are no groups."""
    html = make_atlas(
            universal=(), clusters=(), task_clusters=(), groups=None, groups_note="no pairs",
            selections=tuple(Selection(name, (), (), "nothing") for name in ("adding", "sorting")),
        ).page()  # fmt: skip
    for text in ("No component hurts most tasks", "No component significantly hurts", "no pairs"):
        assert text in html


@pytest.mark.parametrize("place", ["model", "task", "note"])
def test_text_from_files_is_escaped(place):
    """A script tag in a name or note never appears unescaped."""
    evil = "<script>alert('x')</script>"
    zero = {evil: 0.0, "sorting": 0.0}
    changes = {
        "model": {"model": ModelInfo(evil, "f", "A", 1, 3, 1, "float32")},
        "task": {
            "tasks": (
                AtlasTask(evil, evil, evil, 1.0, 8, False, 0.0, 0.0),
                AtlasTask("sorting", "order", "acc", 1.0, 8, False, 0.0, 0.0),
            ),
            "universal": (),
            "clusters": (Cluster(("L0H2",), zero),),
            "selections": (
                Selection(evil, (), (), evil),
                Selection("sorting", (), (), evil),
            ),
            "task_clusters": ((evil,),),
        },
        "note": {"notes": (evil,), "groups": None, "groups_note": evil},
    }[place]
    assert evil not in make_atlas(**changes).page()
