"""The page of an atlas: self-contained, complete, and safe with any text."""

import re

import pytest
from results.test_atlas import make_atlas

from broca.reports import render_atlas_page
from broca.reports.atlas import matrix_figure
from broca.results.atlas import AtlasTask, Cluster, Selection
from broca.results.base import ModelInfo


def test_page_needs_nothing_from_outside():
    """No script, style, image or font is fetched."""
    html = render_atlas_page(make_atlas())
    head = html[: html.index("<style>")] + html[html.index("</script>") :]
    assert not re.search(r"<(?:script|img|iframe|link)[^>]*\s(?:src|href)\s*=", head)


def test_page_shows_the_findings():
    """Universal components, selections with intervals, clusters, groups, cost and notes."""
    html = render_atlas_page(make_atlas())
    body = html[html.index("</script>") :]
    for text in (
        "What 2 tasks need in toy", "1 of 1", "-0.11 [-0.20, -0.02]", "cannot do the task",
        "L0H2 L0H0", "+1.4 standard", "0.35", "(chance)", "1,600", "123,456", "abc123",
        "three prompts were cut", "0.52",
    ):  # fmt: skip
        assert text in " ".join(body.split()), text


def test_heat_map_is_the_matrix():
    """Every cell as measured, own components framed in their cells."""
    atlas = make_atlas()
    figure = matrix_figure(atlas)
    assert [list(row) for row in figure.data[0].z] == [list(row) for row in atlas.effects]
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.y0) == (0.5, -0.5)  # column 1, L0H0; row 0, adding
    assert list(figure.layout.xaxis.ticktext) == list(atlas.components)


def test_page_without_findings():
    """Nothing universal, no clusters, no groups: each is said."""
    html = render_atlas_page(
        make_atlas(
            universal=(), clusters=(), task_clusters=(), groups=None, groups_note="no pairs",
            selections=tuple(Selection(name, (), (), "nothing") for name in ("adding", "sorting")),
        )
    )  # fmt: skip
    for text in ("No component hurts most tasks", "No component surely hurts", "no pairs"):
        assert text in html


@pytest.mark.parametrize("place", ["model", "task", "note"])
def test_text_from_files_is_escaped(place):
    """A script tag in a name is shown, never run."""
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
    assert evil not in render_atlas_page(make_atlas(**changes))
