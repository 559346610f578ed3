"""The report is self-contained, complete and safe with any text."""

import re
from dataclasses import replace

import numpy as np
import pytest
from broca.results.pages.page import ranking_table

from broca.results.base import AblationInfo, ModelInfo
from broca.results.localization import (
    AdditivityInfo,
    Cost,
    Interaction,
    Localization,
    RankedComponent,
    Repeat,
    SearchInfo,
)
from broca.results.verification import TaskDrop, Verification


def make_result(*, after=None, **changes):
    """Returns a small finished result; `after` are the scores without its selection."""
    values = {
        "broca": "0.1.0",
        "model": ModelInfo("toy", "abc123", "LlamaForCausalLM", 2, 3, 1, "float32"),
        "task": "adding",
        "others": ("sorting",),
        "search": SearchInfo("cs-stratified", {"masks": 200}, 0),
        "cost": Cost(20100, 800, 123456, 9.87),
        "baseline": {"adding": 0.975, "sorting": 1.0},
        "ranking": (
            RankedComponent("L1H2", 1, 2, -0.42),
            RankedComponent("L0H0", 0, 0, -0.11, (-0.2, -0.02), 0.93),
            *(RankedComponent(f"L{i // 3}H{i % 3}", i // 3, i % 3, 0.0) for i in (1, 2, 3, 4)),
        ),
        "selected": ("L1H2", "L0H0"),
        "abstained": False,
        "reason": "",
        "notes": ("three prompts were cut",),
    }
    values.update(changes)
    scores = verified(values, after or {"adding": 0.015, "sorting": 0.99})
    return Localization(**{"verification": scores, **values})


def verified(localization, after):
    """Returns the verification of a localization with these scores and without statistics."""
    baseline, task = localization["baseline"], localization["task"]
    drops = {name: baseline[name] - after[name] for name in baseline}
    others = [drop for name, drop in drops.items() if name != task]
    off_target = sum(others) / len(others) if others else None
    return Verification(
        model=localization["model"],
        task=task,
        heads=localization["selected"],
        ablation=AblationInfo("zero", 0.0),
        seed=localization["search"].seed,
        drops=tuple(
            TaskDrop(
                name,
                "task" if name == task else "other",
                "exact_match",
                300,
                baseline[name],
                after[name],
                drop,
            )
            for name, drop in drops.items()
        ),
        off_target_drop=off_target,
        specific_drop=drops[task] - (off_target or 0.0),
        verdict=None,
        rows=localization["cost"].verification_rows,
        broca=localization["broca"],
    )


def test_page_needs_nothing_from_outside():
    """No script, style, image or font is fetched."""
    html = make_result().page()
    assert not re.search(r"<(?:script|img|iframe|link)[^>]*\s(?:src|href)\s*=", html)
    assert "@import" not in html
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    assert len(html.encode()) < 100_000


def test_page_shows_pairs_where_they_were_measured():
    """The page has names, effects and interval of a pair; without pairs it has no section."""
    pair = Interaction("L1H2", "L0H0", -0.1, -0.2, -0.75, -0.45, (-0.61, -0.29))
    html = make_result(interactions=(pair,)).page()
    for text in ("L1H2, L0H0", "−0.750", "−0.450", "−0.610", "−0.290"):
        assert text in html
    assert 'id="pairs"' not in make_result().page()


def test_page_says_how_often_each_component_is_selected():
    """The page has the overlap of repeated searches; without repeats it has no section."""
    html = make_result(repeats=(Repeat(1, ("L1H2", "L2H3"), "found", 900),)).page()
    assert "overlap by 33 % on average" in html
    assert "Number of 2 searches, each on other items" in html
    assert 'id="stability"' not in make_result().page()


def test_page_shows_the_figures():
    """The page contains drops, scores, heads, intervals, cost and notes."""
    html = make_result().page()
    for text in ("96.0", "95.0", "0.975", "0.015", "L1H2, L0H0", "−0.200", "−0.020", "0.93"):
        assert text in html
    for text in ("20,100", "123,456", "abc123", "three prompts were cut", "cs-stratified"):
        assert text in html


def test_abstention_is_said_first():
    """The title of a page without selected heads says so, and the page has the reason."""
    html = make_result(selected=(), abstained=True, reason="no component alone lowers the score").page()
    assert "No heads found" in html[html.index("<h1>") : html.index("</h1>")]
    assert "no component alone lowers the score" in html
    assert "with the set ablated" not in html  # nothing is ablated


def test_the_picture_comes_before_any_table():
    """The verdict comes before the picture, which has one element for each component."""
    result = make_result()
    html = result.page()
    assert html.index("<h1>") < html.index("<svg") < html.index("<table>")
    first = html[html.index("<svg") : html.index("</svg>")]
    for line in result.ranking:
        assert first.count(f'data-component="{line.name}"') == 1
    assert html.count("data-component=") == len(result.ranking)


def test_headline_names_what_the_components_are():
    """Headlines and messages name the kinds of components, such as MLP blocks."""
    ranking = tuple(RankedComponent(f"L{i}{kind}", i, None, -0.1) for i in (0, 1) for kind in "MA")
    html = make_result(ranking=ranking, selected=("L0M",)).page()
    assert "2 attention layers and 2 MLP blocks" in html
    assert "Effect of every component" in html
    one_kind = ranking[::2]
    nothing = {"selected": (), "abstained": True, "reason": "nothing"}
    html = make_result(ranking=one_kind, **nothing).page()
    assert "No MLP blocks found" in html


def test_a_large_model_has_a_small_page():
    """The full ranking of 80 layers x 128 heads has a page under 1 MB."""
    random = np.random.default_rng(0)
    effects = np.sort(random.normal(0, 0.02, 80 * 128) ** 3 * 1e4)
    names = [(int(i) // 128, int(i) % 128) for i in random.permutation(80 * 128)]
    ranking = tuple(
        RankedComponent(f"L{layer}H{head}", layer, head, float(effect),
                        (float(effect) - 0.1, float(effect) + 0.1), 0.123456, 0.0123, 0.234567)
        for (layer, head), effect in zip(names, effects, strict=True)
    )  # fmt: skip
    html = make_result(
            ranking=ranking,
            selected=(ranking[0].name,),
            off_target_effects={line.name: 0.01234 for line in ranking},
            model=ModelInfo("large", "f", "LlamaForCausalLM", 80, 128, 8, "bfloat16"),
        ).page()
    assert html.count("data-component=") == 80 * 128
    assert len(html.encode()) < 1_000_000


def test_result_without_other_tasks_has_a_page():
    """Off-target damage is left out and not shown as zero."""
    result = make_result(others=(), baseline={"adding": 0.9}, after={"adding": 0.1})
    assert "on the others" not in result.page()


@pytest.mark.parametrize("place", ["model", "task", "note"])
def test_text_from_files_is_escaped(place):
    """A script tag in a name or note never appears unescaped."""
    evil = "<script>alert('x')</script>"
    changes = {
        "model": {"model": ModelInfo(evil, "f", "A", 2, 3, 1, "float32")},
        "task": {
            "task": evil,
            "baseline": {evil: 1.0, "sorting": 1.0},
            "after": {evil: 0.0, "sorting": 1.0},
        },
        "note": {"notes": (evil,)},
    }[place]
    assert evil not in make_result(**changes).page()


def test_heads_that_the_others_need_are_shown_apart():
    """The section has the cost for every task and the universal components, if any are shared."""
    result = make_result()
    first, second = (head.name for head in result.ranking[:2])
    costs = dict.fromkeys(result.tasks, -0.125)
    shown = {
        "shared_effects": {first: costs, second: {**costs, result.task: -0.375}},
        "off_target_effects": {head.name: -0.25 for head in result.ranking},
    }
    page = make_result(**shown, universal=(first,)).page()
    for text in (
        "Components that the other tasks need too",
        f"{first} is universal: most tasks need it",
        "−0.375",
        "−0.250",
    ):
        assert text in " ".join(page.split())
    assert page.count(">−0.125<") == 2 * len(costs) - 1
    assert "none is universal, needed by most tasks" in make_result(**shown).page()
    assert "other tasks need too" not in make_result().page()


def test_page_says_how_well_effects_add_up():
    """The page has the additivity if the method estimates it, and the p-values of effects."""
    sure = RankedComponent("L1H2", 1, 2, -0.42, (-0.5, -0.3), 1.0, 0.0001, 0.0042)
    html = make_result(additivity=AdditivityInfo(0.613, 0.72, 200), ranking=(sure,)).page()
    html = " ".join(html.split())
    for text in ("61.3 %", "0.72", "200 held-out masks", "0.0042"):
        assert text in html
    assert "held-out masks" not in " ".join(make_result().page().split())


def test_the_ranking_says_its_order():
    """The caption says whether rows are sorted by effect or in the order of the method."""
    result = make_result()
    by_effect = replace(result, ranking=tuple(sorted(result.ranking, key=lambda line: line.effect)))
    assert "most harmful ablation first" in ranking_table(by_effect).caption
    turned = replace(by_effect, ranking=by_effect.ranking[::-1])
    assert "in the order of the method" in ranking_table(turned).caption
